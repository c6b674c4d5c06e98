#!/usr/bin/env bash
# Find Java 17 or newer, which Spark needs; install it where that is allowed; else say what to install.
# Prints the home of the Java it found. With --warn a missing Java is a warning, not a failure.
set -uo pipefail
wanted=17

version_of() { # the major version of the java program $1, or 0
    local text
    text=$("$1" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
    echo "${text:-0}"
}

find_java() { # the first java program that is new enough
    local candidate
    for candidate in "${JAVA_HOME:-/nonexistent}/bin/java" "$(command -v java || true)" /usr/lib/jvm/*/bin/java; do
        if [ -x "$candidate" ] && [ "$(version_of "$candidate")" -ge "$wanted" ]; then
            echo "$candidate"
            return 0
        fi
    done
    return 1
}

install_java() { # only as root on a system with apt-get
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    echo "no Java $wanted or newer: installing openjdk-17-jre-headless" >&2
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y openjdk-17-jre-headless; } >&2
}

if java=$(find_java) || { install_java && java=$(find_java); }; then
    [ "${1:-}" = --warn ] || dirname "$(dirname "$(readlink -f "$java")")"
    exit 0
fi
echo "Spark needs Java $wanted or newer, and none was found. Install it and set JAVA_HOME, for example:" >&2
echo "  Debian, Ubuntu   apt-get install openjdk-17-jre-headless" >&2
echo "  Fedora           dnf install java-17-openjdk-headless" >&2
echo "  macOS            brew install openjdk@17" >&2
[ "${1:-}" = --warn ]
