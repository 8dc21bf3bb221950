"""The fed gradients and what both sides made of them, as flat arrays for the search.

Only watched elements are held (`isograd.frameworks.rules.watched`): rules work element by element,
and the norms that clipping needs are noted over whole tensors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from isograd.frameworks.base import FLOAT64, NATIVE, Arithmetic, Tensors
from isograd.frameworks.rules import NUMPY, Clip, Rule, advance, incoming, rule_from
from isograd.metrics import Float64
from isograd.tensors import TensorValue

#: The copies whose spread is the envelope of an update: docs/thresholds.md.
UPDATE_TRACKS: dict[str, Arithmetic] = {
    "float64": FLOAT64,
    "plain": NATIVE,
    "noise": Arithmetic(operator_noise=True, seed=11),
    "biased": Arithmetic(operator_noise=True, biased=True, seed=13),
}
_MOST_TENSORS = 6
_MOST_ELEMENTS = 600


class Rules(Protocol):
    """The reference that replays rules of optimizers, see `frameworks.capabilities`."""

    def update_outline(self) -> dict[str, Any]:
        """By parameter: its group, its rule as plain values or None, the norms of its gradients."""
        ...

    def update_slices(self, names: list[str]) -> Tensors:
        """The watched elements of these parameters and of their gradients.

        returns: (watched,) initially and (steps, watched) step by step, float64.
        """
        ...

    def measure_rules(
        self,
        rules: dict[str, dict[str, Any]],
        variants: list[Arithmetic],
        keep: bool,
        dtype: str,
    ) -> Tensors:
        """Rules by parameter on the watched elements, with their envelope.

        returns: (steps, watched) trajectories and (steps,) allowances, float64.
        """
        ...


@dataclass(frozen=True)
class Watched:
    """One parameter: its group and rule in the reference, and the port's values.

    rule is None where the reference's optimizer is not one of the known rules.
    norms: of the fed gradients, whole; port: steps × watched elements.
    """

    name: str
    group: int
    rule: Rule | None
    norms: tuple[float, ...]
    port: Float64
    dtype: str = "float32"


@dataclass(frozen=True)
class Clipping:
    """What the reference does to the gradients before its rule sees them.

    clip is REFERENCE where it is none of the known ways; at: greatest norm or value, None where
    it never took effect; factors: by step, for a factor on all gradients.
    """

    clip: Clip
    at: float | None = None
    factors: tuple[float, ...] = ()


class Updates:
    """All parameters of an update stage, and the reference that replays rules on them."""

    def __init__(self, reference: Rules, port: dict[str, list[Float64]], dtypes: dict[str, str]):
        self._reference = reference
        outline = reference.update_outline()
        self.parameters: dict[str, Watched] = {}
        for name, found in outline.items():
            if name not in port:
                continue
            rule = rule_from(found["rule"]) if found["rule"] is not None else None
            self.parameters[name] = Watched(
                name,
                found["group"],
                rule,
                tuple(found["norms"]),
                np.stack(port[name]),
                dtypes.get(name, "float32"),
            )
        norms = [np.square(o["norms"]) for o in outline.values() if o["norms"]]
        self.total_norms = np.sqrt(np.sum(norms, axis=0)) if norms else np.zeros(0)

    def measure(self, rules: dict[str, Rule], keep: bool = False) -> Tensors:
        """The rules' trajectories and envelopes by parameter, from the reference's worker.

        returns: (steps, watched) trajectories and (steps,) allowances, float64.
        """
        found: Tensors = {}
        for dtype in {self.parameters[n].dtype for n in rules}:
            plain = {n: r.plain() for n, r in rules.items() if self.parameters[n].dtype == dtype}
            variants = list(UPDATE_TRACKS.values())
            found |= self._reference.measure_rules(plain, variants, keep, dtype)
        return found

    def ratios(self, rules: dict[str, Rule]) -> dict[str, float]:
        """For each parameter the port's worst error over the envelope under its rule."""
        measured = self.measure(rules)
        return {
            name: worst_ratio(
                self.parameters[name].port,
                measured[f"expected.{name}"].values,
                measured[f"allowed.{name}"].values,
            )
            for name in rules
        }

    def under(self, part: Part, rule: Rule) -> Part:
        """The same part with the envelope of another rule."""
        measured = self.measure(dict.fromkeys(part.names, rule))
        return replace(part, allowed=self._allowed(measured, part.names, part.picks))

    def _allowed(
        self, measured: Tensors, names: tuple[str, ...], picks: Sequence[NDArray[np.int64]]
    ) -> Float64:
        """Steps × tensors: the envelopes, for the picked elements' share of each tensor."""
        parts = [
            _numbers(measured[f"allowed.{n}"])
            * math.sqrt(p.size / self.parameters[n].port.shape[1])
            for n, p in zip(names, picks, strict=True)
        ]
        return np.stack(parts, axis=1)

    def clipping(self, part: Part) -> Clipping:
        """How the reference clips, seen from what it makes of these gradients."""
        if _close(part.effective, part.given):
            return Clipping(Clip.NONE)
        size = np.square(part.given).sum(axis=1)
        factors = (part.given * part.effective).sum(axis=1) / np.where(size > 0, size, 1.0)
        factors = np.where(size > 0, factors, 1.0)
        if _close(part.effective, part.given * factors[:, None]):
            limits = (factors * (self.total_norms + 1e-6))[factors < 1.0 - 1e-6]
            same = limits.size and np.ptp(limits) <= 1e-3 * limits.max()
            at = float(f"{limits.mean():.4g}") if same else None
            return Clipping(
                Clip.NORM if at is not None else Clip.REFERENCE, at, tuple(map(float, factors))
            )
        limit = float(np.abs(part.effective).max())
        if _close(part.effective, np.clip(part.given, -limit, limit)):
            return Clipping(Clip.VALUE, limit)
        return Clipping(Clip.REFERENCE)

    def part(self, names: Iterable[str]) -> Part:
        """A few of these parameters, of one rule, as the search wants them."""
        chosen = list(names)[:_MOST_TENSORS]
        rule = self.parameters[chosen[0]].rule
        assert rule is not None
        slices = self._reference.update_slices(chosen)
        measured = self.measure(dict.fromkeys(chosen, rule))
        picks, segments, at = [], [], 0
        for name in chosen:
            pick = np.arange(self.parameters[name].port.shape[1])
            if pick.size > _MOST_ELEMENTS:
                pick = np.linspace(0, pick.size - 1, _MOST_ELEMENTS).astype(np.int64)
            picks.append(pick)
            segments.append(slice(at, at + pick.size))
            at += pick.size

        def joined(key: str) -> Float64:
            parts = [
                _numbers(slices[f"{key}.{n}"])[..., p] for n, p in zip(chosen, picks, strict=True)
            ]
            return np.concatenate(parts, axis=-1)

        own = [
            np.repeat(np.array(self.parameters[n].norms)[:, None], p.size, axis=1)
            for n, p in zip(chosen, picks, strict=True)
        ]
        port = [self.parameters[n].port[:, p] for n, p in zip(chosen, picks, strict=True)]
        return Part(
            tuple(chosen), rule, joined("initial"), joined("given"), joined("effective"),
            np.concatenate(own, axis=1), self.total_norms, np.concatenate(port, axis=1),
            tuple(segments), tuple(picks), self._allowed(measured, tuple(chosen), picks),
        )  # fmt: skip


