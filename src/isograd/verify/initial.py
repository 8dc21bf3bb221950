"""Initial distributions that differ: one row for each kind of layer, and what to write instead.

Networks with transferred weights agree all the same; training from scratch starts elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from isograd.model import Finding, Fix, Severity, Stage
from isograd.tensors import Array
from isograd.verify.session import Session

#: A two-sample Kolmogorov-Smirnov statistic times sqrt(n·m/(n+m)) above this is no accident:
#: the asymptotic tail 2·exp(-2·z²) is 3e-8 (Smirnov 1948).
_THRESHOLD = 3.0
_FEWEST_VALUES = 8
_MOST_VALUES = 200_000
#: Relative distance of a measured spread to that of a named rule, and to a plain deviation.
_SAME_SPREAD = 0.15
_SAME_DEVIATION = 0.05
_USUAL_DEVIATIONS = (1.0, 0.02, 0.01)
#: Kurtosis that separates uniform (1.8) from normal (3) values.
_FLAT = 2.4
#: So few values show their rule by its likelihood: their kurtosis is known to sqrt(24/n) only.
_FEW_VALUES = 400
#: A rule explains few values if no rule of its family explains them by so many nats better: twice
#: the difference is chi-squared with one degree of freedom (Wilks 1938), so one in 16,000 is lost.
_NATS = 8.0

#: MindSpore's argument for a parameter, by its layer's kind and torch's name of the parameter.
_ARGUMENTS = {
    ("Embedding", "weight"): "embedding_table",
    ("LayerNorm", "weight"): "gamma_init",
    ("LayerNorm", "bias"): "beta_init",
    ("GroupNorm", "weight"): "gamma_init",
    ("GroupNorm", "bias"): "beta_init",
    ("BatchNorm", "weight"): "gamma_init",
    ("BatchNorm", "bias"): "beta_init",
    ("Linear", "weight"): "weight_init",
    ("Linear", "bias"): "bias_init",
    ("Conv", "weight"): "weight_init",
    ("Conv", "bias"): "bias_init",
}


@dataclass(frozen=True)
class Distribution:
    """How values are drawn: in words, and MindSpore's initializer for it."""

    words: str
    initializer: str


@dataclass
class _Alike:
    """Parameters of one kind and size that are drawn alike on each side."""

    kind: str
    attribute: str
    fans: tuple[int, int]
    ours: list[Array]
    theirs: list[Array]
    names: list[str]
    modules: list[str]
    where: str | None

    def takes(self, other: _Alike) -> bool:
        """Whether another parameter may be drawn by the same rules, as far as values show it."""
        same = (self.kind, self.attribute, self.fans) == (other.kind, other.attribute, other.fans)
        return (
            same
            and _one_spread(self.ours[0], other.ours[0])
            and _one_spread(self.theirs[0], other.theirs[0])
        )

    def add(self, other: _Alike) -> None:
        """Count another one in."""
        self.ours += other.ours
        self.theirs += other.theirs
        self.names += other.names
        self.modules += other.modules
        self.where = self.where or other.where


def _one_spread(first: Array, second: Array) -> bool:
    """Whether two samples' deviations are equal within 4 of their standard errors."""
    one, other = float(first.std()), float(second.std())
    if not one or not other:
        return bool(one == other and first[0] == second[0])
    error = math.sqrt(0.5 / first.size + 0.5 / second.size)
    return abs(math.log(one / other)) <= 4.0 * error


def initial_findings(session: Session) -> Iterator[Finding]:
    """One finding for each (kind of layer, parameter, distributions) that differs."""
    groups: list[_Alike] = []
    for found in _differing(session):
        known = next((group for group in groups if group.takes(found)), None)
        if known is None:
            groups.append(found)
        else:
            known.add(found)
    rows: dict[tuple[str, str, str, str], tuple[Distribution, Distribution, _Alike]] = {}
    for group in groups:
        ours = distribution(np.concatenate(group.ours)[:_MOST_VALUES], *group.fans)
        theirs = distribution(np.concatenate(group.theirs)[:_MOST_VALUES], *group.fans)
        key = (group.kind, group.attribute, ours.words, theirs.words)
        if key in rows:
            rows[key][2].add(group)
        else:
            rows[key] = (ours, theirs, group)
    for ours, theirs, group in rows.values():
        yield _finding(group, ours, theirs)


