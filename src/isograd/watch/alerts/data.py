"""What the batches hold."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from isograd.watch.alerts.rule import Check, Hit, Limit, Limits, Rule, Severity, Streak, number
from isograd.watch.alerts.training import example
from isograd.watch.observation import BatchFacts, Network, StepRecord


def _nonfinite(limits: Limits, network: Network) -> Check:
    def check(record: StepRecord) -> Iterator[Hit]:
        batch = record.batch
        if batch is None:
            return
        for at in np.flatnonzero(~np.isfinite(batch.largest)).tolist():
            yield Hit(float(batch.largest[at]), tensor=batch.names[at])

    return check


def _range(limits: Limits, network: Network) -> Check:
    limit, streak = number(limits, "largest"), Streak(limits["steps"])

    def check(record: StepRecord) -> Iterator[Hit]:
        batch = record.batch
        if batch is None:
            return
        for name, value in zip(batch.names, batch.largest, strict=True):
            if streak.holds(name, bool(math.isfinite(value) and value > limit)):
                yield Hit(float(value), limit, tensor=name)

    return check


def _constant(limits: Limits, network: Network) -> Check:
    streak = Streak(limits["steps"])

    def check(record: StepRecord) -> Iterator[Hit]:
        if streak.holds("", record.batch is not None and record.batch.is_constant):
            yield Hit(0.0)

    return check


def _repeated(limits: Limits, network: Network) -> Check:
    streak, others = Streak(limits["steps"]), [0]

    def check(record: StepRecord) -> Iterator[Hit]:
        if record.batch is None:
            return
        others[0] += record.step > 0 and not record.batch.is_repeated
        if streak.holds("", record.batch.is_repeated):
            yield Hit(1.0, facts={"others": others[0]})

    return check


def _labels(limits: Limits, network: Network) -> Check:
    def check(record: StepRecord) -> Iterator[Hit]:
        outside = record.batch.outside if record.batch else None
        if outside is not None:
            label, classes = outside
            yield Hit(float(label), float(classes), facts={"last": classes - 1})

    return check


def _batch(largest: float = 2.5, **flags: object) -> BatchFacts:
    return BatchFacts(("0",), np.array([largest]), **flags)  # type: ignore[arg-type]  # flags are bools


RULES = (
    Rule(
        code="input.nonfinite",
        severity=Severity.ALERT,
        message="input {tensor} of the network holds {value}",
        advice="Look at this batch's samples and at the transforms (a division by a zero "
        "deviation, a logarithm of zero, missing values).",
        make=_nonfinite,
        source="IEEE 754",
        peers=("AUTOTRAINER abnormal data",),
        examples=(example("a batch holds NaN", 3, batch=_batch(math.nan)),),
        counterexamples=(example("batches are finite", 9),),
    ),
    Rule(
        code="input.range",
        severity=Severity.NOTICE,
        message="input {tensor} of the network reaches {value:.4g}",
        advice="Normalise it, if the network was made for normalised inputs.",
        make=_range,
        source="AUTOTRAINER (ICSE 2021): omega_1 = 10",
        peers=("AUTOTRAINER abnormal data", "MindInsight TR"),
        limits=(Limit("largest", 10.0, "magnitude"), Limit("steps", 3, "steps in a row")),
        examples=(example("pixels are 0 to 255", 4, batch=_batch(255.0)),),
        counterexamples=(example("inputs are normalised", 9),),
    ),
    Rule(
        code="input.constant",
        severity=Severity.ALERT,
        message="all samples of the batch are equal in every input",
        advice="Look at the dataset's indexing and at what the transforms return.",
        make=_constant,
        source="samples of a dataset differ",
        limits=(Limit("steps", 3, "steps in a row"),),
        examples=(example("every image is black", 5, batch=_batch(0.0, is_constant=True)),),
        counterexamples=(
            example("samples differ", 9),
            example("one batch holds one image", 9, batch=lambda s: _batch(is_constant=s == 4)),
        ),
    ),
    Rule(
        code="input.repeated",
        severity=Severity.NOTICE,
        message="the batch is the one of the step before, bit for bit",
        advice="Fitting one batch is a test that is often meant; else look at the loader.",
        make=_repeated,
        source="batches of a dataset differ",
        limits=(Limit("steps", 4, "steps in a row"),),
        examples=(example("the loader is stuck", 9, batch=lambda s: _batch(is_repeated=s > 2)),),
        counterexamples=(example("batches differ", 9),),
    ),
    Rule(
        code="input.labels",
        severity=Severity.ALERT,
        message="a label is {value:.0f}; the network has the classes 0 to {last}",
        advice="Look at the label's mapping, at labels that begin at 1, and at ignore_index.",
        make=_labels,
        source="a class index is within the classes; outside, some devices compute anything",
        examples=(example("a label is 10 of 10 classes", 2, batch=_batch(outside=(10, 10))),),
        counterexamples=(example("labels are within", 9),),
    ),
)
