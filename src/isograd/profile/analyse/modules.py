"""Operators by the module and the line that called them, from one step whose lines were kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace

from isograd.profile.model import Operator, SourceOperator

#: Operators that torch makes of others before a dispatch mode sees them.
_INNER = {
    "aten::contiguous": ("aten::clone",),
    "aten::reshape": ("aten::clone", "aten::_unsafe_view"),
    "aten::to": ("aten::_to_copy",),
    "aten::type_as": ("aten::_to_copy",),
    "aten::item": ("aten::_local_scalar_dense",),
}


def as_run(sources: Sequence[SourceOperator], run: Collection[str]) -> tuple[SourceOperator, ...]:
    """Calls under the names of the operators that ran.

    MindSpore's primitive `MatMulExt` runs as `MatMul` where a device has no operator of its own
    for it. run: types of the operators in the trace.
    """
    return tuple(
        replace(source, name=plain)
        if source.name not in run and (plain := source.name.removesuffix("Ext")) in run
        else source
        for source in sources
    )


def with_places(
    operators: Sequence[Operator], sources: Sequence[SourceOperator]
) -> tuple[Operator, ...]:
    """Operators with the line and module that call them most, where shapes and dtypes agree.

    An operator that no kept call matches stays without a line: it is never guessed.
    """
    exact: defaultdict[tuple[str, str, str], list[SourceOperator]] = defaultdict(list)
    by_name: defaultdict[str, list[SourceOperator]] = defaultdict(list)
    for source in sources:
        exact[(source.name, source.shapes, source.dtypes)].append(source)
        by_name[source.name].append(source)
    placed = []
    for operator in operators:
        inner = _INNER.get(operator.name, ())
        names = (operator.name, *inner)
        keys = [(name, operator.shapes, operator.dtypes) for name in names]
        keys += operator.callers
        found = next((exact[key] for key in keys if key in exact), None)
        if found is None:
            named = by_name.get(operator.name, [])
            is_one_line = len({source.where for source in named}) == 1
            found = named if is_one_line and not operator.shapes else []
        if not found:
            placed.append(operator)
            continue
        best = max(found, key=lambda source: source.count)
        placed.append(
            replace(operator, where=best.where or None, module=best.module or operator.module)
        )
    return tuple(placed)
