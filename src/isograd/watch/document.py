"""The report of `watch` as a document: the first alert and what to do, then all the rest."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from isograd.findings import Finding, Level, Location
from isograd.report.document import (
    Axis,
    Chart,
    ChartKind,
    ChartMark,
    Column,
    Document,
    Facts,
    FindingList,
    HeatMap,
    Lines,
    Medium,
    Outcome,
    Section,
    Series,
    Styled,
    Table,
    Tone,
)
from isograd.watch.alerts.rule import Severity
from isograd.watch.judge import Alert
from isograd.watch.model import Curve, Heat, LossScale, WatchReport, WatchVerdict

_TONES = {
    WatchVerdict.HEALTHY: Tone.GOOD,
    WatchVerdict.UNHEALTHY: Tone.BAD,
    WatchVerdict.INCOMPLETE: Tone.WARNING,
}
_MOST_MARKS = 12


def document(report: WatchReport) -> Document:
    """What text and page draw of a watched run."""
    return Document(
        title=f"isograd watch {report.source}",
        outcome=Outcome(report.verdict.value, _sentence(report), _TONES[report.verdict]),
        sections=tuple(_sections(report)),
        notes=report.notes,
    )


def _sentence(report: WatchReport) -> str:
    alerts = [a for a in report.alerts if a.severity is Severity.ALERT]
    notices = len(report.alerts) - len(alerts)
    beside = f", {notices} notice{'s' * (notices != 1)}" if notices else ""
    counted = f"{report.steps:,} step{'s' * (report.steps != 1)}"
    if not alerts:
        if report.verdict is WatchVerdict.HEALTHY:
            return f"Healthy: no alert in {counted}{beside}."
        return f"Incomplete: {counted} without an alert{beside}, and the run did not end well."
    origin = report.first_nonfinite
    if origin is not None:
        operator, where = origin.get("operator"), origin.get("where") or "an unknown line"
        return (
            f"Unhealthy: the first value that is not finite arose at step {origin.get('step')} in "
            f"{operator} ({where}); {len(alerts)} alert{'s' * (len(alerts) != 1)}{beside}."
        )
    first = alerts[0]
    return (
        f"Unhealthy: {first.code} at step {first.first_step} is the first of {len(alerts)} "
        f"alert{'s' * (len(alerts) != 1)}{beside} in {counted}."
    )


def _sections(report: WatchReport) -> Iterator[Section]:
    if report.first_nonfinite is not None:
        yield from _origin(report.first_nonfinite)
    if report.alerts:
        findings = tuple(_finding(alert) for alert in report.alerts)
        yield FindingList("Alerts and notices", findings)
    for curve in report.curves:
        yield _chart(curve, report.alerts)
    if report.loss_scale is not None:
        yield from _loss_scale(report.loss_scale)
    if report.randomness is not None:
        yield _randomness(report.randomness)
    for heat in report.heats:
        yield _heat(heat)
    yield Facts("Run", pairs=tuple(_facts(report.run)), is_folded=True)


def _origin(origin: Mapping[str, Any]) -> Iterator[Section]:
    is_origin = bool(origin.get("origin"))
    title = "Origin" if is_origin else "Where it was narrowed down to"
    lines: list[str | Styled] = [
        Styled(
            f"step {origin.get('step')}, {origin.get('phase')}: {origin.get('operator')} gave "
            f"{origin.get('kind')}",
            Tone.BAD,
        ),
        f"in module {origin.get('module') or '(the network)'}, {origin.get('where') or 'no line'}",
    ]
    if origin.get("note"):
        lines.append(str(origin["note"]))
    path = [str(name or "(the network)") for name in _listed(origin, "propagation")]
    if path:
        more = f" and {len(path) - 8} more" if len(path) > 8 else ""
        lines.append("went on through " + ", ".join(path[:8]) + more)
    lines += [f"masked: {text}" for text in _listed(origin, "masked")]
    yield Lines(title, lines=lines)
    rows = [
        (
            number,
            str(facts.get("dtype", "")),
            str(facts.get("shape", "")),
            _cell(facts.get("min")),
            _cell(facts.get("max")),
            _cell(facts.get("nan")),
            _cell(facts.get("inf")),
            _cell(facts.get("zeros")),
        )
        for number, facts in enumerate(_listed(origin, "inputs"))
        if isinstance(facts, Mapping)
    ]
    if rows:
        names = ("input", "dtype", "shape", "min", "max", "NaN", "Inf", "zeros")
        columns = tuple(Column(n, is_number=n not in ("dtype", "shape")) for n in names)
        yield Table("Its inputs", columns=columns, rows=rows)


def _listed(origin: Mapping[str, Any], name: str) -> Sequence[Any]:
    found = origin.get(name)
    return found if isinstance(found, (list, tuple)) else ()


def _cell(value: object) -> str | float | int | None:
    return value if isinstance(value, (str, float, int)) else None


def _finding(alert: Alert) -> Finding:
    file, _, line = alert.where.rpartition(":")
    until = (
        f"steps {alert.first_step} to {alert.last_step}, {alert.count} times"
        if alert.count > 1
        else f"step {alert.first_step}"
    )
    is_alert = alert.severity is Severity.ALERT
    return Finding(
        code=alert.code,
        level=Level.ERROR if is_alert else Level.NOTE,
        message=alert.message,
        severity=alert.severity.value,
        location=Location(
            file=file if line.isdigit() else "",
            line=int(line) if line.isdigit() else None,
            module=alert.module or None,
            step=alert.first_step,
        ),
        evidence=(until,),
        advice=alert.advice,
    )


def _chart(curve: Curve, alerts: tuple[Alert, ...]) -> Chart:
    positive = curve.values[np.isfinite(curve.values)]
    is_log = bool(positive.size and positive.min() > 0 and positive.max() > 100 * positive.min())
    marks = [
        ChartMark(float(alert.first_step), alert.code, Tone.BAD)
        for alert in alerts
        if alert.severity is Severity.ALERT
    ]
    return Chart(
        _title(curve.name),
        kind=ChartKind.LINE,
        x=Axis("step"),
        y=Axis(curve.name, is_log=is_log),
        series=(_series(curve),),
        marks=tuple(marks[:_MOST_MARKS]),
        medium=Medium.PAGE if curve.name != "loss" else Medium.BOTH,
    )


def _title(name: str) -> str:
    words = name.replace("_", " ")
    return words[:1].upper() + words[1:]


def _series(curve: Curve) -> Series:
    return Series(
        curve.name,
        curve.steps.tolist(),
        curve.values.tolist(),
        curve.low.tolist(),
        curve.high.tolist(),
    )


def _loss_scale(scale: LossScale) -> Iterator[Section]:
    yield Lines(
        "Loss scale",
        lines=(f"{scale.mode}, {scale.final:g} at the end. {scale.advice}",),
    )
    if scale.curve is not None and scale.mode == "dynamic":
        marks = [ChartMark(float(step), "overflow") for step in scale.overflows[:_MOST_MARKS]]
        yield Chart(
            "Loss scale by step",
            kind=ChartKind.LINE,
            x=Axis("step"),
            y=Axis("scale", is_log=True),
            series=(_series(scale.curve),),
            marks=marks,
            medium=Medium.PAGE,
        )


def _randomness(found: Mapping[str, Any]) -> Lines:
    lines = [str(line) for line in found.get("lines", ())]
    return Lines("Randomness", lines=lines or ["The two runs of the first steps are the same."])


def _heat(heat: Heat) -> HeatMap:
    return HeatMap(
        heat.title,
        rows=heat.names,
        columns=tuple(str(step) for step in heat.steps.tolist()),
        values=[[None if math.isnan(v) else v for v in row] for row in heat.values.tolist()],
        levels=_levels(heat.values),
        medium=Medium.PAGE,
    )


def _levels(values: np.ndarray[Any, np.dtype[np.float64]]) -> list[list[int | None]]:
    """From 0 to 8 by the logarithm, over all cells."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log10(np.abs(values))
    finite = logs[np.isfinite(logs)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    span = max(high - low, 1e-9)
    return [
        [None if math.isnan(v) else int(np.clip(8 * (v - low) / span, 0, 8)) for v in row]
        for row in logs.tolist()
    ]


def _facts(run: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in run.items():
        if isinstance(value, Mapping):
            text = ", ".join(f"{key} {part}" for key, part in value.items())
        elif isinstance(value, (list, tuple)):
            text = " ".join(map(str, value))
        else:
            text = "" if value is None else str(value)
        if text:
            yield name, text
