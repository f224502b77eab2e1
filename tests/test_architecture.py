"""The layers stay apart: imports go one way, files stay short, and importing sfumato imports no engine.

Read the list below from the top: each layer may import those above it and nothing else.
"""

from __future__ import annotations

import ast
import graphlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import sfumato as sf

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "sfumato"
LAYERS = [
    ("_types", "_version", "errors"),
    ("exact", "files", "interruptions", "locks", "naming", "pages", "reading"),
    ("calls",),
    ("noise", "linear"),
    ("domain",),
    ("values",),
    ("counting",),
    ("relations",),
    ("policies",),
    ("workload",),
    ("promise",),
    ("ledger", "signing", "vault"),
    ("mechanism",),
    ("quantiles",),
    ("release",),
    ("figures",),
    ("report",),
    ("publication",),
    ("planning",),
    ("publishing",),
    ("allocation",),
    ("stream",),
    ("auditing",),
    ("statement", "verification"),
    ("app",),
]
HEIGHT = {name: level for level, names in enumerate(LAYERS) for name in names}
# A door is one line inside a function that leads upwards when it is called, and never when it is imported.
DOORS = {
    ("ledger/view.py", "statement"),
    ("planning/means.py", "publishing"),
    ("planning/plan.py", "publishing"),
    ("publication/publication.py", "planning"),
    ("release/answer.py", "figures"),
    ("release/figured.py", "figures"),
    ("release/outward.py", "auditing"),
    ("release/outward.py", "report"),
    ("release/outward.py", "statement"),
    ("release/release.py", "publication"),
    ("release/release.py", "publishing"),
    ("relations/relation.py", "policies"),
}
HEAVY = ["duckdb", "polars", "pandas", "pyarrow", "matplotlib", "networkx", "pyspark", "typer", "rich"]
HEAVY += ["geopandas", "shapely", "pyproj", "h3", "starlette", "uvicorn"]
LONGEST_FILE = 400


def files(pattern="*.py", under=SOURCE):
    return sorted(path for path in under.rglob(pattern) if "__pycache__" not in path.parts)


def imports(path):
    """(layer imported, whether inside a function) for every import of sfumato in a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    lazy = {id(node) for function in ast.walk(tree) if isinstance(function, FUNCTION) for node in ast.walk(function)}
    types = [block for block in tree.body if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"]
    lazy |= {id(node) for block in types for node in ast.walk(block)}  # a door says in its signature where it leads
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the direction"
            modules = [node.module or ""]
            if node.module == "sfumato":
                modules = [f"sfumato.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        else:
            continue
        for module in modules:
            if module == "sfumato" or module.startswith("sfumato."):
                yield (module.split(".")[1] if "." in module else ""), id(node) in lazy


FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def layer_of(path):
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def test_every_package_has_its_layer():
    names = {path.stem if path.is_file() else path.name for path in SOURCE.iterdir() if path.suffix in ("", ".py")}
    assert names - {"__init__", "__main__", "__pycache__"} <= set(HEIGHT)


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_one_way(path):
    here = layer_of(path)
    if here in ("__init__", "__main__"):
        return  # the public face sees everything
    for there, lazy in imports(path):
        if here == "app":
            continue  # the outermost layer may use the public face itself
        assert there in HEIGHT, f"imports the public face or an unknown layer {there!r}"
        if lazy and (path.relative_to(SOURCE).as_posix(), there) in DOORS:
            continue
        below = HEIGHT[there] < HEIGHT[here] or there == here
        assert below, f"imports {there!r}, which is not below {here!r}"


def imported(path):
    """(package or module, the same with the name taken from it) for every import, lazy ones too, but not those that a
    type checker alone reads.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typed = [node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)]
    skipped = {id(node) for block in typed for node in ast.walk(block)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and id(node) not in skipped:
            yield from ((node.module, f"{node.module}.{alias.name}") for alias in node.names)


def test_no_modules_lead_to_each_other_but_through_the_doors():
    """Also where an import is inside a function: what is tied together can only be read, and moved, together."""
    dotted = {".".join(("sfumato", *path.relative_to(SOURCE).with_suffix("").parts)): path for path in files()}
    modules = {name.removesuffix(".__init__"): path for name, path in dotted.items()}
    leads = {}
    for name, path in modules.items():
        doors = [there for place, there in DOORS if place == path.relative_to(SOURCE).as_posix()]
        found = {inner if inner in modules else outer for outer, inner in imported(path)} & set(modules)
        leads[name] = {other for other in found if other.split(".")[1:2] not in [[door] for door in doors]}
    graphlib.TopologicalSorter(leads).prepare()  # refuses a circle, and names it


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_files_stay_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE


def test_every_module_says_what_it_is_for():
    for path in files():
        assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), path


