"""What the replay of one unit found, tensor by tensor."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace

from isograd.frameworks.base import ReplayRequest, Shift, Tensors
from isograd.model import Gap, Stage
from isograd.noise.envelope import (
    ISOLATED_THRESHOLD,
    Comparison,
    Measured,
)
from isograd.tensors import TensorKey
from isograd.verify.places import (
    Places,
)
from isograd.verify.units import Unit

#: Beyond this share of a result rounding has decided something.
_DECIDES = 0.1
#: Beyond this share of a result an error is none of rounding.
_IS_NO_ROUNDING = 1e-3


@dataclass(frozen=True)
class TensorResult:
    """The judgement of one tensor of one unit.

    position: where in the reference's order of calls the tensor arises.
    what: in words, for example "output" or "input of layer1.0.conv2".
    problem: why there is no comparison (a wrong shape, a call that never happened), or "".
    shift: for a forward tensor or a gradient that differs, the call, where (as in
    `Framework.forward_shifted`) and the slot that the error belongs to, with the error itself;
    None for a parameter's gradient.
    key: the tensor's name within the unit, as in `Framework`.  lacks: whether the port hands none
    to the call.  dtype: the reference's own.
    """

    stage: Stage
    unit: Unit
    position: float
    what: str
    comparison: Comparison | None
    problem: str = ""
    shift: Shift | None = None
    key: str = ""
    lacks: bool = False
    dtype: str = ""

    @property
    def ratio(self) -> float:
        return self.comparison.ratio if self.comparison is not None else float("inf")

    @property
    def is_undecided(self) -> bool:
        """Whether it passes only because rounding alone makes another result of the reference.

        A decision that hangs on a last bit: no kernel's rounding comes near these numbers.
        """
        if self.comparison is None or self.stage is not Stage.FORWARD or self.dtype != "float32":
            return False
        found = self.comparison.evidence
        return found.allowed > _DECIDES and found.error > _IS_NO_ROUNDING


@dataclass(frozen=True)
class UnitResult:
    """The judgement of one unit; failure says why it could not be replayed.

    port: the port's tensors under the reference's names and in its layouts; reference: what they
    were judged by.
    """

    unit: Unit
    tensors: tuple[TensorResult, ...] = ()
    failure: str = ""
    crashed: bool = False
    backward_failure: str = ""
    requests: tuple[ReplayRequest, ReplayRequest] | None = None
    port: Tensors = field(default_factory=dict)
    places: Places | None = None
    reference: dict[str, Measured] = field(default_factory=dict)

    def _pinned(self, tensor: TensorResult) -> int:
        """The reference's pinned call that a tensor goes into."""
        pin = TensorKey(tensor.key).pin
        assert pin is not None
        return self.unit.pins[pin][0]

    def without_unneeded(self, agreeing: Collection[int]) -> UnitResult:
        """Without inputs that calls of the port lack and agree without: positions, masks of ones.

        agreeing: the reference's calls whose units agree, replayed without these inputs.
        """
        unneeded = {
            tensor.key
            for tensor in self.tensors
            if tensor.lacks and self._pinned(tensor) in agreeing
        }
        if not unneeded:
            return self
        return replace(self, tensors=tuple(t for t in self.tensors if t.key not in unneeded))

    def brief(self) -> UnitResult:
        """The same without tensors."""
        return replace(self, requests=None, port={}, places=None, reference={})


def undecided_gaps(result: UnitResult, name: str, mode: str) -> Iterator[Gap]:
    """What nothing can be said of, where all of a unit passes: a gap for its first such tensor.

    name: that of the unit, as a reader would call it.
    """
    if any(not tensor.ratio <= ISOLATED_THRESHOLD for tensor in result.tensors):
        return
    for tensor in result.tensors:
        if tensor.comparison is not None and tensor.is_undecided:
            found = tensor.comparison.evidence
            why = f"in {mode} mode rounding alone moves it by up to {found.allowed:.0%} in the "
            why += "reference itself: a comparison or a choice hangs on a last bit there; the "
            why += f"port is {found.error:.2g} of it away, which may be that or a fault"
            yield Gap(Stage.FORWARD, f"{tensor.what} of {name}", why)
            return


def with_misshapen(found: Tensors, answer: Tensors, reference: dict[str, Measured]) -> Tensors:
    """The tensors, with those of another shape as the port has them.

    found, answer: by name, any shapes and dtypes.
    returns: their shapes and dtypes.
    """
    result = dict(found)
    for key in reference:
        if key not in result and key in answer and key.startswith(("output.", "input_of.")):
            result[key] = answer[key]
    return result
