"""A conversion as text: what was converted, what is left by its cost, the files, the diff."""

from __future__ import annotations

import difflib
from collections import defaultdict
from io import StringIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from isograd.convert.model import ConvertReport, Finding, Level
from isograd.report.text import make_console, write_line, written
from isograd.report.wording import count_text, printable, seconds_text

#: Rows of each table; the JSON report has them all.
MOST_COSTS = 15
MOST_FILES = 20
MOST_FINDINGS = 20


def render_text(report: ConvertReport, *, width: int = 100, colour: bool = False) -> str:
    """The report as lines of text; tables fit the width, in characters."""
    stream = StringIO()
    console = make_console(stream, width, colour)
    write_line(console, head_line(report), "bold")
    write_line(console, knowledge_line(report), "dim")
    for file, names in report.compositions:
        write_line(console, f"{printable(file)}: {count_text(len(names), 'composition')}", "dim")
    _costs(console, report)
    _files(console, report)
    _findings(console, report)
    write_line(console, sentence(report), "bold")
    return written(stream)


def render_line(report: ConvertReport) -> str:
    """Only the last line of the report."""
    return sentence(report) + "\n"


def render_diff(report: ConvertReport) -> str:
    """The edits of all files as one unified diff."""
    parts = []
    for file in report.files:
        if file.original is None or file.port is None:
            continue
        name = printable(file.file)
        lines = difflib.unified_diff(
            _lines(file.original), _lines(file.port), f"a/{name}", f"b/{name}", n=3
        )
        parts += [line if line.endswith("\n") else f"{line}\n" for line in lines]
    return "".join(parts)


def _lines(text: str) -> list[str]:
    return [f"{printable(line)}\n" for line in text.replace("\r\n", "\n").split("\n")]


def head_line(report: ConvertReport) -> str:
    """What was converted, where to, and how long it took."""
    where = f" → {printable(report.out)}" if report.out else ", written nowhere"
    return (
        f"{printable(report.path)}{where}: {count_text(len(report.files), 'file')}, "
        f"{count_text(report.lines, 'line')}, {seconds_text(report.elapsed_s)} s"
    )


def knowledge_line(report: ConvertReport) -> str:
    """What stands behind the rewrites."""
    verified = "mint was not executed here; " if report.target == "mint" else ""
    if not report.mindspore:
        return f"{verified}the knowledge behind this conversion was not executed on any device"
    return (
        f"{verified}executed on torch {report.torch} and MindSpore {report.mindspore}, "
        f"{report.device}"
    )


def sentence(report: ConvertReport) -> str:
    """The whole answer in one sentence."""
    left = [finding for finding in report.findings if finding.level is Level.FINISH]
    looks = len(report.findings) - len(left)
    if not report.uses and not report.findings:
        return "No use of torch was found: nothing was changed."
    share = report.converted / report.uses if report.uses else 1.0
    changed = sum(file.is_changed for file in report.files)
    if not left:
        rest = "nothing is left to finish"
    else:
        places = count_text(len(left), "place")
        rest = f"{places} in {count_text(len({f.file for f in left}), 'file')} left to finish"
    look = f"; {count_text(looks, 'place')} to look at" if looks else ""
    return (
        f"{share:.1%} of {count_text(report.uses, 'use')} converted in "
        f"{count_text(changed, 'file')}; {rest}{look}."
    )


def costs(report: ConvertReport) -> list[tuple[str, int, Finding]]:
    """What is left to finish, by what it is about, the most frequent first."""
    found: dict[str, list[Finding]] = defaultdict(list)
    for finding in report.findings:
        if finding.level is Level.FINISH:
            found[finding.api or finding.code].append(finding)
    rows = [(name, len(findings), findings[0]) for name, findings in found.items()]
    return sorted(rows, key=lambda row: (-row[1], row[0]))


def _costs(console: Console, report: ConvertReport) -> None:
    rows = costs(report)
    if not rows:
        return
    write_line(console, "What is left costs most here", "bold")
    table = _table("API", ("places",))
    table.add_column("why", overflow="fold")
    for name, count, finding in rows[:MOST_COSTS]:
        why = " ".join(part for part in (finding.message, finding.advice) if part)
        why = why if len(why) <= 160 else why[:157] + "…"
        table.add_row(Text(printable(name)), f"{count:,}", Text(printable(why)))
    console.print(table)


def _files(console: Console, report: ConvertReport) -> None:
    rows = [file for file in report.files if file.uses or file.findings]
    if not rows:
        return
    rows.sort(key=lambda file: (-len(file.findings), file.file))
    table = _table("file", ("uses", "converted", "findings"))
    for file in rows[:MOST_FILES]:
        counts = (f"{file.uses:,}", f"{file.converted:,}", f"{len(file.findings):,}")
        table.add_row(Text(printable(file.file)), *counts)
    console.print(table)
    if len(rows) > MOST_FILES:
        rest = count_text(len(rows) - MOST_FILES, "file")
        write_line(console, f"and {rest} more in --json", "dim")
        console.print()


def _findings(console: Console, report: ConvertReport) -> None:
    left = [finding for finding in report.findings if finding.level is Level.FINISH]
    for finding in left[:MOST_FINDINGS]:
        place = printable(finding.file) + (f":{finding.line}" if finding.line else "")
        text = f"{place}: {printable(finding.message)}"
        if finding.advice:
            text += f" ({printable(finding.advice)})"
        write_line(console, text, "yellow")
    if len(left) > MOST_FINDINGS:
        rest = count_text(len(left) - MOST_FINDINGS, "finding")
        write_line(console, f"and {rest} more in --json", "dim")
    if left:
        console.print()


def _table(first: str, numbers: tuple[str, ...]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    table.add_column(first, overflow="fold")
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table
