"""From what differs to why: findings with their cause and fix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from isograd.data.compare.draws import parameter_of
from isograd.data.compare.intermediate import Value, in_layout
from isograd.data.compare.steps import Piece
from isograd.data.hypotheses.base import Observation, as_hwc
from isograd.data.hypotheses.decide import Decision, decide
from isograd.data.model import Cause, Difference
from isograd.data.pipelines.listing import cause_of
from isograd.findings import Finding, Fix, Level

#: Kinds of which what they do to the values says more than their name.
_MEASURED_KINDS = frozenset(
    ("function", "other", "dtype", "rescale", "to_tensor", "layout", "container")
)
#: The code of a difference for which isograd does not know the cause.
UNKNOWN = "data.differs"


def of_piece(piece: Piece, field: str, place: str) -> Difference:
    """The difference that a piece of two chains makes; place: the file of B's pipeline."""
    labels = [" → ".join(s.label for s in steps) for steps in (piece.steps_a, piece.steps_b)]
    where = next((step.where for step in piece.steps_b if step.where), place)
    transform = labels[0] or labels[1]
    if piece.draws is not None:
        return _of_draws(piece, field, labels, transform, where)
    found = _structural(piece, labels)
    decision = None if found is not None else decide(_observations(piece))
    if decision is not None:
        found = _of_decision(decision)
    if found is None:
        found = _declared(piece, labels)
    if found is None and not (piece.steps_a and piece.steps_b):
        found = _missing(piece, labels)
    message = _message(field, labels, found[0] if found else None)
    return Difference(
        Finding(
            found[0].id if found else UNKNOWN,
            Level.ERROR,
            message,
            evidence=tuple(
                f"{side}: {label}" for side, label in zip("AB", labels, strict=True) if label
            ),
            fix=Fix(found[1], where) if found and found[1] else None,
            advice="" if found and found[1] else "Compare the two transforms on one sample.",
        ),
        found[0] if found else None,
        field,
        transform,
    )


def _message(field: str, labels: Sequence[str], cause: Cause | None) -> str:
    where = f"field {field!r}: "
    if labels[0] and labels[1]:
        where += f"{labels[0]} in A and {labels[1]} in B differ"
    elif labels[0]:
        where += f"A applies {labels[0]}, which B does not"
    else:
        where += f"B applies {labels[1]}, which A does not"
    return where + (f": {cause.text}" if cause is not None and cause.text else "")


def _structural(piece: Piece, labels: Sequence[str]) -> tuple[Cause, str] | None:
    """A transform that only one side has, or transforms in another order."""
    count = len(piece.inputs)
    own = piece.steps_a or piece.steps_b
    is_known = any(step.kind not in _MEASURED_KINDS for step in own)
    if not (piece.steps_a and piece.steps_b) and is_known:
        return _missing(piece, labels)
    if piece.is_swapped:
        text = "the same transforms in another order"
        cause = Cause("data.transform_order", True, text, labels[0], labels[1], count)
        return cause, f"Put them in one order: {labels[0]}."
    if piece.parameter:
        values = [
            parameter_of(steps[0], piece.parameter) for steps in (piece.steps_a, piece.steps_b)
        ]
        kind = cause_of(piece.steps_a[0].kind)
        if kind is not None:
            text = f"{piece.parameter} is {values[0]} in A and {values[1]} in B"
            cause = Cause(kind, True, text, str(values[0]), str(values[1]), count)
            return cause, f"Give both {piece.parameter}={values[0]}."
    return None


def _missing(piece: Piece, labels: Sequence[str]) -> tuple[Cause, str]:
    """A transform that one side leaves out; without it the rest agrees on every sample."""
    side, label = ("B", labels[0]) if piece.steps_a else ("A", labels[1])
    text = f"{side} leaves out {label}"
    count = len(piece.inputs)
    cause = Cause("data.transform_missing", True, text, labels[0], labels[1], count)
    return cause, f"Add {label} to {side}, or take it out of the other."


def _of_decision(decision: Decision) -> tuple[Cause, str]:
    chosen = decision.candidate
    cause = Cause(
        decision.id,
        decision.proved,
        chosen.text,
        chosen.reference,
        chosen.port,
        decision.checked,
    )
    return cause, chosen.fix


