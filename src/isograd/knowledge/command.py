"""The command line over the knowledge: build, check, coverage."""

from __future__ import annotations

import fnmatch
from collections import defaultdict
from pathlib import Path
from typing import Any

import click

from isograd.knowledge import coverage
from isograd.knowledge.build import build
from isograd.knowledge.check import table
from isograd.knowledge.check.batches import Outcome, chosen, run
from isograd.knowledge.check.compiled import check_entries, check_runtime
from isograd.knowledge.entry import Entry
from isograd.knowledge.store import COMPILED_FILE, VERIFIED_FILE, load_knowledge


@click.group()
def main() -> None:
    """Knowledge about torch's APIs: compile it, execute it, count it."""


@main.command("build")
def build_command() -> None:
    """Compile the TOML into the form that ships."""
    click.echo(f"{build()} entries")


@main.command()
@click.option("--only", multiple=True, help="Entries whose name fits this pattern.")
@click.option("--jobs", default=1, show_default=True, help="Processes at a time.")
@click.option("--again", is_flag=True, help="Execute also what has a verdict of these versions.")
@click.option("--device", default="CPU", show_default=True, help="CPU, GPU or Ascend.")
@click.option("--failed", is_flag=True, help="Execute again what disagreed.")
@click.option(
    "--compiled",
    is_flag=True,
    help="Execute the constructs, runtime functions and entries in the static graph instead.",
)
@click.option(
    "--out", default=VERIFIED_FILE, show_default=True, type=click.Path(path_type=Path),
    help="The table of verdicts; load it by the variable ISOGRAD_KNOWLEDGE.",
)  # fmt: skip
def check(
    only: tuple[str, ...],
    jobs: int,
    again: bool,
    device: str,
    failed: bool,
    compiled: bool,
    out: Path,
) -> None:
    """Execute the entries' examples on both frameworks and write the verdicts.

    What has a verdict of the same versions and examples is not executed again.
    """
    if compiled:
        _check_static_graph(only, again, device, None if out == VERIFIED_FILE else out)
        return
    if device != "CPU" and out == VERIFIED_FILE:
        raise click.UsageError("The shipped table is a CPU's. Name another by --out.")
    build()
    knowledge = load_knowledge(out if out.exists() else None, with_examples=True)
    results = table.read(out, device)
    results = {api: row for api, row in results.items() if _current(knowledge.find(api), row)}
    entries = [
        entry
        for entry in chosen(knowledge, only)
        if again or entry.api not in results or (failed and not _agrees(results[entry.api]))
    ]
    click.echo(f"{len(entries)} entries to execute, {len(results)} kept")
    outcomes: dict[str, list[Outcome]] = defaultdict(list)

    def report(outcome: Outcome) -> None:
        outcomes[outcome.api].append(outcome)
        entry = knowledge.find(outcome.api)
        assert entry is not None
        if outcome.detail:
            click.echo(f"  {outcome.api}: {outcome.detail}")
        if len(outcomes[outcome.api]) == len(entry.examples):
            results[outcome.api] = table.verdict(entry, outcomes[outcome.api])
            if len(outcomes) % 40 == 0:
                click.echo(f"{len(outcomes)} of {len(entries)} entries")
                table.write(out, results, device)

    run(knowledge, entries, jobs, report, device)
    table.write(out, results, device)
    good = sum(_agrees(row) for row in results.values())
    click.echo(f"{good} of {len(results)} executed entries agree")


def _check_static_graph(only: tuple[str, ...], again: bool, device: str, out: Path | None) -> None:
    """Execute the constructs of the static graph; what has a verdict is kept."""
    from isograd.static_graph.check.run import check_constructs
    from isograd.static_graph.executed import RUNTIME_FILE
    from isograd.static_graph.table import VERIFIED, constructs

    if device != "CPU" and out is None:
        raise click.UsageError("The shipped table is a CPU's. Name another by --out.")
    target = out or VERIFIED
    if again:
        target.unlink(missing_ok=True)
    wanted = [
        c for c in constructs() if not only or any(fnmatch.fnmatch(c.code, one) for one in only)
    ]
    done = 0

    def report(code: str, row: dict[str, Any]) -> None:
        nonlocal done
        done += 1
        verdicts = [f"{way}: {row['example'][way][0]}" for way in row.get("example", ())]
        click.echo(f"{done}  {code}  {', '.join(verdicts) or 'not executed'}")

    results = check_constructs(wanted, report, device, target)
    click.echo(f"{len(results)} constructs have a verdict; {len(wanted) - done} were kept")
    knowledge = load_knowledge(with_examples=True)
    functions = check_runtime(
        knowledge,
        lambda name, verdict: click.echo(f"{name}: {verdict}"),
        device,
        target.with_name(f"runtime-{target.name}") if out else RUNTIME_FILE,
        lambda name: not only or any(fnmatch.fnmatch(name, one) for one in only),
    )
    click.echo(f"{len(functions)} runtime functions have a verdict of the static graph")
    entries = chosen(knowledge, only)
    apis = target.with_name(f"apis-{target.name}") if out else COMPILED_FILE
    told = check_entries(
        knowledge, entries, lambda api, word: click.echo(f"{api}: {word}"), device, apis
    )
    click.echo(f"{len(told)} APIs have a verdict of the static graph")


def _current(entry: Entry | None, row: dict[str, object]) -> bool:
    return entry is not None and row.get("of") == table.fingerprint(entry)


def _agrees(row: dict[str, object]) -> bool:
    return row["forward"] is True and row["gradient"] is not False


@main.command("coverage")
@click.option("--execution", type=click.Path(path_type=Path, exists=True), help="A JSON of APIs.")
@click.option("--mapping", type=click.Path(path_type=Path, exists=True), help="The official table.")
def coverage_command(execution: Path | None, mapping: Path | None) -> None:
    """Count the entries, their verdicts, and the lists that they cover."""
    knowledge = load_knowledge()
    found = coverage.figures(knowledge)
    click.echo(f"{found.entries} entries, {found.names} names")
    click.echo(f"{found.executed} executed: forward {found.forward}, gradient {found.gradient}")
    for status, count in sorted(found.by_status.items()):
        click.echo(f"  {status}: {count}")
    click.echo(f"{len(found.disagreeing)} disagree: {', '.join(found.disagreeing) or 'none'}")
    lists: dict[str, list[str]] = {}
    if execution:
        lists["most used"] = coverage.execution_names(execution, most_used=True)
        lists["executed list"] = coverage.execution_names(execution, most_used=False)
    if mapping:
        lists["official table"] = coverage.mapping_names(mapping)
    for title, names in lists.items():
        part = coverage.share(knowledge, names)
        click.echo(f"{title}: {part.known} of {part.names} known, {part.agreeing} agree when run")
        if part.unknown:
            click.echo(f"  unknown: {', '.join(part.unknown)}")
