"""Whole passes on both sides: outputs, loss and gradients from the same weights and inputs."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field

import numpy as np

from isograd.errors import IsogradError
from isograd.frameworks.base import Tensors
from isograd.noise.envelope import (
    END_TO_END_THRESHOLD,
    END_TO_END_VARIANTS,
    MOST_TO_RETURN,
    SECOND_LOOK_VARIANTS,
    Comparison,
    Measured,
    compare,
    measured,
)
from isograd.tensors import Role, TensorKey, gradients_of_parameters, keyed
from isograd.verify.kept import KeptPass
from isograd.verify.session import Session
from isograd.worker.protocols import Passes


@dataclass(frozen=True)
class PassResult:
    """One end-to-end pass, judged.

    comparisons: by tensor name; problems: tensors with wrong shapes or missing, in words.
    allowed: the envelope of each tensor, for `severity`.  backward: whether gradients were taken.
    one_sided: gradients that one side alone has, or that are zero on the other, with that side.
    only_in_port: outputs that the port alone returns, with their shapes.
    """

    comparisons: dict[str, Comparison]
    problems: dict[str, str]
    allowed: dict[str, float]
    backward: bool = False
    one_sided: dict[str, str] = field(default_factory=dict)
    only_in_port: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def worst(self, *prefixes: str) -> tuple[str, Comparison] | None:
        """The comparison with the greatest ratio among tensors with these prefixes."""
        found = [(k, c) for k, c in self.comparisons.items() if k.startswith(prefixes)]
        return max(found, key=lambda item: _rank(item[1].ratio), default=None)


def _rank(ratio: float) -> float:
    return math.inf if math.isnan(ratio) else ratio


def record_pass(
    session: Session, mode: str, backward: bool, *, is_first: bool = False
) -> PassResult:
    """Record a pass on both sides for replays, measure its envelope, and judge it.

    is_first: whether both sides have their first weights; stage compiled uses the pass again.
    """
    recorded = session.pass_request(mode, backward=backward, record=True)
    ours = session.reference.begin(Passes.forward, recorded)
    theirs = session.port.begin(Passes.forward, recorded)
    require_numbers(ours.answer(), mode, session.case.reference.framework)
    request = session.pass_request(mode, backward=backward)
    errors = session.reference.begin(Passes.measure_forward, request, END_TO_END_VARIANTS)
    port = theirs.answer()
    reference = measured(errors.answer())
    if is_first:
        session.kept.note_pass(mode, KeptPass(reference, port, backward))
    return dataclasses.replace(judge(session, reference, port), backward=backward)


def look_again(
    session: Session, mode: str, whole: PassResult, prefixes: tuple[str, ...]
) -> PassResult:
    """Measure the envelope with more runs, where something leaves it and may return.

    A kink that one run in ten meets (a ReLU at zero, two equal maxima) leaves an envelope of eight
    runs now and then.  For passes in which every module agrees alone.
    """
    worst = whole.worst(*prefixes)
    if worst is None or not END_TO_END_THRESHOLD < worst[1].ratio < MOST_TO_RETURN:
        return whole
    request = session.pass_request(mode, backward=whole.backward)
    errors = session.reference.ask(Passes.measure_forward, request, SECOND_LOOK_VARIANTS)
    again = measured(errors)
    allowed = {k: max(v, again[k].allowed if k in again else 0.0) for k, v in whole.allowed.items()}
    comparisons = {
        key: _within(found, whole.allowed.get(key, 0.0), allowed.get(key, 0.0))
        for key, found in whole.comparisons.items()
    }
    return dataclasses.replace(whole, comparisons=comparisons, allowed=allowed)


def _within(found: Comparison, before: float, now: float) -> Comparison:
    """A comparison with a wider envelope."""
    if not now > before > 0.0 or not math.isfinite(found.ratio):
        return found
    evidence = dataclasses.replace(found.evidence, allowed=found.evidence.allowed * now / before)
    return Comparison(found.ratio * before / now, evidence)


def judge(session: Session, reference: dict[str, Measured], port: Tensors) -> PassResult:
    """Compare a port's pass with a measured one, tensor by tensor.

    port: by name, the port's shapes, any dtypes.
    """
    gradients = gradients_of_parameters(port)
    theirs: Tensors = {k: v for k, v in keyed(port) if k.role is not Role.PARAMETER}
    for name, value in session.as_reference(gradients, summed=True).items():
        theirs[TensorKey.parameter(name).gradient] = value
    comparisons: dict[str, Comparison] = {}
    problems: dict[str, str] = {}
    for key, expected in keyed(reference):
        found = theirs.get(key)
        if found is None:
            if not key.is_gradient:
                problems[key] = "missing in the port"
            continue
        if found.shape != expected.values.shape:
            problems[key] = f"shape {found.shape} instead of {expected.values.shape}"
            continue
        comparisons[key] = compare(key, expected, found)
    allowed = {k: m.allowed for k, m in reference.items()}
    more: dict[str, tuple[int, ...]] = {
        key: value.shape
        for key, value in keyed(theirs)
        if key.is_plain(Role.OUTPUT) and key not in reference
    }
    return PassResult(
        comparisons,
        problems,
        allowed,
        one_sided=_one_sided(reference, theirs),
        only_in_port=more,
    )


def _one_sided(reference: dict[str, Measured], port: Tensors) -> dict[str, str]:
    """Gradients that are not zero on one side only, with the side that has them."""
    ours = {k for k, v in reference.items() if v.values.any()}
    theirs = {k for k, v in port.items() if v.values.any()}
    return {
        key: "reference" if key in ours else "port"
        for key in sorted(ours ^ theirs)
        if TensorKey(key).is_gradient
    }


def require_numbers(native: Tensors, mode: str, framework: str) -> None:
    """Refuse a reference that yields NaN itself: there is nothing to be equal to.

    native: by name, any shapes and dtypes.
    Raises IsogradError where a floating tensor holds NaN.
    """
    for key, value in native.items():
        if value.is_floating and np.isnan(value.values).any():
            count = int(np.isnan(value.values).sum())
            shown = {"loss": "loss"}.get(key, key.replace(".", " "))
            raise IsogradError(
                f"the reference's own {shown} holds {count} NaN of {value.values.size:,} values "
                f"({framework}, {mode} mode), so there is nothing to compare with",
                "Choose inputs, targets and weights on which the reference works, "
                "or mend the reference.",
            )