def _differing(session: Session) -> Iterator[_Alike]:
    """Trainable pairs whose initial values come from different distributions."""
    ours, theirs = session.infos()
    kinds = {m.name: m.kind for m in session.reference_structure.modules}
    places = {m.name: m.where for m in session.port_structure.modules}
    for pair in session.pairing.pairs:
        info = ours[pair.reference[0]]
        if not info.trainable or pair.how == "value":
            continue
        arrays = [session.port_initial[name].values for name in pair.port]
        first = np.concatenate([session.reference_state[n].values.ravel() for n in pair.reference])
        second = np.concatenate([a.ravel() for a in pair.transform.invert(arrays)])
        if differ(first, second):
            yield _Alike(
                kinds.get(info.module, ""),
                info.attribute,
                _fans(session, info.module, info.shape),
                [np.asarray(first, np.float64)],
                [np.asarray(second, np.float64)],
                [pair.reference[0]],
                [info.module],
                places.get(theirs[pair.port[0]].module),
            )


def _finding(group: _Alike, ours: Distribution, theirs: Distribution) -> Finding:
    count, kind = len(group.names), group.kind
    who = f"{group.attribute} of {kind or 'the network'}"
    if count > 1:
        who = f"{group.attribute} of {count} {kind} layers" if kind else f"{count} parameters"
    return Finding(
        "parameter.initialisation",
        Severity.EQUIVALENT,
        Stage.PARAMETERS,
        group.modules[0],
        f"{who} is drawn otherwise: {theirs.words} instead of {ours.words}; with "
        "transferred weights the networks agree, training from scratch starts elsewhere",
        fix=Fix(written(kind, group.attribute, ours), group.where),
        modules=tuple(dict.fromkeys(group.modules)),
    )


def written(kind: str, attribute: str, wanted: Distribution) -> str:
    """What to write in MindSpore: the layer's argument, or the parameter's initializer."""
    for (part, name), argument in _ARGUMENTS.items():
        if part in kind and name == attribute:
            return f"{argument}={wanted.initializer}"
    return f"initializer({wanted.initializer}, shape)"


def _fans(session: Session, module: str, shape: tuple[int, ...]) -> tuple[int, int]:
    """Fan in and out as torch counts them; of a bias, those of the weight beside it."""
    if len(shape) < 2:
        for info in session.reference_structure.parameters:
            if info.module == module and info.attribute == "weight" and len(info.shape) > 1:
                shape = info.shape
    if len(shape) < 2:
        return 0, 0
    area = math.prod(shape[2:])
    return shape[1] * area, shape[0] * area


def differ(first: Array, second: Array) -> bool:
    """Whether two sets of initial values cannot come from one distribution.

    first, second: (values,) of any real dtype.
    """
    first, second = (np.asarray(v[:_MOST_VALUES], np.float64) for v in (first, second))
    if not (np.isfinite(first).all() and np.isfinite(second).all()) or first.size < 2:
        return False  # one number does not show its distribution
    constant = [np.ptp(v) == 0 for v in (first, second)]
    if all(constant) or first.size < _FEWEST_VALUES:
        return constant[0] != constant[1] or bool(all(constant) and first[0] != second[0])
    return any(constant) or _smirnov(first, second) > _THRESHOLD


def _smirnov(first: Array, second: Array) -> float:
    """The two-sample Kolmogorov-Smirnov statistic, scaled by sqrt(n·m/(n+m))."""
    both = np.concatenate([first, second])
    both.sort()
    shares = [np.searchsorted(np.sort(v), both, side="right") / v.size for v in (first, second)]
    scale = math.sqrt(first.size * second.size / (first.size + second.size))
    return float(np.abs(shares[0] - shares[1]).max()) * scale


