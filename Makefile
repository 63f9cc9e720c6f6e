# `make` alone says what there is. Everything runs in .venv, which `make setup` makes and every target keeps up to date.
.DEFAULT_GOAL := help
.PHONY: help setup demo test lint format bench lock clean

BIN := .venv/bin
CODE := src tests $(if $(wildcard benchmarks/*.py),benchmarks) $(if $(wildcard examples/*.py),examples)

help: ## what can be made
	@echo 'Penstock: just the workers a streaming job needs, and the reasons why.'
	@echo
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo 'Needs Python 3.11+; the rest, a Java included where there is none, comes with the first target you make.'
	@echo 'New here? `make demo`. Changing something? CONTRIBUTING.md, then `make test`.'
	@echo "Some tests only: make test T=tests/workloads, or make test T=\"-m 'not spark'\""

setup: ## the environment: .venv with pinned packages, Penstock (editable), a Java if none is found
	@scripts/setup

demo: setup ## a real Spark job on this machine, its load and an autoscaler, live
	@$(BIN)/penstock demo

test: lint ## everything that CI checks: lint, then the tests (T="..." picks some)
	@$(BIN)/pytest -q --durations=10 $(T)

lint: setup ## style, format, types (strict) and the direction of imports
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy $(CODE)
	@$(BIN)/lint-imports

format: setup ## put the code in its form, and fix what can be fixed
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: setup ## what it costs: runs every script in benchmarks/
	@set -e; for script in $(sort $(wildcard benchmarks/*.py)); do echo "== $$script"; $(BIN)/python $$script; done

lock: setup ## pin the packages anew after a change in pyproject.toml (U=--upgrade takes the newest)
	@scripts/lock $(U)

clean: ## away with .venv, caches and the runs' output
	rm -rf .venv .java .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis runs dist
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
