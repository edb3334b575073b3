# Everything runs in the environment .venv. It is created on first use, and updated when setup.cfg changes.

# The first Python that is new enough. `make PYTHON=...` selects another one.
PYTHON ?= $(firstword $(foreach p,python3 python3.13 python3.12 python3.11 python3.14,$(shell \
	$(p) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(p))))
BIN := .venv/bin
READY := .venv/.installed
# Marks that matplotlib is installed, which draws the benchmark's picture.
DRAWING := .venv/.bench-installed
# Marks that Sphinx is installed, which builds the documentation site.
DOCUMENTING := .venv/.docs-installed

# Compiling bytecode is half of Python's start, and the tests start hundreds of processes. So it must be cached.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test check docs bench faults format clean
help:
	@echo "make demo    a snapshot under load on real servers, checked row by row"
	@echo "make test    all tests but the long ones (starts MySQL and Kafka by itself), or some: make test TESTS=tests/e2e/test_restart.py"
	@echo "make check   lint, types, import direction, unit and property tests: for daily work"
	@echo "make docs    the documentation site in build/docs; fails on any warning, such as a broken link"
	@echo "make bench   incsnap and Debezium side by side (about an hour)"
	@echo "make faults  200 faults done to a job and its servers, and what was lost by them (an hour or two)"
	@echo "make format  what ruff can mend by itself"
	@echo "make clean   remove .venv and what tools left behind"

demo: $(READY)
	@$(BIN)/python -m lab

# Two test processes run (-n 2), each with its own servers. The tests of a file share servers, so they stay in one
# process. `incsnap prepare` runs first: without it each start of a job takes 4 s longer.
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

# -n reports each name that a page refers to and that does not exist. Nothing is fetched: see docs/site/conf.py.
docs: $(DOCUMENTING)
	@$(BIN)/python -m sphinx -q -n -W --keep-going -c docs/site -d build/doctrees . build/docs
	@echo "build/docs/index.html"

bench: $(DRAWING)
	@$(BIN)/incsnap prepare
	@$(BIN)/python -m benchmarks --results benchmarks/results

faults: $(READY)
	@$(BIN)/incsnap prepare
	@$(BIN)/python -m tests.faults

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache spark-warehouse

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "incsnap needs Python 3.11 or newer; install one or name it: make PYTHON=/path/to/python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) cannot make environments; on Debian: apt-get install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv .venv

$(READY): setup.cfg setup.py | $(BIN)/python
	@echo "preparing .venv (once; again when setup.cfg changes)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $@

$(DRAWING): $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	@touch $@

# The site needs incsnap and Sphinx, but nothing that the tests need.
$(DOCUMENTING): setup.cfg setup.py | $(BIN)/python
	@echo "preparing .venv for the pages (once; again when setup.cfg changes)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@
