"""`isograd compare`: parse, one call, render, exit status."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from isograd.cli.outputs import STANDARD_OUTPUT, write_json
from isograd.errors import UsageError
from isograd.files import require_writable, write_text

if TYPE_CHECKING:
    from isograd.compare.files.curve_model import CurvesReport
    from isograd.compare.files.model import FilesReport
    from isograd.compare.files.options import CompareOptions, CompareProgress

_FILE = click.Path(path_type=Path)


@click.command()
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option(
    "--json",
    "json_file",
    type=_FILE,
    metavar="FILE",
    help="Write the report as JSON; `-` is standard output and moves the text to standard error.",
)
@click.option("--csv", "csv_file", type=_FILE, metavar="FILE", help="Write a row per tensor.")
@click.option(
    "--html",
    "html_file",
    type=_FILE,
    metavar="FILE",
    help="Write one HTML page with a heat map, which needs no network.",
)
@click.option(
    "--map", "map_file", type=_FILE, metavar="FILE", help="Which name of A is which of B."
)
@click.option(
    "--envelope",
    "envelope_file",
    type=_FILE,
    metavar="FILE",
    help="JSON with the relative error that each tensor may have; `*` is all others.",
)
@click.option("--rtol", type=click.FloatRange(min=0), help="Allowed share of each element of A.")
@click.option("--atol", type=click.FloatRange(min=0), help="Allowed absolute difference.")
@click.option("--only", multiple=True, metavar="GLOB", help="Compare only these names.")
@click.option("--ignore", multiple=True, metavar="GLOB", help="Leave these names out.")
@click.option(
    "--consecutive", "is_consecutive", is_flag=True, help="A and B are states of one training."
)
@click.option("--resume", "journal", type=_FILE, metavar="FILE", help="Keep finished pairs here.")
@click.option("--threads", type=click.IntRange(min=0), default=0, help="Default: as many as cores.")
@click.option("--quiet", is_flag=True, help="Show no progress, and only the last line.")
def command(
    first: str,
    second: str,
    json_file: Path | None,
    csv_file: Path | None,
    html_file: Path | None,
    map_file: Path | None,
    envelope_file: Path | None,
    rtol: float | None,
    atol: float | None,
    only: tuple[str, ...],
    ignore: tuple[str, ...],
    is_consecutive: bool,
    journal: Path | None,
    threads: int,
    quiet: bool,
) -> int:
    """Two checkpoints, tensor folders, dumps or loss curves: where do they differ?

    A is the reference. Tensors are paired by the map, by name, by the conventions of the two
    frameworks, and by structure. Without --rtol, --atol or --envelope the tolerance is that of the
    dtype; integers must be equal. Two logs are recognised and compared as loss curves.

    Exit status: 0 all was compared and agrees; 1 something differs, is missing or could not be
    compared (with --steps: a tensor that trains did not change, or is not finite); 2 isograd was
    called wrongly or could not do its work.
    """
    outputs = {"json": json_file, "csv": csv_file, "html": html_file}
    _check_files((first, second), outputs)
    from isograd.compare.files.logs import is_log

    if is_log(first) and is_log(second):
        return _curves(Path(first), Path(second), outputs, quiet)
    options = _options(rtol, atol, map_file, envelope_file, only, ignore)
    from dataclasses import replace

    options = replace(
        options,
        threads=threads,
        journal=journal,
        is_consecutive=is_consecutive,
        addresses=(first, second),
    )
    report = _compare(first, second, options, quiet)
    if json_file is not None:
        from isograd.report.compare_json import render_json

        write_json(json_file, render_json(report))
    if csv_file is not None:
        from isograd.report.compare_json import render_csv

        write_json(csv_file, render_csv(report))
    if html_file is not None:
        from isograd.report.compare_html import render_html

        write_text(html_file, render_html(report))
    _show(report, quiet, to_error=STANDARD_OUTPUT in outputs.values())
    return 1 if report.needs_action else 0


def _compare(first: str, second: str, options: CompareOptions, quiet: bool) -> FilesReport:
    from isograd.checkpoints.open import open_source
    from isograd.compare.files.run import compare_sources

    with (
        open_source(first) as reference,
        open_source(second) as other,
        _progress(quiet) as progress,
    ):
        return compare_sources(reference, other, options, progress)


def _options(
    rtol: float | None,
    atol: float | None,
    map_file: Path | None,
    envelope_file: Path | None,
    only: tuple[str, ...],
    ignore: tuple[str, ...],
) -> CompareOptions:
    from isograd.compare.files.maps import read_envelope, read_map
    from isograd.compare.files.options import CompareOptions
    from isograd.compare.files.tolerance import Tolerance

    is_fixed = rtol is not None or atol is not None
    if is_fixed and envelope_file is not None:
        raise UsageError(
            "both an envelope and tolerances are given", "Give --envelope, or --rtol and --atol."
        )
    return CompareOptions(
        tolerance=Tolerance(relative=rtol or 0.0, absolute=atol or 0.0) if is_fixed else None,
        envelope={} if envelope_file is None else read_envelope(envelope_file),
        renames={} if map_file is None else read_map(map_file),
        only=only,
        ignore=ignore,
    )


def _check_files(inputs: tuple[str, str], outputs: dict[str, Path | None]) -> None:
    """Raise UsageError for outputs that cannot be written, before the work begins."""
    named = [file for file in outputs.values() if file is not None]
    if outputs["html"] == STANDARD_OUTPUT:
        raise UsageError("--html cannot write to standard output", "Give a file's name.")
    if named.count(STANDARD_OUTPUT) > 1:
        raise UsageError("two reports go to standard output", "Give one of them a file.")
    seen = {Path(name).resolve() for name in inputs if "://" not in name}
    for file in named:
        if file == STANDARD_OUTPUT:
            continue
        if file.resolve() in seen:
            raise UsageError(
                f"{file} would be overwritten: it is named twice", "Give each output its own file."
            )
        seen.add(file.resolve())
        require_writable(file)


def _show(report: FilesReport, quiet: bool, *, to_error: bool) -> None:
    from isograd.cli.screen import show
    from isograd.report.compare_text import render_line, render_text

    show(
        lambda width, colour: (
            render_line(report) if quiet else render_text(report, width=width, colour=colour)
        ),
        to_error=to_error,
    )


def _curves(first: Path, second: Path, outputs: dict[str, Path | None], quiet: bool) -> int:
    from isograd.compare.files.curves import compare_logs

    if outputs["html"] is not None:
        raise UsageError("loss curves have no page yet", "Give --json or --csv for two logs.")
    report = compare_logs(first, second)
    _write_curves(report, outputs)
    from isograd.cli.screen import show
    from isograd.report.compare_curves import render_line, render_text

    show(
        lambda width, colour: (
            render_line(report) if quiet else render_text(report, width=width, colour=colour)
        ),
        to_error=STANDARD_OUTPUT in outputs.values(),
    )
    return 1 if report.needs_action else 0


def _write_curves(report: CurvesReport, outputs: dict[str, Path | None]) -> None:
    from isograd.report.compare_curves import render_csv, render_json

    if (json_file := outputs["json"]) is not None:
        write_json(json_file, render_json(report))
    if (csv_file := outputs["csv"]) is not None:
        write_json(csv_file, render_csv(report))


@contextmanager
def _progress(quiet: bool) -> Iterator[CompareProgress | None]:
    """A line on a terminal while it takes long; nothing elsewhere."""
    if quiet:
        yield None
        return
    import sys

    from isograd.report.compare_progress import CompareLine

    with CompareLine(sys.stderr) as line:
        yield line