def _declared(piece: Piece, labels: Sequence[str]) -> tuple[Cause, str] | None:
    """Transforms of one kind whose parameters differ, where no measurement says more."""
    kinds = [{step.kind for step in steps} for steps in (piece.steps_a, piece.steps_b)]
    shared = [kind for kind in kinds[0] & kinds[1] if cause_of(kind) is not None]
    if len(shared) != 1 or len(kinds[0] | kinds[1]) > 2:
        return None
    kind = cause_of(shared[0])
    assert kind is not None
    text = f"both are of the kind {shared[0].replace('_', ' ')} and yield other values"
    return Cause(kind, False, text, labels[0], labels[1]), "Give both the same parameters."


def _of_draws(
    piece: Piece, field: str, labels: Sequence[str], transform: str, where: str
) -> Difference:
    draws = piece.draws
    assert draws is not None
    kinds = {step.kind for step in (*piece.steps_a, *piece.steps_b)}
    text = f"they draw from other distributions (Kolmogorov–Smirnov distance {draws.distance:.3f})"
    known = "data.random_parameters"
    if piece.parameter:
        values = [
            parameter_of(steps[0], piece.parameter) for steps in (piece.steps_a, piece.steps_b)
        ]
        text = f"{piece.parameter} is {values[0]} in A and {values[1]} in B"
    cause = Cause(known, bool(piece.parameter), text, labels[0], labels[1], draws.draws[0])
    return Difference(
        Finding(
            known,
            Level.ERROR,
            f"field {field!r}: {labels[0]} in A and {labels[1]} in B: {text}",
            evidence=(
                f"{draws.draws[0]:,} draws of each; distance {draws.distance:.4f}, allowed "
                f"{draws.allowed:.4f} at a level of 10⁻⁴ for all features together",
            ),
            fix=Fix("Give both the same parameters.", where),
        ),
        cause if kinds else None,
        field,
        transform,
    )


def _observations(piece: Piece) -> list[Observation]:
    """What entered and came out, in A's layout where only later steps undo another layout."""
    found = []
    for x, a, b in zip(piece.inputs, piece.outputs_a, piece.outputs_b, strict=True):
        if a.numbers is None or b.numbers is None:
            continue
        other = None if piece.is_end else in_layout(b.numbers, a.numbers)
        encoded = x.numbers.tobytes() if x.container == "bytes" and x.numbers is not None else None
        found.append(
            Observation(
                a.numbers,
                b.numbers if other is None else other,
                None if encoded is not None else _picture(x),
                encoded=encoded,
            )
        )
    return found


def _picture(value: Value) -> np.ndarray | None:  # type: ignore[type-arg]  # of any dtype
    if value.numbers is None:
        return None
    hwc = as_hwc(value.numbers)
    return value.numbers if hwc is None else hwc


def _of_lengths(observations: Sequence[Observation]) -> tuple[Cause, str] | None:
    """Sequences of integers that have one length in A and another in B: a fact, no proof."""
    lengths = {(one.a.shape, one.b.shape) for one in observations}
    is_text = all(one.a.dtype.kind in "iu" and one.b.dtype.kind in "iu" for one in observations)
    if len(lengths) != 1 or not is_text:
        return None
    ((first, second),) = lengths
    if len(first) != 1 or len(second) != 1 or first == second:
        return None
    text = f"sequences have {first[0]} numbers in A and {second[0]} in B"
    cause = Cause("data.truncation", False, text, str(first[0]), str(second[0]))
    return cause, "Give both one length."


def of_field(
    observations: Sequence[Observation], field: str, port_field: str, place: str, greatest: float
) -> Difference:
    """The difference of a field whose transforms are not listed."""
    decision = decide(observations)
    found = _of_lengths(observations) if decision is None else _of_decision(decision)
    name = f"{field!r}" if field == port_field else f"{field!r} ({port_field!r} in B)"
    said = found[0].text if found else f"values differ by up to {greatest:.4g}"
    return Difference(
        Finding(
            found[0].id if found else UNKNOWN,
            Level.ERROR,
            f"field {name} differs: {said}",
            fix=Fix(found[1], place) if found and found[1] else None,
            advice="" if found else "Look at one sample of both; isograd does not know the cause.",
        ),
        found[0] if found else None,
        field,
    )
