"""The hyper-parameters of a study: their distributions, and what depends on what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from isograd.tune.model import Choice

if TYPE_CHECKING:
    import optuna


class Kind(str, Enum):
    """The distributions of Optuna."""

    FLOAT = "float"
    INT = "int"
    CATEGORICAL = "categorical"


@dataclass(frozen=True)
class Parameter:
    """One hyper-parameter.

    low, high: both belong to the range.  step: distance of the values, None for a continuous
    float.  condition: values that other parameters must have for this one to exist.
    """

    name: str
    kind: Kind
    low: float = 0.0
    high: float = 0.0
    step: float | None = None
    is_log: bool = False
    choices: tuple[Choice, ...] = ()
    condition: Mapping[str, tuple[Choice, ...]] | None = None

    def is_asked(self, chosen: Mapping[str, Choice]) -> bool:
        """Whether the parameter exists beside what was chosen before it."""
        conditions = (self.condition or {}).items()
        return all(name in chosen and chosen[name] in allowed for name, allowed in conditions)

    def holds(self, value: Choice) -> bool:
        """Whether a value can be chosen."""
        if self.kind is Kind.CATEGORICAL:
            return value in self.choices
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return is_number and self.low <= float(value or 0) <= self.high

    def suggest(self, trial: optuna.trial.Trial) -> Choice:
        """Let the study's sampler choose."""
        if self.kind is Kind.CATEGORICAL:
            return trial.suggest_categorical(self.name, self.choices)
        if self.kind is Kind.INT:
            low, high, step = int(self.low), int(self.high), int(self.step or 1)
            return trial.suggest_int(self.name, low, high, step=step, log=self.is_log)
        return trial.suggest_float(self.name, self.low, self.high, step=self.step, log=self.is_log)

    def grid(self, points: int) -> list[Choice]:
        """Evenly spaced values for a grid search: all choices, or at most `points` numbers."""
        if self.kind is Kind.CATEGORICAL:
            return list(self.choices)
        if self.kind is Kind.INT:
            values = range(int(self.low), int(self.high) + 1, int(self.step or 1))
            if len(values) <= points:
                return list(values)
        spaced = [self._between(index / (points - 1)) for index in range(points)]
        if self.kind is Kind.INT:
            return list(dict.fromkeys(round(value) for value in spaced))
        return list(spaced)

    def _between(self, share: float) -> float:
        if self.is_log:
            return float(self.low * (self.high / self.low) ** share)
        return self.low + share * (self.high - self.low)


def suggest_all(parameters: tuple[Parameter, ...], trial: optuna.trial.Trial) -> dict[str, Choice]:
    """Choose every parameter that exists, in the order of the study."""
    chosen: dict[str, Choice] = {}
    for parameter in parameters:
        if parameter.is_asked(chosen):
            chosen[parameter.name] = parameter.suggest(trial)
    return chosen