@dataclass(frozen=True)
class Part:
    """Some elements of parameters that follow one rule in the reference, side by side.

    start: elements; given, effective, own_norms, port: steps × elements; total_norms: steps.
    allowed: steps × tensors, the envelope of each tensor's segment under the reference's rule.
    """

    names: tuple[str, ...]
    rule: Rule
    start: Float64
    given: Float64
    effective: Float64
    own_norms: Float64
    total_norms: Float64
    port: Float64
    segments: tuple[slice, ...]
    picks: tuple[NDArray[np.int64], ...]
    allowed: Float64

    @property
    def steps(self) -> int:
        """Number of steps."""
        return len(self.port)

    def simulate(self, rule: Rule) -> Float64:
        """The trajectory under a rule.

        returns: (steps, elements) float64.
        """
        value, state, found = self.start, dict[str, Any](), []
        with np.errstate(all="ignore"):
            for step in range(self.steps):
                total = float(self.total_norms[step])
                own = self.own_norms[step]
                gradient = incoming(rule, self.given[step], self.effective[step], total, own, NUMPY)
                value = advance(rule, step, value, gradient, state, NUMPY)
                found.append(value)
        return np.stack(found)

    def weighted(self, values: Float64) -> Float64:
        """Values in units of the envelope.

        values, returns: (steps, elements) float64.
        """
        result = np.empty_like(values)
        for i, segment in enumerate(self.segments):
            result[:, segment] = values[:, segment] / self.allowed[:, i : i + 1]
        return result

    def residual(self, rule: Rule) -> Float64:
        """The port's error under a rule, in units of the envelope.

        returns: (steps, elements) float64.
        """
        return self.weighted(self.port - self.simulate(rule))

    def worst(self, residual: Float64) -> float:
        """The greatest norm of any tensor at any step.

        residual: (steps, elements) float64.
        """
        norms = [np.linalg.norm(residual[:, s], axis=1).max() for s in self.segments]
        worst = float(max(norms))
        return worst if math.isfinite(worst) else math.inf


def _close(first: Float64, second: Float64) -> bool:
    gap = float(np.linalg.norm(first - second))
    return gap <= 1e-5 * float(np.linalg.norm(first)) + 1e-30


def _numbers(value: TensorValue) -> Float64:
    return value.values.astype(np.float64)


def worst_ratio(port: Any, expected: Any, allowed: Any) -> float:
    """The greatest error of a tensor at any step over its envelope; infinite for a NaN."""
    with np.errstate(all="ignore"):
        ratios = np.linalg.norm(port - expected, axis=1) / allowed
    worst = float(ratios.max())
    return worst if math.isfinite(worst) else math.inf


def cost_of(residual: Float64) -> float:
    """The sum of squares; infinite where a rule ran away.

    residual: any shape, float64.
    """
    with np.errstate(all="ignore"):
        cost = float(np.vdot(residual, residual))
    return cost if math.isfinite(cost) else math.inf


RuleOf = Callable[[tuple[float, ...]], Rule]
