# One command reads the book, another tests it. Both need make and Python 3.11 or
# newer, and set up the rest in .venv.

PYTHON ?= python3
VENV ?= .venv
PORT ?= 8000
JOBS ?= 2

BIN := $(VENV)/bin
READY := $(VENV)/ready
TESTING := $(VENV)/ready-to-test
PAGES := _build/html

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYTHONUTF8 := 1

.DEFAULT_GOAL := help
.PHONY: help ready ready-to-test book serve pdf slides film student test test-slow check machine format mutants notebooks lab lock repository clean distclean

help:  ## Show what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# To read and to test, nothing is installed but files whose hashes are written down, with
# one exception: what PyTorch itself offers for a computer without a graphics card is not
# on the public index, and a third as large as what is. uv knows where it is; without it,
# pip takes what it finds.
PIP := $(BIN)/python -m pip install --quiet --no-compile
LOCKED := $(PIP) --no-deps --only-binary :all: --require-hashes --requirement
TORCH := $(shell sed -n 's/^\(torch==[0-9.]*\).*/\1/p' requirements.txt)
CPU := $(BIN)/uv pip install --quiet --python $(BIN)/python --torch-backend cpu --no-deps

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'The book needs Python 3.11 or newer: make PYTHON=python3.12 ...'; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
	  { rm -rf $(VENV); echo 'On Debian and Ubuntu, install python3-venv.'; exit 1; }
	$(LOCKED) requirements.lock
	@$(BIN)/python -c 'import importlib.metadata as m; m.version("torch")' 2>/dev/null || \
	  $(CPU) $(TORCH) 2>/dev/null || $(PIP) $(TORCH)
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

$(TESTING): $(READY) requirements-test.lock
	$(LOCKED) requirements-test.lock
	@touch $@

ready: $(READY)
ready-to-test: $(TESTING)

book: $(READY)  ## Build the pages, after setting up .venv the first time
	$(BIN)/jupyter-book build . -n -W --keep-going
	@echo
	@echo 'Open file://$(CURDIR)/$(PAGES)/index.html, or type: make serve'

serve: book  ## Build the pages and serve them on this computer: make serve PORT=8000
	@echo 'Open http://localhost:$(PORT), stop with Ctrl-C'
	@$(BIN)/python -m http.server $(PORT) --bind 127.0.0.1 --directory $(PAGES)

pdf: $(TESTING) book  ## Print every page as a PDF, into _build/pdf
	@VENV=$(VENV) $(PYTHON) -m book._ext.browser
	$(BIN)/python -m book._ext.pdf

slides: $(TESTING) book  ## Make slides of every chapter, HTML and PDF, into _build/slides
	@VENV=$(VENV) $(PYTHON) -m book._ext.browser
	$(BIN)/python -m book._ext.slides

film: $(TESTING) book  ## Film the machine of the front page for the README
	@VENV=$(VENV) $(PYTHON) -m book._ext.browser
	$(BIN)/python -m book._ext.film

student: $(READY)  ## Write the notebooks without solutions, into _build/student
	$(BIN)/python -m book._ext.students

# Two workers share the cores, so their threads wait without spinning. The end says what
# took longest.
REPLAY := OMP_WAIT_POLICY=passive $(BIN)/python -m pytest --nbval --nbval-current-env \
  --nbval-cell-timeout 900 -n $(JOBS) --dist loadfile --no-loadscope-reorder --durations 20

# Without a browser, one is installed first; without Node one test is skipped, and says
# what for. What takes longest comes first.
test:  ## Run the tests: code, all but the long notebooks replayed and compared, pages in a browser
	@VENV=$(VENV) $(PYTHON) -m book._ext.browser
	@! command -v npm >/dev/null || $(MAKE) --no-print-directory machine
	@$(MAKE) --no-print-directory check book
	$(REPLAY) tests/test_site.py book tests -m "not slow"

test-slow: $(TESTING)  ## Run the rest: notebooks that train for long, stopped runs, installations, exports
	$(REPLAY) book -m slow
	$(BIN)/python -m pytest tests -n $(JOBS) --dist load -m slow

check: $(TESTING)  ## Run the quick tests: lint, imports, spelling, structure of the chapters
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell .
	$(BIN)/lint-imports --no-logo --no-cache
	$(BIN)/python -m pytest -q tests/test_book.py

# Installed once, and again after the lock has changed.
MODULES := book/machine/node_modules/.package-lock.json
$(MODULES): book/machine/package-lock.json
	cd book/machine && npm ci --no-audit --no-fund
	@touch $@

machine: $(MODULES)  ## Check the pages' own script: bundles, style, types, its tests; needs Node 18 or newer
	cd book/machine && npm run check

format: $(TESTING)  ## Sort imports and format .py files and notebooks
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

mutants: $(TESTING)  ## Change the model in one spot at a time; list what no test sees
	$(PIP) mutmut==3.8.1
	OMP_NUM_THREADS=1 $(BIN)/mutmut run
	$(BIN)/mutmut results

notebooks: $(READY)  ## Execute all chapters and store them clean
	$(BIN)/python -m book._ext.notebooks
	$(BIN)/python -m book._ext.pencil_page

lab: $(READY)  ## Open the chapters in JupyterLab
	$(BIN)/python -m pip freeze --exclude-editable > $(VENV)/versions.txt
	$(PIP) jupyterlab ipywidgets --constraint $(VENV)/versions.txt
	$(BIN)/jupyter lab book

# Every package on every system, but PyTorch and what its build for NVIDIA brings along.
COMPILE := $(BIN)/uv pip compile --universal --python-version 3.11 --no-annotate --quiet --custom-compile-command "make lock"
lock: $(READY)  ## Write down the hashes of all packages, after a change of requirements
	@mkdir -p _build
	cat requirements.lock requirements-test.lock > _build/all.lock
	$(COMPILE) requirements.txt --output-file _build/all.lock
	left_out=$$(sed -En 's/^((torch|triton|cuda-|nvidia-)[^=]*)==.*/--no-emit-package \1/p' _build/all.lock); \
	for name in requirements requirements-test; do \
	  $(COMPILE) $$name.txt --constraint _build/all.lock --generate-hashes $$left_out \
	    --output-file $$name.lock || exit 1; done

repository: $(READY)  ## Stamp an address: make repository URL=https://github.com/owner/name
	$(BIN)/python -m book._ext.repository '$(URL)'

clean:  ## Remove what was built
	rm -rf _build mutants .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

distclean: clean  ## Remove .venv as well
	rm -rf $(VENV) *.egg-info
