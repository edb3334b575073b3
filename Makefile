# Everything runs in an environment of its own, .venv, made on first use and again when setup.cfg changes.

# The first Python that is new enough; give another with `make PYTHON=...`.
PYTHON ?= $(firstword $(foreach p,python3 python3.13 python3.12 python3.11 python3.14,$(shell \
	$(p) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(p))))
BIN := .venv/bin
READY := .venv/.installed
# What draws the benchmark's picture.
DRAWING := .venv/.bench-installed

# Bytecode is half of what a start of Python costs here, and tests start hundreds.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test check bench faults format clean
help:
	@echo "make demo    a snapshot under load on real servers, checked row by row"
	@echo "make test    all tests (starts MySQL and Kafka by itself), or some: make test TESTS=tests/e2e/test_restart.py"
	@echo "make check   lint, types, import direction, unit and property tests: for daily work"
	@echo "make bench   incsnap and Debezium side by side (about 40 minutes)"
	@echo "make faults  200 faults done to a job and its servers, and what was lost by them (an hour or two)"
	@echo "make format  what ruff can mend by itself"
	@echo "make clean   remove .venv and what tools left behind"

demo: $(READY)
	@$(BIN)/python -m lab

# Each of the two has servers of its own. A file's tests stay together, as they share what it has started. What a job
# would prepare beside its first minutes is prepared before them.
test: $(READY)
	@$(if $(TESTS),,$(BIN)/incsnap prepare)
	@$(BIN)/python -m pytest --durations=10 --durations-min=1 \
		$(if $(TESTS),$(TESTS),-n 2 --dist loadfile --no-loadscope-reorder)

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	INCSNAP_PROFILE=check $(BIN)/python -m pytest -q -n 3 --dist worksteal tests/unit tests/property

bench: $(DRAWING)
	@$(BIN)/incsnap prepare
	@$(BIN)/python -m benchmarks --results benchmarks/results

faults: $(READY)
	@$(BIN)/python -m tests.faults

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache spark-warehouse

$(READY): setup.cfg setup.py
	@test -n "$(PYTHON)" || { echo "incsnap needs Python 3.11 or newer; install one or name it: make PYTHON=/path/to/python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) cannot make environments; on Debian: apt-get install python3-venv" >&2; exit 1; }
	@echo "preparing .venv (once; again when setup.cfg changes)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $@

$(DRAWING): $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	@touch $@
