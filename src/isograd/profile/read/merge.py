"""What several files say of one run becomes one profile."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from isograd.profile.model import (
    Collectives,
    Link,
    Operator,
    Profile,
    Queue,
    RankTimes,
    Refusal,
    Steps,
    no_collectives,
    no_steps,
)
from isograd.profile.read.step_files import merge_links


def merge(source: str, parts: Sequence[Profile], refused: tuple[Refusal, ...] = ()) -> Profile:
    """Join what the files of one run hold; where several hold the same, the fullest counts."""
    recorded = next((part for part in parts if part.host is not None), None)
    return Profile(
        source=source,
        framework=_first(part.framework for part in parts),
        device=_device(parts),
        spans=max((p.spans for p in parts if p.spans is not None), key=len, default=None),
        base_ns=max(parts, key=lambda p: -1 if p.spans is None else len(p.spans)).base_ns,
        memory_peak=next((p.memory_peak for p in parts if p.memory_peak is not None), None),
        peaks=recorded.peaks if recorded else None,
        memory=next((part.memory for part in parts if part.memory is not None), None),
        steps=_steps(parts),
        operators=_operators(parts),
        modules=next((part.modules for part in parts if part.modules), ()),
        queues=_queues(parts),
        queue_waits={name: s for part in parts for name, s in part.queue_waits.items()},
        collectives=_collectives([part.collectives for part in parts]),
        ranks=_ranks(parts),
        links=merge_links([link for part in parts for link in _own_links(part)]),
        source_operators=recorded.source_operators if recorded else (),
        host=recorded.host if recorded else None,
        marks=recorded.marks if recorded else None,
        loader=recorded.loader if recorded else None,
        structure=recorded.structure if recorded else None,
        flops=next((part.flops for part in parts if part.flops == part.flops), float("nan")),
        files=tuple(part.source for part in parts),
        refused=refused,
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
    )


def _first(values: Iterable[str]) -> str:
    return next((value for value in values if value), "")


def _device(parts: Sequence[Profile]) -> str:
    named = {part.device for part in parts}
    return next((device for device in ("Ascend", "GPU", "CPU") if device in named), "")


def _steps(parts: Sequence[Profile]) -> Steps:
    return max((part.steps for part in parts), key=len, default=no_steps())


def _operators(parts: Sequence[Profile]) -> tuple[Operator, ...]:
    """The table that knows most: shapes first, then names, then types."""

    def knows(part: Profile) -> tuple[bool, bool, int]:
        timed = [operator for operator in part.operators if operator.self_s > 0]
        return (
            any(operator.shapes for operator in timed),
            any(operator.module for operator in timed),
            len(timed),
        )

    best = max(parts, key=knows, default=None)
    if best is None or not any(operator.self_s > 0 for operator in best.operators):
        return ()
    return _with_shapes(best.operators, parts)


def _with_shapes(found: tuple[Operator, ...], parts: Sequence[Profile]) -> tuple[Operator, ...]:
    """Shapes from files without times, where type and module leave one answer."""
    known: dict[tuple[str, str | None], set[tuple[str, str]]] = {}
    for part in parts:
        for operator in part.operators:
            if operator.calls == 0:
                key = (operator.name, operator.module)
                known.setdefault(key, set()).add((operator.shapes, operator.dtypes))
    if not known:
        return found
    filled = []
    for operator in found:
        choices = known.get((operator.name, operator.module), set())
        if not operator.shapes and len(choices) == 1:
            ((shapes, dtypes),) = choices
            filled.append(replace(operator, shapes=shapes, dtypes=dtypes))
        else:
            filled.append(operator)
    return tuple(filled)


def _queues(parts: Sequence[Profile]) -> tuple[Queue, ...]:
    """Operators' queues from the file with most samples; the device's queues beside them."""
    inner = [part.queues for part in parts if any(queue.number >= 0 for queue in part.queues)]
    outer = [queue for part in parts for queue in part.queues if queue.number < 0]
    best = max(inner, key=lambda queues: sum(queue.sizes.size for queue in queues), default=())
    return (*best, *outer)


def _collectives(found: Sequence[Collectives]) -> Collectives:
    filled = [part for part in found if len(part)]
    if not filled:
        return no_collectives()
    columns = ("rank", "step", "start_ns", "duration_ns", "size_bytes", "ready_ns")
    joined = {name: np.concatenate([getattr(part, name) for part in filled]) for name in columns}
    return Collectives(name=tuple(name for part in filled for name in part.name), **joined)


def _ranks(parts: Sequence[Profile]) -> tuple[RankTimes, ...]:
    by_rank: dict[int, RankTimes] = {}
    for part in parts:
        for times in part.ranks:
            old = by_rank.get(times.rank)
            by_rank[times.rank] = times if old is None else _fill(old, times)
    return tuple(by_rank[rank] for rank in sorted(by_rank))


def _fill(old: RankTimes, new: RankTimes) -> RankTimes:
    names = ("step_s", "compute_s", "exposed_communication_s", "wait_s", "flops")
    values = {name: getattr(old, name) for name in names}
    for name, value in values.items():
        if value != value:
            values[name] = getattr(new, name)
    return RankTimes(old.rank, **values)


def _own_links(part: Profile) -> tuple[Link, ...]:
    return part.links
