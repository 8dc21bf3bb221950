"""Who imports whom is what docs/architecture.md says; no module imports itself through others."""

from __future__ import annotations

import ast
import functools
import graphlib
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "isograd"
FILES = {
    ".".join(("isograd", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(
        ".__init__"
    ): path
    for path in SOURCE.rglob("*.py")
}


def executed(tree: ast.Module) -> Iterator[ast.AST]:
    """The statements of a module, without what stands under `if TYPE_CHECKING:`."""
    left: list[ast.AST] = [tree]
    for node in left:
        inner = (getattr(node, name, ()) for name in ("body", "orelse", "finalbody", "handlers"))
        for child in chain(*inner, *(case.body for case in getattr(node, "cases", ()))):
            is_for_types = (
                isinstance(child, ast.If) and getattr(child.test, "id", "") == "TYPE_CHECKING"
            )
            if not is_for_types:
                left.append(child)
                yield child


def imported(module: str) -> set[str]:
    """The modules of isograd that a module imports when it runs, also inside functions."""
    found = set()
    for node in executed(ast.parse(FILES[module].read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            parts = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [part if part in FILES else node.module for part in parts]
        found |= {name for name in names if name in FILES and name != module}
    return found


@functools.cache
def imports() -> dict[str, set[str]]:
    """What each module imports; parsed by a test, since each process of tests imports this file."""
    return {module: imported(module) for module in FILES}


def room(module: str) -> str:
    """The file or folder directly below the package."""
    return [*module.split("."), "isograd"][1]


def allowed() -> dict[str, set[str]]:
    """The table of docs/architecture.md."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \|$", text, re.MULTILINE)
    return {name: set(re.findall(r"`(\w+)`", may)) for name, may in rows}


def test_imports_are_those_of_the_table() -> None:
    table = allowed()
    wrong = sorted(
        f"{module} imports {other}"
        for module, others in imports().items()
        for other in others
        if room(module) != room(other) and room(other) not in table.get(room(module), set())
    )
    assert wrong == []


def test_the_table_allows_nothing_that_is_not_used() -> None:
    used: dict[str, set[str]] = defaultdict(set)
    for module, others in imports().items():
        used[room(module)] |= {room(other) for other in others} - {room(module)}
    idle = {name: may - used[name] for name, may in allowed().items()}
    assert {name: may for name, may in idle.items() if may} == {}


def test_each_room_imports_only_rooms_above_it() -> None:
    above: set[str] = set()
    for name, may in allowed().items():
        assert may <= above, f"the row of {name} names {sorted(may - above)}, which stand below"
        above.add(name)


def test_no_module_imports_itself_through_others() -> None:
    graph = {
        module: {other for other in others if not module.startswith(f"{other}.")}
        for module, others in imports().items()
    }
    order = tuple(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError
    assert set(order) == set(FILES)