@pytest.mark.parametrize("path", files("__init__.py")[1:], ids=lambda path: path.parent.name)
def test_every_package_says_what_its_room_is_for_and_what_may_not_happen_in_it(path):
    said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert len(said.splitlines()) >= 3


def test_nothing_checks_input_with_assert():
    """Assertions vanish under `python -O`; a refusal must not."""
    for path in files():
        found = [node.lineno for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Assert)]
        assert not found, (path, found)


# What a caller hands in may be one or the other: a plan or a mechanism, a matrix or an operator.
HANDED_IN = {"Matrix", "Mechanism", "OrderMechanism", "Refinable"}
# How counting reads the column of an axis follows from what the axis is.
READ = {"counting": {"Ordered", "Timed"}}


def classes_asked_for(path):
    """(package, name) of every class of sfumato that a file asks objects about with isinstance."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    taken = {
        alias.asname or alias.name: (node.module.split(".")[1], alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sfumato.")
        for alias in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
            yield from (taken[name.id] for name in ast.walk(node.args[1]) if getattr(name, "id", None) in taken)


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_objects_answer_for_themselves(path):
    """Nobody outside a package asks what class something is, unless it is a value of the public face or an error."""
    here = layer_of(path)
    outside = {name for there, name in classes_asked_for(path) if there not in (here, "errors")}
    assert outside <= set(sf.__all__) | HANDED_IN | READ.get(here, set())


def test_importing_sfumato_imports_no_engine_and_no_interface():
    """Whatever a user does not use is not loaded: not the engines, not the plots, not the command line."""
    code = "import sys, sfumato; print(' '.join(sorted({name.split('.')[0] for name in sys.modules})))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(run.stdout.split()) & set(HEAVY)


def test_importing_sfumato_loads_little_of_scipy():
    code = "import sys, sfumato; print(' '.join(name for name in sys.modules if name.startswith('scipy.')))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[1] for name in run.stdout.split()}
    assert not loaded & {"stats", "optimize", "spatial", "signal", "interpolate", "integrate", "ndimage"}


@pytest.mark.parametrize("name", sf.__all__)
def test_every_public_name_says_what_it_is(name):
    thing = getattr(sf, name)
    if inspect.isclass(thing) or callable(thing):
        assert inspect.getdoc(thing), name
        assert inspect.getdoc(thing) != inspect.getdoc(object), name


def test_the_public_face_is_sorted_and_complete():
    assert list(sf.__all__) == sorted(sf.__all__, key=lambda name: (not name.isupper(), name))  # as ruff sorts
    assert all(hasattr(sf, name) for name in sf.__all__)


@pytest.mark.parametrize("word", ["/work" + "/", "/tmp" + "/", "/home" + "/", "/root" + "/"])
def test_no_file_speaks_of_the_machine_it_was_written_on(word):
    found = []
    for folder in ("src", "tests", "docs", "bench", "examples"):
        for path in files("*", ROOT / folder):
            if path.is_file() and path.suffix in (".py", ".md", ".toml", ".css", ".html", ".txt", ".svg", ""):
                found += [str(path)] if word in path.read_text(encoding="utf-8", errors="ignore") else []
    for path in (ROOT / "README.md", ROOT / "pyproject.toml", ROOT / "Makefile"):
        found += [str(path)] if path.exists() and word in path.read_text(encoding="utf-8") else []
    assert not found
