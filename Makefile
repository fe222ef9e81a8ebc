# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo gui screenshots test test-all lint bench clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "make: Python's venv module is missing; on Debian: apt-get install python3-venv" >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.core: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.all: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[gui,dask,plots,arviz,codecs,heif,test,lint]'
	@touch $(VENV)/.core $@

$(VENV)/.qt: .ci/qt-libraries $(VENV)/.all
	.ci/qt-libraries $(BIN)/python
	@touch $@

# Plain `torch` is several GB of CUDA on Linux; this release has a build without it where one is at hand.
$(VENV)/.train: $(VENV)/.all
	$(BIN)/python -m pip install --quiet torch==2.13.0
	$(BIN)/python -m pip install --quiet --editable '.[train]'
	@touch $@

demo: $(VENV)/.core
	$(BIN)/denoise demo --overwrite

gui: $(VENV)/.qt
	$(BIN)/denoise gui

screenshots: $(VENV)/.qt
	.ci/qt-libraries $(BIN)/python screen
	xvfb-run -a -s '-screen 0 2600x1700x24' $(BIN)/python docs/screenshots/make.py docs/screenshots
	QT_SCALE_FACTOR=2 xvfb-run -a -s '-screen 0 2600x1700x24' $(BIN)/python docs/screenshots/make.py docs/screenshots

test: $(VENV)/.qt
	QT_QPA_PLATFORM=offscreen $(BIN)/python -m pytest

test-all: $(VENV)/.qt $(VENV)/.train
	.ci/qt-libraries $(BIN)/python screen
	QT_QPA_PLATFORM=offscreen $(BIN)/python -m pytest -m ''

lint: $(VENV)/.all
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.all
	$(BIN)/python -m pip install --quiet bm3d
	$(BIN)/python benchmarks/gibbs.py
	$(BIN)/python benchmarks/samplers.py

clean:
	rm -rf $(VENV) demo build dist .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
