"""From single runs to the Markdown tables and the totals of the benchmark."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from statistics import median, quantiles
from typing import Any

from catalog import Edit
from outcome import Judgement, Outcome, judge
from rules import RULES

Edits = dict[str, Edit]
Judged = list[tuple[Outcome, Edit, Judgement]]
COLUMNS = (
    "runs",
    "detected",
    "exact module",
    "cause named",
    "of these proved",
    "below the noise",
    "only an alternative",
    "wrong cause",
    "abstained",
    "median s",
)


def everything(results: list[Outcome], edits: Edits) -> str:
    """Return all tables, one below the other."""
    judged = _judged(results, edits)
    silent = [result for result in results if result.kind != "fault"]
    parts = [
        _by_class(judged),
        _by_group(judged),
        _silence(silent),
        _rules(judged, silent),
        _seconds(results),
        _misses(judged, silent),
    ]
    return "\n\n".join(part for part in parts if part)


def is_right(result: Outcome, edit: Edit | None) -> bool:
    """Tell whether everything that isograd said about one run is right."""
    if edit is None or edit.kind != "fault":
        return result.exit_status == 0 and not result.below_noise
    return judge(result, edit).right


def line(result: Outcome, edit: Edit | None) -> str:
    """Return one line that tells a waiting person how a run ended."""
    mark = "right" if is_right(result, edit) else "WRONG"
    said = result.verdict or (result.error.splitlines() or ["no answer"])[-1]
    causes = ", ".join(sorted({str(said.cause) for said in result.named})) or "no cause"
    where = f", {result.stage}: {result.module!r}, {causes}" if result.detected else ""
    return f"{mark} {result.id} seed {result.seed}: {said}{where}, {result.seconds:.1f} s"


def totals(results: list[Outcome], edits: Edits) -> dict[str, Any]:
    """Return the counts behind the tables as plain data."""
    judged = _judged(results, edits)
    silent = [result for result in results if result.kind != "fault"]
    return {
        "groups": {name: _counts(rows) for name, rows in _groups(judged).items()},
        "silent_runs": len(silent),
        "false_positives": sum(result.verdict == "divergent" for result in silent),
        "silent_but_incomplete": sum(result.verdict == "incomplete" for result in silent),
        "causes_below_the_noise_in_silent_runs": sum(bool(r.below_noise) for r in silent),
        "no_answer": sum(not result.answered for result in results),
        "rules": {
            rule: {
                "faults": _share(result.rules.get(rule) for result, _, _ in judged),
                "silent": _share(result.rules.get(rule) for result in silent),
            }
            for rule in RULES
        },
    }


def _judged(results: list[Outcome], edits: Edits) -> Judged:
    faulty = [result for result in results if result.kind == "fault"]
    return [(result, edits[result.id], judge(result, edits[result.id])) for result in faulty]


def _counts(rows: Judged) -> dict[str, Any]:
    located = [judgement for _, _, judgement in rows if judgement.exact_module is not None]
    return {
        "runs": len(rows),
        "detected": sum(judgement.detected for _, _, judgement in rows),
        "with_a_module": len(located),
        "exact_module": sum(bool(judgement.exact_module) for judgement in located),
        "causes": sum(judgement.expected for _, _, judgement in rows),
        "named": sum(judgement.named for _, _, judgement in rows),
        "proved": sum(judgement.proved for _, _, judgement in rows),
        "below_noise": sum(judgement.below for _, _, judgement in rows),
        "only_alternative": sum(judgement.only_alternative for _, _, judgement in rows),
        "wrong_cause": sum(bool(judgement.wrong) for _, _, judgement in rows),
        "abstained": sum(judgement.abstained for _, _, judgement in rows),
        "median_s": median(result.seconds for result, _, _ in rows) if rows else 0.0,
    }


def _cells(rows: Judged) -> list[str]:
    counts = _counts(rows)
    located = counts["with_a_module"]
    return [
        str(counts["runs"]),
        _of(counts["detected"], counts["runs"]),
        _of(counts["exact_module"], located) if located else "-",
        _of(counts["named"], counts["causes"]),
        _of(counts["proved"], counts["named"]) if counts["named"] else "-",
        str(counts["below_noise"]),
        str(counts["only_alternative"]),
        str(counts["wrong_cause"]),
        str(counts["abstained"]),
        f"{counts['median_s']:.1f}",
    ]


def _of(part: int, whole: int) -> str:
    return f"{part}/{whole}" + (f" ({100 * part / whole:.0f} %)" if whole >= 20 else "")


def _table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    columns = list(columns)
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def _by_class(judged: Judged) -> str:
    classes: dict[str, Judged] = defaultdict(list)
    for row in judged:
        classes[row[1].title].append(row)
    rows = [[title, *_cells(classes[title])] for title in sorted(classes)]
    return _table(("class", *COLUMNS), rows) if rows else ""


def _groups(judged: Judged) -> dict[str, Judged]:
    """Sort the faulty runs by what they test; the last group holds all."""
    tests: dict[str, Callable[[Edit], bool]] = {
        "one fault, float32": lambda edit: len(edit.causes) == 1 and edit.dtype == "float32",
        "one fault, bfloat16": lambda edit: len(edit.causes) == 1 and edit.dtype == "bf16",
        "several faults": lambda edit: len(edit.causes) > 1,
        "all": lambda edit: True,
    }
    return {
        name: [row for row in judged if test(row[1])]
        for name, test in tests.items()
        if any(test(row[1]) for row in judged)
    }


def _by_group(judged: Judged) -> str:
    rows = [[name, *_cells(rows)] for name, rows in _groups(judged).items()]
    return _table(("faults", *COLUMNS), rows) if rows else ""


def _silence(silent: list[Outcome]) -> str:
    rows = []
    for kind in ("clean", "null"):
        runs = [result for result in silent if result.kind == kind]
        if runs:
            rows.append(
                [
                    kind,
                    str(len(runs)),
                    str(sum(result.verdict == "divergent" for result in runs)),
                    str(sum(result.verdict == "incomplete" for result in runs)),
                    str(sum(bool(result.below_noise) for result in runs)),
                    str(sum(not result.answered for result in runs)),
                ]
            )
    columns = ("silent", "runs", "divergent", "incomplete", "cause below the noise", "no answer")
    return _table(columns, rows) if rows else ""


def _rules(judged: Judged, silent: list[Outcome]) -> str:
    """Return what the rules find beside what isograd finds; the rules name no cause."""
    groups = {
        "faults, float32": [result for result, edit, _ in judged if edit.dtype == "float32"],
        "faults, bfloat16": [result for result, edit, _ in judged if edit.dtype == "bf16"],
        "clean": [result for result in silent if result.kind == "clean"],
        "null": [result for result in silent if result.kind == "null"],
    }
    groups = {name: runs for name, runs in groups.items() if runs}
    rows = [["isograd", *(_share(run.detected for run in runs) for runs in groups.values())]]
    for rule in RULES:
        shares = (_share(run.rules.get(rule) for run in runs) for runs in groups.values())
        rows.append([rule, *shares])
    return _table(("alarm raised by", *groups), rows)


def _share(answers: Iterable[bool | None]) -> str:
    """Count alarms among the runs in which the rule had something to look at."""
    known = [answer for answer in answers if answer is not None]
    return _of(sum(known), len(known)) if known else "-"


def _seconds(results: list[Outcome]) -> str:
    times = sorted(result.seconds for result in results)
    if len(times) < 2:
        return ""
    tenth = quantiles(times, n=10)[-1]
    return f"Seconds for a run: median {median(times):.1f}, 90 % within {tenth:.1f}."


def _misses(judged: Judged, silent: list[Outcome]) -> str:
    rows = []
    for result, edit, judgement in judged:
        if not judgement.right:
            expected = f"{edit.stages[0]}: {_name(edit.module)}: {', '.join(edit.causes)}"
            rows.append([edit.id, str(result.seed), expected, _said(result)])
    rows += [
        [result.id, str(result.seed), "silence", _said(result)]
        for result in silent
        if not is_right(result, None)
    ]
    return _table(("not right", "seed", "expected", "said"), rows) if rows else ""


def _said(result: Outcome) -> str:
    if not result.answered:
        return "no answer: " + " ".join(result.error.split())[-160:].replace("|", "/")
    if not result.detected and not result.below_noise:
        return "nothing"
    causes = [f"{said.cause} in {_name(said.module)} ({said.stage})" for said in result.named]
    causes += [f"{said.cause} below the noise" for said in result.below_noise]
    first = f"{result.stage}: {_name(result.module)}"
    if result.verdict == "incomplete":
        first = f"incomplete; {first}"
    return f"{first}: {', '.join(dict.fromkeys(causes)) or 'no cause'}"


def _name(module: str | None) -> str:
    return "any" if module is None else module or "(root)"
