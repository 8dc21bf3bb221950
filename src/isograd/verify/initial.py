"""Initial distributions that differ: one row for each kind of layer, and what to write instead.

Networks with transferred weights agree all the same; training from scratch starts elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from isograd.model import Finding, Fix, Severity, Stage
from isograd.tensors import Array
from isograd.verify.session import Session

#: A two-sample Kolmogorov-Smirnov statistic times sqrt(n·m/(n+m)) above this is no accident:
#: the asymptotic tail 2·exp(-2·z²) is 3e-8 (Smirnov 1948).
_THRESHOLD = 3.0
_FEWEST_VALUES = 8
_MOST_VALUES = 200_000
#: Relative distance of a measured spread to that of a named rule; a spread of 8 uniform values is
#: known to about 15 %, that of 100 to 4 %.
_SAME_SPREAD = 0.15
#: Kurtosis that separates uniform (1.8) from normal (3) values.
_FLAT = 2.4

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
class _Row:
    """Parameters of one kind that differ alike."""

    ours: Distribution
    theirs: Distribution
    names: list[str] = field(default_factory=list)
    modules: list[str] = field(default_factory=list)
    where: str | None = None


def initial_findings(session: Session) -> Iterator[Finding]:
    """One finding for each (kind of layer, parameter, distributions) that differs."""
    rows: dict[tuple[str, str, str, str], _Row] = {}
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
        if not differ(first, second):
            continue
        fan_in, fan_out = _fans(session, info.module, info.shape)
        wanted, found = (distribution(v, fan_in, fan_out) for v in (first, second))
        key = (kinds.get(info.module, ""), info.attribute, wanted.words, found.words)
        row = rows.setdefault(key, _Row(wanted, found))
        row.names.append(pair.reference[0])
        row.modules.append(info.module)
        row.where = row.where or places.get(theirs[pair.port[0]].module)
    for (kind, attribute, *_), row in rows.items():
        yield _finding(kind, attribute, row)


def _finding(kind: str, attribute: str, row: _Row) -> Finding:
    count = len(row.names)
    who = f"{attribute} of {kind or 'the network'}"
    if count > 1:
        who = f"{attribute} of {count} {kind} layers" if kind else f"{count} parameters"
    return Finding(
        "parameter.initialisation",
        Severity.EQUIVALENT,
        Stage.PARAMETERS,
        row.modules[0],
        f"{who} is drawn otherwise: {row.theirs.words} instead of {row.ours.words}; with "
        "transferred weights the networks agree, training from scratch starts elsewhere",
        fix=Fix(written(kind, attribute, row.ours), row.where),
        modules=tuple(dict.fromkeys(row.modules)),
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
    """Whether two sets of initial values cannot come from one distribution."""
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
    """The rule by which values look drawn; a plain uniform or normal where no rule fits."""
    wide = np.asarray(values, np.float64)
    if np.ptp(wide) == 0:
        return _constant(float(wide[0]))
    deviation = float(wide.std())
    centred = (wide - wide.mean()) / deviation
    if float((centred**4).mean()) < _FLAT:
        return _uniform(math.sqrt(3.0) * deviation, fan_in, fan_out)
    return _normal(deviation, fan_in, fan_out)


def _constant(value: float) -> Distribution:
    names = {0.0: "'zeros'", 1.0: "'ones'"}
    return Distribution(f"constant {value:.4g}", names.get(value, f"Constant({value:.4g})"))


def _uniform(bound: float, fan_in: int, fan_out: int) -> Distribution:
    """Torch's default is kaiming_uniform with a = √5, whose bound is 1/√fan_in."""
    rules = (
        (1 / math.sqrt(fan_in), "uniform ±1/√fan_in", "HeUniform(negative_slope=math.sqrt(5))"),
        (math.sqrt(6 / fan_in), "uniform ±√(6/fan_in)", "HeUniform()"),
        (math.sqrt(6 / (fan_in + fan_out)), "uniform ±√(6/(fan_in+fan_out))", "XavierUniform()"),
    ) if fan_in else ()  # fmt: skip
    return _nearest(bound, rules) or Distribution(f"uniform ±{bound:.2g}", f"Uniform({bound:.3g})")


def _normal(deviation: float, fan_in: int, fan_out: int) -> Distribution:
    rules = (
        (math.sqrt(2 / fan_in), "normal with deviation √(2/fan_in)", "HeNormal()"),
        (
            math.sqrt(2 / (fan_in + fan_out)),
            "normal with deviation √(2/(fan_in+fan_out))",
            "XavierNormal()",
        ),
    ) if fan_in else ()  # fmt: skip
    usual = next((v for v in (1.0, 0.02, 0.01) if math.isclose(deviation, v, rel_tol=0.05)), None)
    if usual is None:
        found = _nearest(deviation, rules)
        if found is not None:
            return found
    shown = f"{deviation if usual is None else usual:.2g}"
    return Distribution(f"normal with deviation {shown}", f"Normal({shown})")


def _nearest(spread: float, rules: tuple[tuple[float, str, str], ...]) -> Distribution | None:
    """The rule whose spread is nearest, if it is near."""
    if not rules:
        return None
    expected, words, initializer = min(rules, key=lambda rule: abs(math.log(spread / rule[0])))
    if not math.isclose(spread, expected, rel_tol=_SAME_SPREAD):
        return None
    return Distribution(words, initializer)
