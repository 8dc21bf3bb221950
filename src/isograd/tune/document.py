"""A tuning report as a document: what text and HTML draw."""

from __future__ import annotations

from collections.abc import Sequence

from isograd.report.document import (
    Axis,
    Chart,
    ChartKind,
    ChartMark,
    Column,
    Document,
    Facts,
    Group,
    Medium,
    Outcome,
    Section,
    Series,
    Styled,
    Table,
    Tone,
)
from isograd.tune.model import Choice, Direction, Trial, TrialState, TuneReport

_TONES = {
    TrialState.COMPLETE: Tone.PLAIN,
    TrialState.PRUNED: Tone.FAINT,
    TrialState.FAILED: Tone.WARNING,
}
#: Trials that are drawn as lines over all hyper-parameters.
_MOST_LINES = 40


def document(report: TuneReport) -> Document:
    """Draw the report: the best first, then what mattered, then every trial."""
    sections: list[Section] = []
    if report.best:
        sections.append(_best(report))
    if report.check is not None:
        sections.append(
            Facts(
                "The port with these settings",
                pairs=(
                    ("case", report.check.case),
                    ("verdict of verify", report.check.verdict),
                    ("stage training", report.check.training),
                ),
            )
        )
    if report.importance:
        sections.append(_importance(report))
    sections += _charts(report)
    sections.append(_trials(report))
    return Document(
        title=f"isograd tune {report.study}",
        outcome=_outcome(report),
        sections=tuple(sections),
        notes=(*report.notes, f"The study is kept in {report.storage}; Optuna's tools open it."),
        subtitle=f"{len(report.trials)} of {report.wanted} trials, {report.elapsed_s:.1f} s",
    )


def _outcome(report: TuneReport) -> Outcome:
    counts = ", ".join(
        f"{report.count(state)} {state.value}" for state in TrialState if report.count(state)
    )
    if not report.best:
        reasons = [trial.reason for trial in report.trials if trial.reason]
        why = f" The last reason: {reasons[-1]}" if reasons else ""
        sentence = f"No trial gave a value ({counts or 'none ran'}).{why}"
        return Outcome("no value", sentence, Tone.BAD)
    if len(report.directions) > 1:
        sentence = f"{len(report.best)} trials are not dominated by another ({counts})."
        return _with_failures(report, sentence)
    best = report.best[0]
    assert best.values is not None
    word = "least" if report.directions[0] is Direction.MINIMIZE else "greatest"
    sentence = (
        f"The {word} {report.objectives[0]} is {best.values[0]:.6g}, by trial {best.number} "
        f"({counts})."
    )
    if report.check is not None and report.check.verdict != "equivalent":
        return Outcome("best", f"{sentence} verify: {report.check.verdict}.", Tone.BAD)
    return _with_failures(report, sentence)


def _with_failures(report: TuneReport, sentence: str) -> Outcome:
    """The outcome, with the choices that were never judged because all their trials failed."""
    failures = report.failed_choices()
    for name, value, count, _ in failures[:3]:
        sentence += f" All {count} trials with {name} = {value} failed: nothing is known of it."
    if failures and failures[-1][3]:
        sentence += f" The last reason: {failures[-1][3]}"
    return Outcome("best", sentence, Tone.WARNING if failures else Tone.GOOD)


def _best(report: TuneReport) -> Section:
    if len(report.best) == 1:
        best = report.best[0]
        pairs = [(name, value) for name, value in best.params.items()]
        return Facts("Best hyper-parameters", pairs=(*pairs, ("trial", best.number)))
    return _table("Pareto front", report, report.best)


def _importance(report: TuneReport) -> Section:
    rows = [(name, share) for name, share in report.importance.items()]
    return Table(
        "Importance",
        columns=(
            Column("hyper-parameter", is_code=True),
            Column("share of the variance", is_number=True, format=".1%", has_bar=True),
        ),
        rows=rows,
        note=f"By {report.importance_method}.",
    )


def _charts(report: TuneReport) -> list[Section]:
    complete = [trial for trial in report.trials if trial.values is not None]
    if len(complete) < 2:
        return []
    charts: list[Section] = [_history(report, complete)]
    numbers, words = _split(complete)
    slices = [_slice(report, complete, name) for name in (*numbers, *words)]
    charts.append(Group("Slices", sections=slices, medium=Medium.PAGE))
    if len(numbers) > 1:
        charts.append(_parallel(report, complete, numbers))
    return charts


