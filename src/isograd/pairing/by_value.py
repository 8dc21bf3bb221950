"""Pairing by value: a port that already holds the converted weights names its partners itself.

Only values that vary count (a new norm's ones equal every other norm's), and only where exactly
one candidate has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from isograd.frameworks.base import ParameterInfo
from isograd.metrics import is_close
from isograd.pairing.results import ParameterPair, Values
from isograd.pairing.transforms import Identity, Transform, Transpose, transform_between
from isograd.tensors import Array

#: float32 weights survive a conversion exactly; half precision in between leaves about this.
RELATIVE_TOLERANCE = 1e-3


def settled_by_value(pairs: Sequence[ParameterPair], values: Values) -> list[ParameterPair]:
    """The pairs, with doubts about the partner or the orientation removed where values tell."""
    settled = []
    for pair in pairs:
        doubtful = pair.ambiguous_with or pair.may_be_transposed
        if not doubtful or len(pair.reference) != 1 or len(pair.port) != 1:
            settled.append(pair)
            continue
        value = values("reference", pair.reference[0])
        candidates = (pair.port[0], *pair.ambiguous_with)
        found = [
            (name, transform)
            for name in candidates
            for transform in _equal_under(value, values("port", name), pair.transform)
        ]
        if len(found) != 1:
            settled.append(pair)
            continue
        settled.append(
            replace(
                pair,
                port=(found[0][0],),
                transform=found[0][1],
                how="value",
                ambiguous_with=(),
                may_be_transposed=False,
            )
        )
    return settled if _are_distinct(settled, pairs) else list(pairs)


def pair_by_value(
    reference: Sequence[ParameterInfo], port: Sequence[ParameterInfo], values: Values
) -> list[ParameterPair]:
    """Pairs of parameters, unpaired so far, that hold the same values and are alone in that."""
    port_values = {info.name: values("port", info.name) for info in port}
    matches: list[tuple[str, str, Transform]] = []
    for info in reference:
        value = values("reference", info.name)
        for name, candidate in port_values.items():
            matches.extend(
                (info.name, name, transform) for transform in _equal_under(value, candidate, None)
            )
    pairs = []
    for name, partner, transform in matches:
        if sum(name == match[0] or partner == match[1] for match in matches) == 1:
            pairs.append(ParameterPair((name,), (partner,), transform, "value"))
    return pairs


def _equal_under(value: Array, candidate: Array, first: Transform | None) -> list[Transform]:
    """The transforms that make one array of the other; none where the values do not vary."""
    if value.size < 2 or bool(np.all(value == value.flat[0])):
        return []
    transforms: list[Transform] = []
    suggested = transform_between(
        value.shape, candidate.shape, same_library_kind=False, same_name=False
    )
    for transform in (first, suggested, Transpose((1, 0))):
        if isinstance(transform, Transpose) and len(transform.axes) != value.ndim:
            continue
        if transform is not None and transform not in transforms:
            transforms.append(transform)
    equal = [
        transform
        for transform in transforms
        if is_close(transform.apply([value])[0], candidate, RELATIVE_TOLERANCE)
    ]
    return equal[:1] if Identity() in equal else equal


def _are_distinct(settled: Sequence[ParameterPair], before: Sequence[ParameterPair]) -> bool:
    """Whether settling gave no parameter of the port to more pairs than it had."""

    def repeated(pairs: Sequence[ParameterPair]) -> int:
        return len(pairs) - len({pair.port for pair in pairs})

    return repeated(settled) <= repeated(before)
