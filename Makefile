.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
FAST := not slow and not long and not pages and not browser and not frameworks
SOURCES := $(shell find src -type f -not -name '*.pyc') pyproject.toml hatch_build.py README.md man/verax.1

# Tests start hundreds of processes: each would compile every module that it imports again, were bytecode not kept.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo test quick long test-oldest test-nonumba lint types suite programs docs man sessions notebooks constraints bench fuzz clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 13

demo: .venv/installed ## train four models, judge their probabilities, write the reports
	@$(BIN)/verax demo

# Types are checked while the tests run, in the time that these wait for browsers and for other processes.
test: ## lint, types and tests, on the built wheel
	@$(MAKE) --no-print-directory --jobs 2 .venv/tools programs
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory --jobs 2 types suite

suite: .venv/tools
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not long and not pages"

quick: .venv/tools ## the cheap tests: what one runs at every save
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "$(FAST)" --cheap 0.05 --within 75

# Tests compile kernels without optimising them, because that is sooner done; these two as users get them.
long: .venv/tools ## tests that repeat at greater length what make test covers
	NUMBA_OPT=3 $(BIN)/python -m pytest -q -n 2 --dist worksteal -m long

# Old versions warn of what newer neighbours drop, which is no fault of verax.
test-oldest: .venv-oldest/installed ## the tests that apply, with the oldest versions that are allowed
	NUMBA_OPT=3 .venv-oldest/bin/python -m pytest -q -n 2 --dist worksteal -o filterwarnings=default \
	  -m "$(FAST)"

test-nonumba: .venv-nonumba/installed ## the tests that apply, where numba is missing
	.venv-nonumba/bin/python -m pytest -q -n 2 --dist worksteal -m "$(FAST)"

lint: .venv/tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/tools
	nice $(BIN)/mypy
	PATH="$(CURDIR)/$(BIN):$$PATH" nice pyright --verifytypes verax --ignoreexternal > .venv/types.txt \
	  || { cat .venv/types.txt; exit 1; }

# The report is tested in a real browser, and Spark needs a Java runtime. Where there are none and none can be
# had, those tests are skipped.
programs:
	@wanted=; command -v chromium >/dev/null && command -v chromedriver >/dev/null \
	  || wanted="chromium chromium-driver fonts-dejavu-core"; \
	command -v java >/dev/null || wanted="$$wanted default-jre-headless"; \
	[ -z "$$wanted" ] || { as_root=; [ "$$(id -u)" = 0 ] || as_root="sudo -n"; export DEBIAN_FRONTEND=noninteractive; \
	  { $$as_root apt-get update -qq && $$as_root apt-get install -qq --no-install-recommends $$wanted; } \
	    >/dev/null 2>&1 || echo "Not here: $$wanted. Their tests will be skipped."; }

