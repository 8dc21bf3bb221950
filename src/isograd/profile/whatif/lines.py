"""How long lines that call many operators take, by the operators of the trace and what is between.

A sample each millisecond does not see a line that takes a millisecond of a step. The trace does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from isograd.profile.analyse.kinds import ON_HOST, Kind, kind_of
from isograd.profile.analyse.operators import SMALL_CALL_NS, Mask, readable_shapes
from isograd.profile.model import Operator, Phase, SourceOperator
from isograd.profile.spans import Floats, Ints, Spans
from isograd.profile.whatif.changes import SHORT_NS
from isograd.profile.whatif.tasks import MAIN, Role, Step, Work

#: The line of a task that no known line calls alone.
_UNKNOWN = -1


def dispatch_of_lines(
    work: Work,
    spans: Spans,
    operators: Sequence[Operator],
    sources: Sequence[SourceOperator],
) -> dict[str, float]:
    """Seconds per step in the operators that a line dispatches and in its Python, by the line.

    Lines of the backward pass and of the data are left out, and operators that several lines call
    alike. Work of operators is left out, too.
    """
    lines: list[str] = []
    table = _line_by_operator(spans, operators, sources, lines)
    if not table or not work.steps:
        return {}
    total: Floats = np.zeros(len(lines))
    for step in work.steps:
        line, counts = _lines_of_tasks(step, spans, table)
        own = step.duration_ns[step.lane == MAIN].astype(np.float64)
        chosen = counts & (line >= 0)
        total += np.bincount(line[chosen], own[chosen], len(lines))
    seconds = total / len(work.steps) / 1e9
    return {line: float(one) for line, one in zip(lines, seconds, strict=True) if one > 0}


def _line_by_operator(
    spans: Spans, operators: Sequence[Operator], sources: Sequence[SourceOperator], lines: list[str]
) -> dict[tuple[int, str], int]:
    """The line's number by name and readable shapes of operators that one line alone calls."""
    places: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for source in sources:
        is_left_out = source.phase in (Phase.BACKWARD, Phase.DATA)
        places[(source.name, source.shapes)].add("" if is_left_out else source.where)
    number = {text: code for code, text in enumerate(spans.texts)}
    found: dict[tuple[int, str], int] = {}
    shared: set[tuple[int, str]] = set()
    for operator in operators:
        keys = [(name, operator.shapes) for name in (operator.name, *_READS) if operator.where]
        called = set().union(*(places[key] for key in keys[:1] if key in places))
        if kind_of(operator.name) is Kind.SYNCHRONISATION:
            called = set().union(*(places[key] for key in keys if key in places))
        if not operator.is_outer or operator.name not in number or len(called) != 1:
            continue
        (where,) = called
        key = (number[operator.name], operator.shapes)
        if not where or where != operator.where:
            continue
        if where not in lines:
            lines.append(where)
        if found.setdefault(key, lines.index(where)) != lines.index(where):
            shared.add(key)
    return {key: line for key, line in found.items() if key not in shared}


#: How a read of one element is seen where lines are known: `aten::item` is only around it.
_READS = ("aten::_local_scalar_dense",)


def _lines_of_tasks(
    step: Step, spans: Spans, table: dict[tuple[int, str], int]
) -> tuple[Ints, Mask]:
    """The line of each task of the main lane, and whether it is dispatch or Python; both (tasks,).

    Python before an operator is its line's where it is short, or where that called the last, too.
    """
    main = step.lane == MAIN
    row, own = step.row[main], step.duration_ns[main]
    is_operator = step.of(Role.OPERATOR, Role.SYNCHRONISE)[main] & (row >= 0)
    line = np.full(row.size, _UNKNOWN, dtype=np.int64)
    place = np.flatnonzero(is_operator)
    if place.size:
        line[place] = _lines_of_rows(row[place], spans, table)
    before = np.where(is_operator, np.arange(row.size), 0)
    before = np.maximum.accumulate(before)
    after = np.where(is_operator, np.arange(row.size), row.size - 1)
    after = np.minimum.accumulate(after[::-1])[::-1]
    is_host = step.of(Role.HOST)[main]
    is_own = (line[before] == line[after]) | (own < SHORT_NS)
    line = np.where(is_host & is_own, line[after], line)
    kinds = np.asarray([kind_of(text) in ON_HOST for text in spans.texts], dtype=bool)
    is_dispatch = is_operator & ((own < SMALL_CALL_NS) | kinds[spans.name[np.maximum(row, 0)]])
    return line, np.asarray(is_host | is_dispatch)


def _lines_of_rows(rows: Ints, spans: Spans, table: dict[tuple[int, str], int]) -> Ints:
    """The line of each operator: that of the outermost one around it. Both (rows,)."""
    start = spans.start_ns[rows]
    end = np.maximum.accumulate(start + spans.duration_ns[rows])
    is_outer = np.concatenate([[True], start[1:] >= end[:-1]])
    outer = rows[np.maximum.accumulate(np.where(is_outer, np.arange(rows.size), 0))]
    keys = np.stack([spans.name[outer], spans.shapes[outer]], axis=1)
    distinct, which = np.unique(keys, axis=0, return_inverse=True)
    found = [
        table.get((int(name), "" if shapes < 0 else readable_shapes(spans.texts[shapes])), _UNKNOWN)
        for name, shapes in distinct.tolist()
    ]
    lines: Ints = np.asarray(found, dtype=np.int64)[which.reshape(-1)]
    return lines
