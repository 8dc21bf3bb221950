"""Trials that are known before a search begins."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from isograd.tune.lineage import read_lineage
from isograd.tune.space import Kind, Parameter
from isograd.tune.storage import REASON, RUN
from isograd.tune.study import Study

if TYPE_CHECKING:
    import optuna


def known_trials(study: Study) -> list[optuna.trial.FrozenTrial]:
    """Complete trials of the study's lineage folders whose hyper-parameters lie in its ranges."""
    import optuna

    if len(study.objectives) != 1:
        return []
    found = []
    for folder in study.lineage:
        for name, values in read_lineage(folder):
            value = values.get(study.objectives[0].name)
            params = {one.name: values.get(one.name) for one in study.parameters}
            inside = all(one.holds(params[one.name]) for one in study.parameters)
            if not isinstance(value, (int, float)) or not math.isfinite(value) or not inside:
                continue
            found.append(
                optuna.trial.create_trial(
                    params=params,
                    distributions={one.name: distribution(one) for one in study.parameters},
                    value=float(value),
                    user_attrs={RUN: name, REASON: ""},
                )
            )
    return found


def distribution(parameter: Parameter) -> optuna.distributions.BaseDistribution:
    """The parameter's distribution as Optuna has it."""
    from optuna import distributions

    if parameter.kind is Kind.CATEGORICAL:
        return distributions.CategoricalDistribution(parameter.choices)
    if parameter.kind is Kind.INT:
        return distributions.IntDistribution(
            int(parameter.low), int(parameter.high), parameter.is_log, int(parameter.step or 1)
        )
    return distributions.FloatDistribution(
        parameter.low, parameter.high, parameter.is_log, parameter.step
    )
