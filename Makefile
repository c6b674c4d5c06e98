# Every target makes .venv first when pyproject.toml or constraints.txt changed. Nothing else is needed
# beforehand but Python 3.11+ and make (and Java 17+ for Spark).

STAMP := .venv/.installed-$(shell cat pyproject.toml constraints.txt | cksum | tr ' ' '-')
WARM := .venv/.warm
BIN := .venv/bin
JOBS ?= 2

export TZ := UTC

.PHONY: help setup java demo test check format bench golden clean

help:
	@echo "make demo    a call center on Spark, live, in under two minutes (windowpane demo --market: no Spark)"
	@echo "make test    run every test (deep: HYPOTHESIS_PROFILE=deep make test)"
	@echo "make check   ruff (lint and format) and mypy --strict"
	@echo "make format  let ruff format and fix what it can"
	@echo "make bench   run every benchmark, quick (one of them in full: windowpane bench NAME)"
	@echo "make golden  regenerate docs/api.md, docs/cli.md and the golden files"
	@echo "make java    find or install Java 17+, or say what to install"
	@echo "make clean   remove .venv and every cache"

setup: $(STAMP)

$(STAMP): scripts/setup.sh
	@bash scripts/setup.sh .venv $@

java:
	@bash scripts/java.sh

demo: $(STAMP)
	@bash scripts/java.sh --warn
	@$(BIN)/windowpane demo

$(WARM): $(STAMP)
	@bash scripts/java.sh
	$(BIN)/windowpane warm
	@touch $@

test: $(WARM)
	@bash scripts/java.sh
	$(BIN)/python -m pytest -n $(JOBS) -m "not spark"
	$(BIN)/python -m pytest -m spark

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP)
	$(BIN)/windowpane bench --all --quick

golden: $(STAMP)
	$(BIN)/python scripts/api_docs.py
	$(BIN)/python scripts/cli_docs.py
	@if [ -d tests/golden ]; then WINDOWPANE_GOLDEN=rewrite $(BIN)/python -m pytest tests/golden; fi

clean:
	rm -rf .venv .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist
	find src tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +
