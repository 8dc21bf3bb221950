"""From the results of single runs to the table and the totals of the benchmark."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from statistics import mean

COLUMNS = (
    "id",
    "class",
    "expected",
    "found",
    "cause",
    "ratio",
    "exit",
    "seconds",
    "right",
)


@dataclass(frozen=True)
class Result:
    """What isograd said about one case with one seed, beside what it should have said.

    `kind` is "clean", "fault" or "null". `found_causes` holds the causes of the first divergence.
    `verdict` is None where isograd wrote no readable JSON; `error` then holds its last words.
    """

    id: str
    network: str
    kind: str
    seed: int
    expected_cause: str | None
    expected_stages: tuple[str, ...]
    expected_module: str | None
    verdict: str | None
    found_stage: str | None
    found_module: str | None
    found_causes: tuple[str, ...]
    ratio: float | None
    exit_status: int | None
    seconds: float
    error: str = ""

    @property
    def detected(self) -> bool:
        """Tell whether isograd found something that a person must act on."""
        return self.exit_status == 1

    @property
    def right_stage(self) -> bool:
        """Tell whether the fault was found first in the stage where it is."""
        return self.detected and self.found_stage in self.expected_stages

    @property
    def right_module(self) -> bool:
        """Tell whether the first divergence names exactly the faulty module."""
        return self.right_stage and self.found_module == self.expected_module

    @property
    def right_cause(self) -> bool:
        """Tell whether the fault's cause is among the causes of the first divergence."""
        return self.detected and self.expected_cause in self.found_causes

    @property
    def right(self) -> bool:
        """Tell whether the whole answer is right: silence, or the right stage and module."""
        if self.kind != "fault":
            return self.exit_status == 0
        return self.right_stage if self.expected_module is None else self.right_module


def read_verdict(report: dict) -> dict:
    """Return the fields of a Result that stand in isograd's verify JSON."""
    first = report.get("first_divergence") or {}
    stage, module = first.get("stage"), first.get("module")
    if stage is None:
        failed = (entry for entry in report["stages"] if entry["verdict"] in ("divergent", "error"))
        stage = next((entry["stage"] for entry in failed), None)
    findings = [
        finding
        for finding in report["findings"]
        if finding["severity"] in ("effective", "masked")
        and finding["stage"] == stage
        and (module is None or finding["module"] == module)
    ]
    if module is None and findings:
        module = findings[0]["module"]
    causes = [finding["cause"]["id"] for finding in findings if finding.get("cause")]
    return {
        "verdict": report["verdict"],
        "found_stage": stage,
        "found_module": module,
        "found_causes": tuple(dict.fromkeys(causes)),
        "ratio": first.get("ratio"),
    }


def table(results: list[Result]) -> str:
    """Return a Markdown table with one row per case, over all its seeds."""
    cases = defaultdict(list)
    for result in results:
        cases[result.id].append(result)
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    lines += ["| " + " | ".join(_row(runs)) + " |" for runs in cases.values()]
    return "\n".join(lines)


def _row(runs: list[Result]) -> tuple[str, ...]:
    """Return the cells of one case; what was found is shown from its worst seed."""
    worst = min(runs, key=lambda result: (result.right, result.detected, result.ratio or 0.0))
    ratios = [result.ratio for result in runs if result.ratio is not None]
    expected = "silence"
    if worst.kind == "fault":
        expected = _place(worst.expected_stages[0], worst.expected_module, unknown="any module")
    found = worst.verdict or "no answer"
    if worst.found_stage is not None:
        found = _place(worst.found_stage, worst.found_module, unknown="no module")
    return (
        worst.id,
        worst.expected_cause or worst.kind,
        expected,
        found,
        ", ".join(worst.found_causes) or "-",
        f"{min(ratios):.3g}" if ratios else "-",
        ", ".join(str(status) for status in sorted({str(run.exit_status) for run in runs})),
        f"{mean(run.seconds for run in runs):.1f}",
        f"{sum(run.right for run in runs)}/{len(runs)}",
    )


def _place(stage: str, module: str | None, unknown: str) -> str:
    """Return a stage and a module as one cell; the root module has the empty name."""
    return f"{stage}: {unknown if module is None else module or '(root)'}"


def totals(results: list[Result]) -> dict:
    """Count the runs that were detected, located, explained, and falsely accused."""
    faults = [result for result in results if result.kind == "fault"]
    located = [result for result in faults if result.expected_module is not None]
    silent = [result for result in results if result.kind != "fault"]
    answers = Counter(result.exit_status for result in results)
    return {
        "fault_runs": len(faults),
        "detected": sum(result.detected for result in faults),
        "right_stage": sum(result.right_stage for result in faults),
        "runs_with_a_module": len(located),
        "exact_module": sum(result.right_module for result in located),
        "right_cause": sum(result.right_cause for result in faults),
        "no_cause": sum(result.detected and not result.found_causes for result in faults),
        "silent_runs": len(silent),
        "false_positives": sum(result.verdict == "divergent" for result in silent),
        "silent_but_incomplete": sum(result.verdict == "incomplete" for result in silent),
        "no_answer": sum(count for status, count in answers.items() if status not in (0, 1)),
    }


def totals_text(counts: dict) -> str:
    """Return the totals as a Markdown list."""
    faults, silent = counts["fault_runs"], counts["silent_runs"]
    return "\n".join(
        [
            f"- detected: {counts['detected']} of {faults} fault runs",
            f"- right stage: {counts['right_stage']} of {faults}",
            f"- exact module: {counts['exact_module']} of {counts['runs_with_a_module']}",
            f"- right cause: {counts['right_cause']} of {faults}; none named: {counts['no_cause']}",
            f"- false positives: {counts['false_positives']} of {silent} clean and null runs; "
            f"incomplete: {counts['silent_but_incomplete']}",
            f"- no answer: {counts['no_answer']} runs",
        ]
    )
