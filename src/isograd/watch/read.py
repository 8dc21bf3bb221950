"""A run's folder as a report: its alerts as they were judged while it ran, curves and heat maps."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from isograd.errors import RunError
from isograd.runs.information import RunState
from isograd.runs.reader import Run
from isograd.runs.table import Table
from isograd.watch.alerts.rule import Severity
from isograd.watch.judge import Alert, from_plain
from isograd.watch.loss_scale import loss_scale_of
from isograd.watch.model import Curve, Heat, WatchReport, WatchVerdict, in_order, verdict_of

#: Points of a chart and columns of a heat map.
_POINTS, _HEAT_COLUMNS, _HEAT_ROWS = 2000, 60, 120
_CURVES = ("loss", "gradient_norm", "learning_rate")
_HEATS = (
    ("gradient/", "/norm", "Norm of gradients"),
    ("update/", "/ratio", "Update ratio of weights"),
    ("weight/", "/abs_mean", "Mean magnitude of weights"),
    ("output/", "/abs_mean", "Mean magnitude of outputs"),
    ("output/", "/zero_share", "Share of zeros in outputs"),
)


def read_run(folder: Path) -> WatchReport:
    """The report of a run's folder; RunError where it is none, is damaged, or holds no step."""
    run = Run(folder)
    information = run.information
    if not run.scalars.row_count and information.state is not RunState.RUNNING:
        reason = f" ({information.reason})" if information.reason else ""
        if not any(True for _ in run.alerts()):
            raise RunError(f"{folder}: no step was recorded{reason}", _advice(information.state))
    alerts, origin = read_alerts(run.alerts())
    steps = int(run.scalars.steps.max()) + 1 if run.scalars.row_count else 0
    return WatchReport(
        source=str(folder),
        verdict=_verdict(alerts, steps, information.state),
        run=_facts(run),
        steps=steps,
        alerts=alerts,
        first_nonfinite=origin,
        loss_scale=loss_scale_of(run.scalars),
        curves=tuple(curves_of(run.scalars)),
        heats=tuple(heats_of(run.statistics)),
        notes=tuple(_notes(run)),
    )


def _advice(state: RunState) -> str:
    """What to do where no step was recorded."""
    if state is RunState.FAILED:
        return "The program ended by this error before its first step: run it alone first."
    if state is RunState.CRASHED:
        return "The process was killed or crashed before its first step: run it alone first."
    return (
        "The optimizer never stepped while it was watched: pass the optimizer that steps, and "
        "keep the loop inside of `with`."
    )


def _verdict(alerts: tuple[Alert, ...], steps: int, state: RunState) -> WatchVerdict:
    found = verdict_of(alerts, steps)
    is_broken = state in (RunState.FAILED, RunState.CRASHED)
    return WatchVerdict.INCOMPLETE if found is WatchVerdict.HEALTHY and is_broken else found


def _facts(run: Run) -> dict[str, Any]:
    found = dataclasses.asdict(run.information)
    found["state"] = run.information.state.value
    found["command"] = list(run.information.command)
    return found


def _notes(run: Run) -> Iterable[str]:
    information = run.information
    if information.state is RunState.CRASHED:
        yield "the process is gone and did not end the run: it was killed or it crashed"
    if information.state is RunState.FAILED:
        yield f"the training ended by an error: {information.reason}"
    if information.state is RunState.RUNNING:
        yield "the run goes on"


def read_alerts(
    entries: Iterable[Mapping[str, Any]],
) -> tuple[tuple[Alert, ...], Mapping[str, Any] | None]:
    """The alerts, each as it stood last, alerts before notices; and the first origin."""
    found: dict[tuple[Any, ...], Alert] = {}
    origin: dict[str, Any] | None = None
    for entry in entries:
        if entry.get("entry") == "origin":
            origin = origin or {k: v for k, v in entry.items() if k != "entry"}
            continue
        alert = _alert(entry)
        if alert is not None:
            found[entry.get("lane"), alert.key] = alert
    alerts = [_located(alert, origin) for alert in found.values()]
    return in_order(alerts), origin


def _located(alert: Alert, origin: Mapping[str, Any] | None) -> Alert:
    """An alert of a value that is not finite stands where it arose."""
    if origin is None or alert.where or not alert.code.endswith(".nonfinite"):
        return alert
    return dataclasses.replace(alert, where=str(origin.get("where", "")))


def _alert(entry: Mapping[str, Any]) -> Alert | None:
    try:
        limit = entry["limit"]
        return Alert(
            code=str(entry["code"]),
            severity=Severity(entry["severity"]),
            first_step=int(entry["first_step"]),
            last_step=int(entry["last_step"]),
            count=int(entry["count"]),
            module=str(entry["module"]),
            tensor=str(entry["tensor"]),
            value=from_plain(entry["value"]),
            limit=None if limit is None else from_plain(limit),
            source=str(entry["source"]),
            message=str(entry["message"]),
            advice=str(entry["advice"]),
            where=str(entry.get("where", "")),
        )
    except (KeyError, ValueError, TypeError):
        return None


def curves_of(scalars: Table, most: int = _POINTS) -> Iterable[Curve]:
    """The scalars as curves; thinned ones carry the extremes of what stands between points."""
    ordered = sorted(
        scalars.columns, key=lambda n: (_CURVES.index(n) if n in _CURVES else len(_CURVES), n)
    )
    for name in ordered:
        if name in ("overflow", "scale", "scaled_gradient_exponent"):
            continue
        steps, values = scalars.series(name)
        if len(steps):
            yield thinned(name, steps, values, most)


def thinned(name: str, steps: Any, values: Any, most: int) -> Curve:
    """A curve of at most so many points: mean, lowest and highest of each stretch."""
    if len(steps) <= most:
        return Curve(name, steps, values)
    edges = np.linspace(0, len(steps), most + 1).round().astype(np.int64)[:-1]
    with np.errstate(invalid="ignore"):
        counts = np.diff(np.append(edges, len(steps)))
        means = np.add.reduceat(values, edges) / counts
        low, high = np.fmin.reduceat(values, edges), np.fmax.reduceat(values, edges)
    return Curve(name, steps[edges], means, low, high)


def heats_of(statistics: Table) -> Iterable[Heat]:
    """Heat maps of the statistics that were written."""
    columns = statistics.columns
    for prefix, suffix, title in _HEATS:
        names = [c for c in columns if c.startswith(prefix) and c.endswith(suffix)]
        if not names:
            continue
        chosen = names[:_HEAT_ROWS]
        steps, values = statistics.matrix(chosen, _HEAT_COLUMNS)
        kept = np.isfinite(values).any(axis=1)
        if kept.any():
            shown = tuple(name[len(prefix) : -len(suffix)] for name in chosen)
            yield Heat(title, shown, steps[kept], values[kept].T)
