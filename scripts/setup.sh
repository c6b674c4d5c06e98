#!/usr/bin/env bash
# Make the virtual environment $1 with windowpane and its tools, then leave the stamp $2.
set -euo pipefail
venv=$1
stamp=$2

python=""
for candidate in "${PYTHON:-}" python3.11 python3.12 python3.13 python3; do
    [ -n "$candidate" ] || continue
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    echo "windowpane needs Python 3.11 or newer, and none was found." >&2
    echo "Install it (Debian: apt-get install python3 python3-venv) or run: make PYTHON=/path/to/python3.11" >&2
    exit 1
fi

echo "setting up $venv with $("$python" --version); the first time takes a few minutes"
rm -f "$venv"/.installed-*
if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    rm -rf "$venv"
    if ! "$python" -m venv "$venv"; then
        echo "$python cannot make virtual environments. On Debian: apt-get install python3-venv" >&2
        exit 1
    fi
fi
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check -e ".[dev]" -c constraints.txt
touch "$stamp"
