"""What MindSpore's static graph makes of a file's networks otherwise than Python, as hazards.

In a port the code is what the compiler gets; in torch code only those constructs are reported that
conversion leaves as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

from isograd.scan.model import Hazard
from isograd.static_graph.across import RUNTIME_CALL
from isograd.static_graph.find import find_in_file
from isograd.static_graph.rule import SILENT, Occurrence, Rule
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


def static_graph_hazards(file: FileScope) -> Iterator[Hazard]:
    """The constructs of a file that the static graph takes otherwise, each line and rule once.

    What a function of another file of the project holds is reported where it is called.
    """
    framework = file.framework
    if not framework:
        return
    seen: set[tuple[str, int]] = set()
    for found in find_in_file(file, is_torch=framework == "torch"):
        ends = found.verdict or consequence(found.code)
        if (found.code, found.line) in seen or ends not in _ENDS:
            continue
        seen.add((found.code, found.line))
        rule = RUNTIME_RULE if found.code == RUNTIME_CALL else rules()[found.code]
        when = "After conversion: " if framework == "torch" else ""
        yield Hazard(
            PREFIX + rule.code,
            found.line,
            f"{when}{_ENDS[ends]} {_reason(found, rule)}",
            rule.advice,
            is_silent=ends in SILENT,
        )


def _reason(found: Occurrence, rule: Rule) -> str:
    """Why, and in which function of another file."""
    if found.verdict:
        detail = f" ({found.detail})" if found.detail else ""
        return f"{found.inside} was executed so{detail}."
    return f"{found.inside} is called: {rule.message}" if found.inside else rule.message


#: A runtime function that was executed compiled, and ended so.
RUNTIME_RULE = Rule(
    RUNTIME_CALL,
    "A runtime function that was executed under jit and GRAPH_MODE did not end as eagerly.",
    "Keep what calls it eager, or write it with MindSpore's operators alone.",
)


def static_rules() -> tuple[Rule, ...]:
    """Every rule of the static graph, for reports that list rules."""
    return (*rules().values(), RUNTIME_RULE)
