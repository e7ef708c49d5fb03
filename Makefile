# One command reads the book, another tests it. Both need make and Python 3.11 or
# newer, and set up the rest in .venv.

PYTHON ?= python3
VENV ?= .venv
PORT ?= 8000
JOBS ?= 2
SAMPLE ?= 400
SEED ?= 0

BIN := $(VENV)/bin
READY := $(VENV)/ready
PAGES := _build/html

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYTHONUTF8 := 1

.DEFAULT_GOAL := help
.PHONY: help ready book serve pdf test test-slow check format mutants notebooks one-file lab lock repository clean distclean

help:  ## Show what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Nothing is installed but files whose hashes are written down. PyTorch's build without
# CUDA comes first, where pip finds one; the other needs the libraries of NVIDIA.
PIP := $(BIN)/python -m pip install --quiet --no-compile
LOCKED := $(PIP) --no-deps --only-binary :all: --require-hashes --requirement

$(READY): requirements.lock nvidia.lock cpu.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'The book needs Python 3.11 or newer: make PYTHON=python3.12 ...'; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
	  { rm -rf $(VENV); echo 'On Debian and Ubuntu, install python3-venv.'; exit 1; }
	@$(LOCKED) cpu.lock 2>/dev/null || true
	$(LOCKED) requirements.lock
	@$(BIN)/python -c 'import torch' 2>/dev/null || $(LOCKED) nvidia.lock
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

ready: $(READY)

book: $(READY)  ## Build the pages, after setting up .venv the first time
	$(BIN)/jupyter-book build . -n -W --keep-going
	@echo
	@echo 'Open file://$(CURDIR)/$(PAGES)/index.html, or type: make serve'

serve: book  ## Build the pages and serve them on this computer: make serve PORT=8000
	@echo 'Open http://localhost:$(PORT), stop with Ctrl-C'
	@$(BIN)/python -m http.server $(PORT) --bind 127.0.0.1 --directory $(PAGES)

pdf: book  ## Write the whole book as one PDF to take along
	@VENV=$(VENV) $(PYTHON) -m book_tools.chromium
	$(BIN)/python -m book_tools.pdf

# Without a browser it stops at once. Two workers share the cores, so their threads wait
# without spinning. What takes longest comes first.
test:  ## Run the tests: code, chapters replayed and compared, pages in a browser
	@VENV=$(VENV) $(PYTHON) -m book_tools.chromium
	@$(MAKE) --no-print-directory check book
	OMP_WAIT_POLICY=passive $(BIN)/python -m pytest tests/test_site.py book tests --nbval --nbval-current-env \
	  --nbval-cell-timeout 900 -n $(JOBS) --dist loadfile --no-loadscope-reorder -m "not slow"

test-slow: $(READY)  ## Run the rest: runs that are stopped, installations, another browser
	$(BIN)/python -m pytest tests -n $(JOBS) --dist load -m slow

check: $(READY)  ## Run the quick tests: lint, imports, spelling, structure of the chapters
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell .
	$(BIN)/lint-imports --no-logo --no-cache
	$(BIN)/python -m pytest -q tests/test_book.py

format: $(READY)  ## Sort imports and format .py files and notebooks
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

mutants: $(READY)  ## Change the library in one spot at a time; list what no test sees
	OMP_NUM_THREADS=1 $(BIN)/python -m book_tools.mutants --sample $(SAMPLE) --seed $(SEED) $(if $(PACKAGE),--package $(PACKAGE))

notebooks: $(READY)  ## Execute all chapters and store them clean
	$(BIN)/python -m book_tools.notebooks
	$(BIN)/python -m book_tools.pencil_page
	$(BIN)/python -m book_tools.exercise_list

one-file: $(READY)  ## Write chapter 0 as one plain Python file, one_sitting.py
	$(BIN)/python -m book_tools.one_file

lab: $(READY)  ## Open the chapters in JupyterLab
	$(BIN)/python -m pip freeze --exclude-editable > $(VENV)/versions.txt
	$(PIP) jupyterlab ipywidgets --constraint $(VENV)/versions.txt
	$(BIN)/jupyter lab book

lock: $(READY)  ## Write down the hashes of all packages, after a change of requirements.txt
	$(PIP) uv==0.13.9
	$(BIN)/python -m book_tools.lock

repository: $(READY)  ## Stamp an address: make repository URL=https://github.com/owner/name
	$(BIN)/python -m book_tools.repository '$(URL)'

clean:  ## Remove what was built
	rm -rf _build .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

distclean: clean  ## Remove .venv as well
	rm -rf $(VENV) *.egg-info