def _history(report: TuneReport, complete: Sequence[Trial]) -> Section:
    values = [_first(trial) for trial in complete]
    better = min if report.directions[0] is Direction.MINIMIZE else max
    so_far = [better(values[: index + 1]) for index in range(len(values))]
    numbers = [float(trial.number) for trial in complete]
    return Chart(
        "History",
        kind=ChartKind.LINE,
        x=Axis("trial"),
        y=Axis(report.objectives[0]),
        series=(Series("value", numbers, values), Series("best so far", numbers, so_far)),
        marks=tuple(
            ChartMark(float(trial.number), f"best, trial {trial.number}", Tone.GOOD)
            for trial in report.best[:1]
        ),
        medium=Medium.PAGE,
    )


def _split(complete: Sequence[Trial]) -> tuple[list[str], list[str]]:
    """Names of the hyper-parameters that are numbers, and of the others."""
    names = dict.fromkeys(name for trial in complete for name in trial.params)
    numbers = [
        name
        for name in names
        if all(_is_number(trial.params[name]) for trial in complete if name in trial.params)
    ]
    return numbers, [name for name in names if name not in numbers]


def _slice(report: TuneReport, complete: Sequence[Trial], name: str) -> Section:
    having = [trial for trial in complete if name in trial.params]
    values = [_first(trial) for trial in having]
    raw = [trial.params[name] for trial in having]
    numeric = [float(value) for value in raw if _is_number(value) and value is not None]
    categories: tuple[str, ...] = ()
    is_log = False
    if len(numeric) == len(raw):
        is_log = min(numeric) > 0 and max(numeric) / min(numeric) > 100
    else:
        categories = tuple(dict.fromkeys(str(value) for value in raw))
        numeric = [float(categories.index(str(value))) for value in raw]
    points = sorted(zip(numeric, values, strict=True))
    return Chart(
        name,
        kind=ChartKind.POINTS,
        x=Axis(name, is_log=is_log, categories=categories),
        y=Axis(report.objectives[0]),
        series=(Series("trials", [x for x, _ in points], [y for _, y in points]),),
    )


def _parallel(report: TuneReport, complete: Sequence[Trial], names: Sequence[str]) -> Section:
    """Parallel coordinates: each trial is a line over the hyper-parameters' ranges."""
    is_least = report.directions[0] is Direction.MINIMIZE
    ranked = sorted(complete, key=_first, reverse=not is_least)[:_MOST_LINES]
    columns = [*names, report.objectives[0]]
    ranges = {name: _range([_coordinate(one, name) for one in complete]) for name in columns}
    positions = [float(index) for index in range(len(columns))]
    series = [
        Series(
            f"trial {trial.number}",
            positions,
            [_scaled(_coordinate(trial, name), ranges[name]) for name in columns],
        )
        for trial in ranked
    ]
    return Chart(
        "Parallel coordinates",
        kind=ChartKind.LINE,
        x=Axis("hyper-parameter", categories=tuple(columns)),
        y=Axis("share of the range"),
        series=series,
        note=f"The best {len(ranked)} trials, the best first.",
        medium=Medium.PAGE,
    )


def _coordinate(trial: Trial, name: str) -> float | None:
    if name not in trial.params:
        return _first(trial)
    value = trial.params[name]
    return float(value) if _is_number(value) and value is not None else None


def _range(values: Sequence[float | None]) -> tuple[float, float]:
    known = [value for value in values if value is not None]
    return (min(known), max(known)) if known else (0.0, 1.0)


def _scaled(value: float | None, span: tuple[float, float]) -> float | None:
    low, high = span
    if value is None:
        return None
    return (value - low) / (high - low) if high > low else 0.5


def _trials(report: TuneReport) -> Section:
    return _table("Trials", report, report.trials)


def _table(title: str, report: TuneReport, trials: Sequence[Trial]) -> Section:
    names = list(dict.fromkeys(name for trial in trials for name in trial.params))
    columns = [Column("trial", is_number=True), Column("state")]
    columns += [Column(name, is_number=True, format=".6g") for name in report.objectives]
    columns += [Column(name, is_code=True) for name in names]
    columns += [Column("time", unit="s", is_number=True, format=".1f"), Column("reason")]
    rows = [
        (
            trial.number,
            Styled(trial.state.value, _TONES[trial.state]),
            *(trial.values or (None,) * len(report.objectives)),
            *(_shown(trial.params.get(name)) for name in names),
            trial.elapsed_s,
            trial.reason,
        )
        for trial in trials
    ]
    return Table(title, columns=columns, rows=rows)


def _shown(value: Choice) -> str | int | bool | None:
    return f"{value:.4g}" if isinstance(value, float) else value


def _first(trial: Trial) -> float:
    assert trial.values is not None
    return trial.values[0]


def _is_number(value: Choice) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
