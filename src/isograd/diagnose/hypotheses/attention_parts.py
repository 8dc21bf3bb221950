"""Where attention stands in a unit: its scores, its softmax, its mask."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isograd.diagnose.flow import ARRANGING, PRODUCTS, SCORING, Flow, name_of
from isograd.diagnose.hypothesis import operands
from isograd.frameworks.base import FunctionSite, Operand

#: Functions that lead from the scores' mask back to what it was made of.
MASKING = frozenset(
    """view reshape transpose unsqueeze squeeze getitem expand to float bool type_as logical_not
    invert bitwise_not eq ne masked_fill mul add sub rsub where and or logical_and logical_or
    bitwise_and bitwise_or clone""".split()
)
_TRIANGLES = frozenset("triu tril".split())
_ORDERS = frozenset("ge gt le lt".split())


def softmax_of(flow: Flow, site: FunctionSite) -> FunctionSite | None:
    """The softmax of an attention that a product's result reaches; None where it is no score."""
    if name_of(site) not in PRODUCTS or any(
        o.source.startswith("parameter.") for o in operands(site)
    ):
        return None
    found = flow.ahead(site, lambda s: name_of(s) == "softmax", SCORING)
    return found if found is not None and weighs(flow, found) else None


def weighs(flow: Flow, softmax: FunctionSite) -> bool:
    """Whether a softmax's result goes into a product, as attention weights do."""
    through = ARRANGING | {"mul", "div", "masked_fill", "where", "sum", "add"}
    return flow.ahead(softmax, lambda s: name_of(s) in PRODUCTS, through) is not None


def is_score(flow: Flow, site: FunctionSite) -> bool:
    """Whether a product of query and key led to this site, which leads to attention's softmax."""
    if name_of(site) == "softmax":
        softmax: FunctionSite | None = site
    else:
        softmax = flow.ahead(site, lambda s: name_of(s) == "softmax", SCORING)
    return softmax is not None and weighs(flow, softmax)


def scored_operand(flow: Flow, site: FunctionSite) -> str | None:
    """The argument of an `add`, `where` or `masked_fill` that holds the scores."""
    if site.place.function == "masked_fill":
        return "input"
    for name in ("input", "other"):
        operand = site.arguments.get(name)
        if not isinstance(operand, Operand):
            continue
        maker = flow.maker(operand)
        if maker is None:
            continue
        if softmax_of(flow, maker) is not None:
            return name
        if name_of(maker) in SCORING and any(
            softmax_of(flow, s) is not None for s in flow.behind(operand, SCORING)
        ):
            return name
    return None


def is_causal(flow: Flow, mask: Any) -> bool:
    """Whether a mask hides the future: by how it is made, else by its shape."""
    if not isinstance(mask, Operand):
        return False
    if any(_compares_positions(s) for s in flow.behind(mask, MASKING)):
        return True
    shape = mask.shape
    leading = 1
    for size in shape[:-2]:
        leading *= size
    return len(shape) >= 2 and shape[-1] == shape[-2] > 1 and leading == 1


def _compares_positions(site: FunctionSite) -> bool:
    """Whether a function makes a triangle: `tril`, or positions beside positions."""
    name = name_of(site)
    both = isinstance(site.arguments.get("other"), Operand)
    return name in _TRIANGLES or (name in _ORDERS and both)


def is_learned(flow: Flow, operand: Any) -> bool:
    """Whether what is added to the scores is a bias that is learned, not a mask."""
    through = MASKING | {"embedding", "permute", "index", "repeat", "contiguous", "sigmoid"}
    return any(s.startswith("parameter.") for s in flow.sources(operand, through))


def numbers_between(flow: Flow, score: FunctionSite, softmax: FunctionSite) -> float:
    """The plain number by which the scores are multiplied in all, before and after the product."""
    result = 1.0
    for operand in operands(score):
        for site in flow.behind(operand, ARRANGING | {"mul", "div"}):
            result *= _number(site)
    for site in _between(flow, score, softmax):
        result *= _number(site)
    return result


def _between(flow: Flow, score: FunctionSite, softmax: FunctionSite) -> Iterator[FunctionSite]:
    operand = next(iter(operands(softmax)), None)
    for site in flow.behind(operand, SCORING):
        given = site.arguments.get("input")
        if site is not score and any(s is score for s in flow.behind(given, SCORING)):
            yield site


def _number(site: FunctionSite) -> float:
    other = site.arguments.get("other")
    if not isinstance(other, (int, float)) or isinstance(other, bool) or not other:
        return 1.0
    if site.place.function == "mul":
        return float(other)
    return 1.0 / float(other) if site.place.function == "div" else 1.0
