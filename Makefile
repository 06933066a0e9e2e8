# Everything a newcomer needs. `make demo` and `make test` set up .venv by themselves.
.DEFAULT_GOAL := help
.PHONY: help demo test slow check docs-test slurm fuzz oldest oldest-all release-check docs lint \
  format bench reproduce clean

PYTHON ?= python3
BIN := .venv/bin
DATA ?= $(or $(BIAS_PIPELINE_DATA),../shared/data)
# Tests run side by side, a process a core: threads of NumPy and PyTorch would only
# wait for each other.
export OPENBLAS_NUM_THREADS ?= 1
# Compiled files stay, for the next run and for the programs that tests start.
unexport PYTHONDONTWRITEBYTECODE
test slow check slurm docs-test: export OMP_NUM_THREADS ?= 1
SIDE_BY_SIDE := -n auto --dist loadscope --no-loadscope-reorder
# Without a GPU, pin a torch that brings no CUDA packages.
CONSTRAINTS := $(if $(shell command -v nvidia-smi),,-c constraints-cpu.txt)

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*##/\t/' | expand -t 12

.venv/installed: pyproject.toml constraints-cpu.txt
	@echo "setting up .venv (a few minutes the first time)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -qq --disable-pip-version-check $(CONSTRAINTS) -e '.[dev,slurm]'
	@touch $@

demo: .venv/installed  ## LIC and Leakage of the embedded data set's captioners
	@$(BIN)/python -m bias_pipeline metric=lic,leakage captioner=all

test: .venv/installed  ## run the tests, but for the slow ones
	@$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m 'not slow and not slurm'

slow: .venv/installed  ## run the slow tests: witnesses on real captions, kills, several processes
	@$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m 'slow and not slurm'

check: .venv/installed  ## check style and types, and run the quick tests that a change touches
	@$(MAKE) -s lint
	@$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m 'not slow and not slurm' $$($(BIN)/python -m tests.changed)

docs: .venv/installed  ## build the documentation site into site/, without a network
	@$(BIN)/python -m docs.builder

docs-test: .venv/installed  ## run every command of README and docs as it is printed; DOCS=README for one
	@$(BIN)/python -m tests.documented $(DOCS)

slurm: .venv/installed  ## run the tests that need Slurm's programs, on a Slurm of their own
	@$(BIN)/python -m pytest -m slurm -rs tests/cli/test_slurm.py

fuzz: .venv/installed  ## read mutated files of every kind for SECONDS=600; SEED=N for those of a run
	@$(BIN)/python -m tests.fuzz --seconds $(or $(SECONDS),600) $(if $(SEED),--seed $(SEED))

.venv/oldest: .venv/installed
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --target $@ \
	  'transformers==4.51.*' 'tokenizers<0.22' 'huggingface-hub<1'

oldest: .venv/oldest  ## run the tests of published models under the oldest transformers supported
	@$(BIN)/python -m pytest -q tests/models/test_oldest.py
	@PYTHONPATH=.venv/oldest $(BIN)/python -m pytest -q tests/models tests/language tests/retrieval \
	  tests/pictures/captioners tests/attack/test_frozen.py tests/attack/test_finetuned.py

oldest-all: .venv/installed  ## run tests of counting metrics and ngram under the lowest versions of pyproject
	@$(BIN)/python -m tests.oldest

release-check: .venv/installed  ## build the wheel and try it in empty environments, on each Python that is here
	@$(BIN)/python -m tests.release

lint: .venv/installed  ## check style and types
	@$(BIN)/ruff check -q . && $(BIN)/ruff format -q --check . && $(BIN)/mypy --no-error-summary

format: .venv/installed  ## put the code in its format
	@$(BIN)/ruff check -q --fix-only . && $(BIN)/ruff format -q .

# Libraries beside which speed is measured; they need nothing that is not here already.
.venv/peers: .venv/installed
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --target $@ \
	  pycocoevalcap faiss-cpu bias-amplification lm-scorer

BENCHMARKS := bars audit cells streamed counting text attackers encoders likelihoods peers retrieval captions \
  photos server browse pictures gradcam grit walk gpu install

bench: .venv/peers  ## measure speed anew (benchmarks/RESULTS.md); half an hour on a machine at rest
	@$(BIN)/python -m benchmarks.record
	@for name in $(BENCHMARKS); do echo "$$name ..."; \
	  PYTHONPATH=$(CURDIR)/.venv/peers $(BIN)/python -m benchmarks.$$name || failed="$$failed $$name"; done; \
	  test -z "$$failed" || { echo "failed:$$failed"; false; }

reproduce: .venv/installed  ## run the studies of experiments/ on the real captions in DATA
	@$(BIN)/python -m experiments.lic_reproduction.study $(DATA)
	@$(BIN)/python -m experiments.lic_reproduction.lstm $(DATA)
	@$(BIN)/python -m experiments.dbac_readings.study $(DATA)
	@$(BIN)/python -m experiments.age.study $(DATA)
	@$(BIN)/python -m experiments.metric_comparison.study $(DATA)
	@$(BIN)/python -m experiments.assumed_group.study $(DATA)
	@$(BIN)/python -m experiments.leaderboard.study $(DATA)
	@$(BIN)/python -m experiments.race_words.study $(DATA)
	@$(BIN)/python -m experiments.benchmark.study $(DATA)
	@$(BIN)/python -m experiments.alignment.study $(DATA)
	@$(BIN)/python -m experiments.encoder_sensitivity.study $(DATA)
	@$(BIN)/python -m experiments.encoder_sensitivity.presets $(DATA)
	@$(BIN)/python -m experiments.equal_speech.study $(DATA)
	@$(BIN)/python -m experiments.equal_speech.forms $(DATA)
	@$(BIN)/python -m experiments.flatness.study $(DATA)
	@$(BIN)/python -m experiments.power.study $(DATA)
	@$(BIN)/python -m experiments.inference.study $(DATA)

clean:  ## remove what runs and tests have left; the environment stays
	@rm -rf outputs/[!R]* outputs/.[!.]* site .site .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -path ./.venv -prune -o -name __pycache__ -print | xargs rm -rf
