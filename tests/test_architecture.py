"""The house rules that a machine can check: which module may import which, and no Qt in the library."""

import ast

import pytest

from conftest import ROOT

# Imports point down this list only; modules of one row do not import each other.
FLOORS = [
    ["__main__"],
    ["cli"],
    ["paper"],
    ["evaluation", "outputs", "particles", "training"],
    ["api"],
    ["run"],
    ["presets"],
    ["fields", "outcome"],
    ["samplers"],
    ["learned"],
    ["posterior"],
    ["target"],
    ["stencil"],
    ["priors"],
    ["conjugate_gradients", "gsm", "noise_files"],
    ["calibration", "executors", "exp2", "images", "measure", "noise"],
    ["noise_estimate"],
    ["jpeg_marks", "noise_meter"],
    [
        "camera",
        "checks",
        "files",
        "jit",
        "metrics",
        "plane_noise",
        "panels",
        "pieces",
        "units",
    ],
    ["colour", "data", "networks", "random_fields", "threads"],
]
FLOOR = {module: depth for depth, row in enumerate(FLOORS) for module in row}
FILES = sorted((ROOT / "denoiser").rglob("*.py"))


def _module(path):
    parts = path.relative_to(ROOT / "denoiser").with_suffix("").parts
    return parts[0] if len(parts) > 1 or parts[0] != "__init__" else None


def _imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_down(path):
    here = _module(path)
    if here is None:
        return  # denoiser/__init__.py is the public page
    for name in _imports(path):
        parts = name.split(".")
        if parts[0] != "denoiser" or len(parts) < 2 or parts[1] not in FLOOR or parts[1] == here:
            continue
        assert FLOOR[parts[1]] > FLOOR[here], f"{here} must not import {parts[1]}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_library_knows_no_qt(path):
    for name in _imports(path):
        assert name.split(".")[0] not in ("PyQt5", "qtpy", "superqt", "pyqtgraph", "app", "denoiser_app")


@pytest.mark.parametrize("path", [*FILES, *(ROOT / "app").glob("*.py")], ids=lambda p: str(p.relative_to(ROOT)))
def test_a_file_is_a_few_pages(path):
    lines = path.read_text().count("\n")
    assert lines <= 350


def test_every_module_has_a_floor():
    assert {_module(path) for path in FILES} - {None} <= set(FLOOR)