# From the beginning, so that no page of an earlier build is left.
docs: .venv/tools ## the site, to build/docs/index.html; runs its examples and notebooks
	rm -rf build/docs build/doctrees docs/examples docs/generated docs/*/generated
	$(BIN)/python -m sphinx -b html -W --keep-going -q -d build/doctrees docs build/docs
	$(BIN)/python docs/_ext/checklinks.py build/docs
	VERAX_SITE=build/docs $(BIN)/python -m pytest -q -n 2 --dist worksteal -m pages
	@echo "The site is in build/docs/index.html."

man: .venv/tools ## renew the manual page
	$(BIN)/python man/write.py

constraints: .venv/tools ## renew constraints.txt, with the newest versions that fit
	@{ sed -n '/^#/p' constraints.txt; UV_NATIVE_TLS=true $(BIN)/uv pip compile pyproject.toml --extra all --universal \
	  --python-version 3.11 --quiet --no-header --no-annotate --no-emit-index-url --no-emit-find-links \
	  --index-strategy unsafe-best-match $(PLACES); } > constraints.new && mv constraints.new constraints.txt

sessions: .venv/tools ## renew the output of the documentation's commands
	$(BIN)/python docs/sessions.py

notebooks: .venv/tools ## run the notebooks and renew their outputs
	$(BIN)/python docs/notebooks/renew.py

bench: .venv/tools ## speed and memory against the peers
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/core.py
	$(BIN)/python benchmarks/groups.py
	$(BIN)/python benchmarks/curves.py
	$(BIN)/python benchmarks/comparison.py
	$(BIN)/python benchmarks/toplists.py
	$(BIN)/python benchmarks/sets.py
	$(BIN)/python benchmarks/listfiles.py
	$(BIN)/python benchmarks/decomposition.py
	$(BIN)/python benchmarks/boosting.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/files.py
	$(BIN)/python benchmarks/engines.py
	$(BIN)/python benchmarks/report.py
	$(BIN)/python benchmarks/monitoring.py
	$(BIN)/python benchmarks/raters.py
	$(BIN)/python benchmarks/ratios.py
	$(BIN)/python benchmarks/gpu.py

fuzz: .venv/tools ## twenty times the examples of every property, and hostile calls; CALLS=... for more
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m hypothesis --hypothesis-profile thorough
	$(BIN)/python tests/fuzz/run.py --calls $(or $(CALLS),20000)

clean: ## remove the environment and all caches
	rm -rf .venv .venv-oldest .venv-nonumba dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis

# Most files of the frameworks are never imported, so none is compiled to bytecode in advance.
PIP_INSTALL := $(BIN)/python -m pip install --quiet --no-compile
# uv unpacks with all cores, which pip does not. It looks where pip is told to look; where it fails, pip installs.
PLACES = $$($(BIN)/python -m pip config list | sed -nE "s/^.*\.((extra-)?index-url|find-links)='(.*)'$$/\1 \3/p" \
  | sort -u | while read -r kind places; do for place in $$places; do echo "--$$kind $$place"; done; done)
UV_INSTALL = UV_NATIVE_TLS=true UV_HTTP_TIMEOUT=180 $(BIN)/uv pip install --quiet --python $(BIN)/python \
  --index-strategy unsafe-best-match $(PLACES)

# The pip at hand installs a newer one and uv at once; a new environment's own would first be unpacked and compiled.
.venv/bin/python:
	@{ $(PYTHON) -m venv --without-pip .venv \
	  && $(PYTHON) -m pip --python $@ install --quiet --no-compile 'pip>=25.1' uv 2>/dev/null; } \
	  || { $(PYTHON) -m venv --clear .venv && $(PIP_INSTALL) --upgrade 'pip>=25.1' uv; }

# The package as users get it: built as a wheel, then installed, with what the demo needs.
DEMO := '.[report,sklearn]'
.venv/installed: .venv/bin/python $(SOURCES)
	@$(UV_INSTALL) --reinstall-package verax-scores $(DEMO) || $(PIP_INSTALL) $(DEMO)
	@touch $@

# What all tests import is compiled to bytecode here, in two halves: else both workers compile all of it.
HALVES := torch,torchmetrics,lightning,hypothesis pandas,scipy.stats,sklearn.ensemble,matplotlib.pyplot,numba,pyspark.sql,polars,xarray,dask.dataframe
TOOLS := --group test --group lint --group docs
# pyspark comes as a source: to compress its wheel, which is unpacked at once, takes longer than all else of it.
.venv/tools: .venv/bin/python $(SOURCES)
	@$(UV_INSTALL) --config-settings-package 'pyspark:--build-option=--compression=stored' \
	  --reinstall-package verax-scores '.[all]' $(TOOLS) || $(PIP_INSTALL) '.[all]' $(TOOLS)
	@touch .venv/installed
	@for half in $(HALVES); do $(BIN)/python -W ignore -c "import $$half" & done; \
	  $(BIN)/python -m compileall -q .venv/lib/python*/site-packages/verax; wait
	@touch $@

# The oldest versions have wheels for the oldest Python that is allowed.
.venv-oldest/installed: .venv/bin/python $(SOURCES)
	$(PIP_INSTALL) uv
	$(BIN)/uv venv --quiet --clear --python 3.11 .venv-oldest
	$(BIN)/uv pip install --quiet --python .venv-oldest --resolution lowest-direct '.[all]' --group oldest
	@touch $@

# Without the compiler array calls answer.
.venv-nonumba/installed: .venv/bin/python $(SOURCES)
	$(PIP_INSTALL) uv
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python .venv-nonumba
	$(BIN)/uv pip install --quiet --python .venv-nonumba '.[all]' --group oldest
	$(BIN)/uv pip uninstall --quiet --python .venv-nonumba numba llvmlite
	@touch $@
