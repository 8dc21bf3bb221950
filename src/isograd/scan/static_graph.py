"""What MindSpore's static graph makes of a file's networks otherwise than Python, as hazards.

In a port the code is what the compiler gets; in torch code only those constructs are reported that
conversion leaves as they are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from isograd.scan.model import Hazard
from isograd.static_graph.find import find_in_file
from isograd.static_graph.rule import SILENT, Rule
from isograd.static_graph.scope import FileScope
from isograd.static_graph.table import consequence, rules

#: Before each rule's code, so that hazards of the static graph are known as such.
PREFIX = "compiled."
_ENDS = {
    "refused": "jit and GRAPH_MODE do not compile this.",
    "gradient-lost": "Under jit and GRAPH_MODE the gradient is lost here, and nothing says so.",
    "gradient-differs": "Under jit and GRAPH_MODE the gradient is another, and nothing says so.",
    "differs": "Under jit and GRAPH_MODE the result is another, and nothing says so.",
}


def framework_of(file: FileScope) -> str:
    """Which framework a file is written for, by its imports: mindspore, torch, or empty."""
    roots = {name.partition(".")[0] for name in file.imports.values()}
    return next((name for name in ("mindspore", "torch") if name in roots), "")


def static_graph_hazards(tree: ast.Module) -> Iterator[Hazard]:
    """The constructs of a file that the static graph takes otherwise, each line and rule once."""
    file = FileScope(tree)
    framework = framework_of(file)
    if not framework:
        return
    seen: set[tuple[str, int]] = set()
    for found in find_in_file(file, is_torch=framework == "torch"):
        if (found.code, found.line) in seen:
            continue
        seen.add((found.code, found.line))
        rule, ends = rules()[found.code], consequence(found.code)
        if ends not in _ENDS:
            continue
        when = "After conversion: " if framework == "torch" else ""
        yield Hazard(
            PREFIX + rule.code,
            found.line,
            f"{when}{_ENDS[ends]} {rule.message}",
            rule.advice,
            is_silent=ends in SILENT,
        )


def static_rules() -> tuple[Rule, ...]:
    """Every rule of the static graph, for reports that list rules."""
    return tuple(rules().values())
