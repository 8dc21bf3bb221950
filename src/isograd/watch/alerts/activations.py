"""Outputs of modules that carry nothing, and running statistics that stand still."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from isograd.watch.alerts.rule import Check, Hit, Limit, Limits, Rule, Severity, Streak, number
from isograd.watch.alerts.training import activations, example, look
from isograd.watch.observation import Network, RunningStatistics, StepRecord


def _dead(limits: Limits, network: Network) -> Check:
    streak, share = Streak(limits["looks"]), number(limits, "share")

    def check(record: StepRecord) -> Iterator[Hit]:
        found = record.look.activations if record.look else None
        if found is None:
            return
        for at, name in enumerate(found.table.names):
            dead = float(found.dead_share[at])
            if not np.isnan(dead) and streak.holds(name, dead >= share):
                yield Hit(dead, share, module=name, facts={"kind": found.kinds[at]})

    return check


def _saturated(limits: Limits, network: Network) -> Check:
    streak, share = Streak(limits["looks"]), number(limits, "inside")

    def check(record: StepRecord) -> Iterator[Hit]:
        found = record.look.activations if record.look else None
        if found is None:
            return
        for at, name in enumerate(found.table.names):
            inside = float(found.inside_share[at])
            if not np.isnan(inside) and streak.holds(name, inside < share):
                yield Hit(1.0 - inside, share, module=name, facts={"kind": found.kinds[at]})

    return check


def _all_zero(limits: Limits, network: Network) -> Check:
    streak = Streak(limits["looks"])

    def check(record: StepRecord) -> Iterator[Hit]:
        found = record.look.activations if record.look else None
        if found is None:
            return
        shares = found.table.column("zero_share")
        for at, name in enumerate(found.table.names):
            if streak.holds(name, bool(shares[at] >= 1.0)):
                yield Hit(1.0, module=name, facts={"kind": found.kinds[at]})

    return check


def _stale(limits: Limits, network: Network) -> Check:
    streak = Streak(limits["looks"])

    def check(record: StepRecord) -> Iterator[Hit]:
        if record.look is None:
            return
        for found in record.look.statistics:
            stale = not found.is_changed and (found.is_training or found.is_initial)
            if streak.holds(found.module, stale):
                why = (
                    "although the module is called in training mode"
                    if found.is_training
                    else "and the module normalises by their initial 0 and 1 in inference mode"
                )
                yield Hit(0.0, module=found.module, facts={"why": why})

    return check


def _running(is_training: bool, is_changed: bool, is_initial: bool) -> object:
    return look(statistics=(RunningStatistics("bn", is_training, is_changed, is_initial),))


RULES = (
    Rule(
        code="activation.dead",
        severity=Severity.ALERT,
        message="{value:.0%} of the channels of {module} ({kind}) are zero for every sample",
        advice="Their gradient is zero, so they stay dead: lower the learning rate, look at the "
        "bias before them, initialise by He's rule, or take LeakyReLU or GELU.",
        make=_dead,
        source="AUTOTRAINER (ICSE 2021): gamma = 0.7 of the gradients; MindInsight's recommended "
        "set: > 99.9 % of a ReLU's values; ours counts whole channels over several batches",
        peers=("AUTOTRAINER dying ReLU", "MindInsight AR"),
        limits=(
            Limit("share", 0.9, "of a rectifier's channels"),
            Limit("looks", 3, "looks in a row"),
        ),
        examples=(example("every channel is dead", 5, look=activations("ReLU", dead=1.0)),),
        counterexamples=(
            example("a third of the channels is", 9, look=activations("ReLU", dead=0.33)),
            example(
                "one batch has them dead",
                9,
                look=lambda s: activations("ReLU", dead=1.0 if s == 4 else 0.1),
            ),
        ),
    ),
    Rule(
        code="activation.saturated",
        severity=Severity.ALERT,
        message="{value:.1%} of the outputs of {module} ({kind}) are saturated to the last bit",
        advice="Their gradient is zero: scale what comes in, normalise before it, or initialise "
        "smaller.",
        make=_saturated,
        source="MindInsight's recommended set, condition activation_range: less than 0.1 % of tanh "
        "inside ±tanh(8.8), of a sigmoid inside σ(±16.2), where float32 ends",
        peers=("MindInsight AR",),
        limits=(
            Limit("inside", 1e-3, "share of elements that are not saturated"),
            Limit("looks", 3, "looks in a row"),
        ),
        examples=(example("a tanh is ±1 throughout", 5, look=activations("Tanh", inside=0.0)),),
        counterexamples=(
            example("a gate is mostly open", 9, look=activations("Sigmoid", inside=0.2)),
            example("the module is no sigmoid", 9, look=activations("Linear")),
        ),
    ),
    Rule(
        code="tensor.all_zero",
        severity=Severity.NOTICE,
        message="the output of {module} ({kind}) is zero throughout",
        advice="Look at what comes in and at the module's weights.",
        make=_all_zero,
        source="MindInsight debugger, condition tensor_all_zero: 100 %",
        peers=("MindInsight TZ",),
        limits=(Limit("looks", 3, "looks in a row"),),
        examples=(example("an output is zero", 5, look=activations("Linear", zero_share=1.0)),),
        counterexamples=(example("half of it is", 9, look=activations("Linear", zero_share=0.5)),),
    ),
    Rule(
        code="statistics.stale",
        severity=Severity.ALERT,
        message="the running statistics of {module} do not change, {why}",
        advice="Look at momentum (0 in torch and 1 in MindSpore keep the old ones), at train() and "
        "eval(), and at copies of the module.",
        make=_stale,
        source="a training step moves every running average that it updates",
        limits=(Limit("looks", 3, "looks in a row"),),
        examples=(
            example("momentum is zero", 5, look=_running(True, False, True)),
            example(
                "it never trained and normalises by 0 and 1", 5, look=_running(False, False, True)
            ),
        ),
        counterexamples=(
            example("they move", 9, look=_running(True, True, False)),
            example("a pretrained one is frozen on purpose", 9, look=_running(False, False, False)),
        ),
    ),
)