def distribution(values: Array, fan_in: int, fan_out: int) -> Distribution:
    """The rule by which values look drawn; a plain uniform or normal where no rule fits.

    values: (values,) of any real dtype.
    """
    wide = np.asarray(values, np.float64)
    if np.ptp(wide) == 0:
        return _constant(float(wide[0]))
    normal, uniform = _normal_rules(fan_in, fan_out), _uniform_rules(fan_in, fan_out)
    if wide.size < _FEW_VALUES:
        likely = _most_likely(wide, normal, uniform)
        if likely is not None:
            return likely
    deviation = float(wide.std())
    centred = (wide - wide.mean()) / deviation
    if float((centred**4).mean()) < _FLAT:
        bound = math.sqrt(3.0) * deviation
        plain = Distribution(f"uniform ±{bound:.2g}", f"Uniform({bound:.3g})")
        return _nearest(bound, uniform, _SAME_SPREAD) or plain
    usual = normal[: len(_USUAL_DEVIATIONS)]
    return (
        _nearest(deviation, usual, _SAME_DEVIATION)
        or _nearest(deviation, normal[len(usual) :], _SAME_SPREAD)
        or Distribution(f"normal with deviation {deviation:.2g}", f"Normal({deviation:.2g})")
    )


def _constant(value: float) -> Distribution:
    names = {0.0: "'zeros'", 1.0: "'ones'"}
    return Distribution(f"constant {value:.4g}", names.get(value, f"Constant({value:.4g})"))


#: A deviation or bound, and the rule that gives it.
_Rule = tuple[float, Distribution]


def _uniform_rules(fan_in: int, fan_out: int) -> list[_Rule]:
    """Bounds; torch's default is kaiming_uniform with a = √5, whose bound is 1/√fan_in."""
    if not fan_in:
        return []
    default = Distribution("uniform ±1/√fan_in", "HeUniform(negative_slope=math.sqrt(5))")
    xavier = Distribution("uniform ±√(6/(fan_in+fan_out))", "XavierUniform()")
    return [
        (1 / math.sqrt(fan_in), default),
        (math.sqrt(6 / fan_in), Distribution("uniform ±√(6/fan_in)", "HeUniform()")),
        (math.sqrt(6 / (fan_in + fan_out)), xavier),
    ]


def _normal_rules(fan_in: int, fan_out: int) -> list[_Rule]:
    """Deviations: the usual ones first."""
    usual = [
        (v, Distribution(f"normal with deviation {v:.2g}", f"Normal({v:.2g})"))
        for v in _USUAL_DEVIATIONS
    ]
    if not fan_in:
        return usual
    xavier = Distribution("normal with deviation √(2/(fan_in+fan_out))", "XavierNormal()")
    return [
        *usual,
        (
            math.sqrt(2 / fan_in),
            Distribution("normal with deviation √(2/fan_in)", "HeNormal()"),
        ),
        (math.sqrt(2 / (fan_in + fan_out)), xavier),
    ]


def _most_likely(
    values: Array, normal: Sequence[_Rule], uniform: Sequence[_Rule]
) -> Distribution | None:
    """The rule under which the values are likeliest, if nothing of its family beats it by far.

    values: (values,) float64.
    """
    count, greatest = values.size, float(np.abs(values).max())
    square = float(np.square(values).mean())
    best_normal = 0.5 * count * (math.log(2 * math.pi * square) + 1)
    fitting: list[tuple[float, Distribution]] = []
    for deviation, rule in normal:
        loss = 0.5 * count * (math.log(2 * math.pi * deviation**2) + square / deviation**2)
        if loss - best_normal <= _NATS:
            fitting.append((loss, rule))
    best_uniform = count * math.log(2 * greatest)
    for bound, rule in uniform:
        loss = count * math.log(2 * bound)
        # A bound in float32 may be passed by its rounding.
        if greatest <= bound * (1 + 1e-5) and loss - best_uniform <= _NATS:
            fitting.append((loss, rule))
    return min(fitting, key=lambda item: item[0])[1] if fitting else None


def _nearest(spread: float, rules: Sequence[_Rule], near: float) -> Distribution | None:
    """The rule whose spread is nearest, if it is near."""
    if not rules:
        return None
    expected, rule = min(rules, key=lambda item: abs(math.log(spread / item[0])))
    return rule if math.isclose(spread, expected, rel_tol=near) else None
