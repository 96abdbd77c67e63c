# make demo and make test work on a fresh machine with Python >= 3.10 and, for speed, a C++ compiler.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml constraints.txt CMakeLists.txt $(wildcard kernels/*.cpp kernels/*.hpp)
INSTALL := PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/pip install --quiet
JOBS ?= 2

.PHONY: demo test lint types test-slow sanitize bench format clean

demo: $(VENV)/.core
	$(BIN)/rangevote demo

test: $(VENV)/.dev lint types
	$(BIN)/pytest -n $(JOBS) -m "not slow"

test-slow: $(VENV)/.dev
	$(BIN)/pytest -n $(JOBS) -m slow

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Speed against the peers, which get a virtual environment of their own; writes benchmarks/RESULTS.md.
bench: $(VENV)/.dev
	benchmarks/setup_peers.sh
	$(BIN)/python benchmarks/run.py

# The kernels' tests under AddressSanitizer and UndefinedBehaviorSanitizer.
SANITIZE := .venv-sanitize
sanitize: $(SANITIZE)/.installed
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
	$(SANITIZE)/bin/python -m pytest -p no:cacheprovider tests/kernel

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: $(VENV)/bin/python $(SOURCES)
	$(INSTALL) --editable .
	touch $@

$(VENV)/.dev: $(VENV)/bin/python $(SOURCES)
	$(INSTALL) --editable ".[dev]"
	touch $(VENV)/.core $@

$(SANITIZE)/.installed: $(SOURCES) $(wildcard src/rangevote/*/*.py)
	$(PYTHON) -m venv $(SANITIZE)
	PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(SANITIZE)/bin/pip install --quiet --force-reinstall \
		-C cmake.define.RANGEVOTE_SANITIZE=ON -C build-dir=build/sanitize . pytest hypothesis sacrebleu
	touch $@

clean:
	rm -rf build dist $(VENV) .venv-* .pytest_cache .mypy_cache .ruff_cache .hypothesis
