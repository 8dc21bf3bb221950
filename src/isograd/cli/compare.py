"""`isograd compare`: parse, one call, render, exit status."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from isograd.cli.outputs import STANDARD_OUTPUT, check_outputs, write_json
from isograd.errors import UsageError
from isograd.files import write_text

if TYPE_CHECKING:
    from isograd.compare.files.model import FilesReport
    from isograd.compare.files.options import CompareOptions, CompareProgress

_FILE = click.Path(path_type=Path)
#: Options that hold for every kind of input, and those that hold for one kind only.
_ALWAYS = frozenset({"inputs", "json_file", "csv_file", "quiet"})
_OF_CURVES = frozenset({"html_file", "steps", "series"})
_OF_QUESTIONS = frozenset({"sql"})


@click.command()
@click.argument("inputs", nargs=-1, metavar="A B")
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
    help="Write one HTML page with heat map and histograms, which needs no network.",
)
@click.option(
    "--parquet",
    "parquet_file",
    type=_FILE,
    metavar="FILE",
    help="Write a row per tensor as Parquet (extra `sql`).",
)
@click.option(
    "--sql",
    metavar="QUESTION",
    help="Ask Parquet files a question instead: they are the tables result, result2, …",
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
    "--consecutive/--no-consecutive",
    "is_consecutive",
    default=None,
    help="A and B are states of one training, or are not. Default: what their names say.",
)
@click.option(
    "--between-ranks",
    "is_between_ranks",
    is_flag=True,
    help="Compare the ranks of each run with its lowest as well; B may be left out.",
)
@click.option("--steps", metavar="FIRST:LAST", help="Of loss curves, compare only these steps.")
@click.option("--series", metavar="NAME", help="Of loss curves, compare this column or tag.")
@click.option(
    "--no-distribution",
    "is_plain",
    is_flag=True,
    help="Count neither ulps nor a histogram, which takes half of the time.",
)
@click.option("--resume", "journal", type=_FILE, metavar="FILE", help="Keep finished pairs here.")
@click.option(
    "--threads",
    type=click.IntRange(min=0),
    default=0,
    help="Threads, or local workers with --engine dask. Default: as many as cores.",
)
@click.option(
    "--engine",
    type=click.Choice(["threads", "dask"]),
    default="threads",
    help="What does the work (extra `dask`). Default: threads.",
)
@click.option("--scheduler", metavar="ADDRESS", help="Dask's scheduler, as tcp://host:8786.")
@click.option("--quiet", is_flag=True, help="Show no progress, and only the last line.")
@click.pass_context
def command(context: click.Context, /, **given: Any) -> int:
    """Two checkpoints, tensor folders, dumps or loss curves: where do they differ?

    A is the reference. Tensors are paired by the map, by name, by the conventions of the two
    frameworks, and by structure. Without --rtol, --atol or --envelope the tolerance is that of the
    dtype; integers must be equal. Two logs are recognised and compared as loss curves.

    Exit status: 0 all was compared and agrees; 1 something differs, is missing or could not be
    compared (with --consecutive: a tensor that trains did not change, or is not finite); 2 isograd
    was called wrongly or could not do its work.
    """
    inputs: tuple[str, ...] = given["inputs"]
    outputs: dict[str, Path | None] = {
        name: given[f"{name}_file"] for name in ("json", "csv", "html", "parquet")
    }
    check_outputs((Path(name) for name in inputs if "://" not in name), outputs)
    if given["sql"] is not None:
        _refuse_others(context, _ALWAYS | _OF_QUESTIONS, "a question in SQL")
        from isograd.cli.compare_modes import ask

        return ask(given["sql"], inputs, outputs)
    from isograd.compare.run import are_logs, check_count, compare_tensors

    check_count(inputs, is_one_enough=given["is_between_ranks"])
    if are_logs(inputs):
        _refuse_others(context, _ALWAYS | _OF_CURVES, "loss curves")
        from isograd.cli.compare_modes import compare_curves

        return compare_curves(inputs, outputs, given["steps"], given["series"], given["quiet"])
    _refuse(context, _OF_CURVES - {"html_file"}, "tensors")
    if outputs["parquet"] is not None:
        from isograd.report.compare_parquet import require_duckdb

        require_duckdb()
    options = _options(given, inputs)
    with _progress(given["quiet"]) as progress:
        report = compare_tensors(
            inputs, options, is_between_ranks=given["is_between_ranks"], progress=progress
        )
    _write(report, outputs)
    _show(report, given["quiet"], to_error=STANDARD_OUTPUT in outputs.values())
    return 1 if report.needs_action else 0


def _options(given: dict[str, Any], inputs: tuple[str, ...]) -> CompareOptions:
    from isograd.compare.files.options import CompareOptions
    from isograd.compare.run import with_rules

    options = CompareOptions(
        only=given["only"],
        ignore=given["ignore"],
        threads=given["threads"],
        journal=given["journal"],
        is_consecutive=given["is_consecutive"],
        is_counting=not given["is_plain"],
        engine=given["engine"],
        scheduler=given["scheduler"],
    )
    return with_rules(
        options,
        inputs,
        rtol=given["rtol"],
        atol=given["atol"],
        envelope=given["envelope_file"],
        names=given["map_file"],
    )


def _refuse_others(context: click.Context, allowed: frozenset[str], what: str) -> None:
    _refuse(context, frozenset(context.params) - allowed, what)


def _refuse(context: click.Context, names: frozenset[str], what: str) -> None:
    """Raise UsageError for an option that is given and means nothing here."""
    options = [option for option in context.command.params if option.name in names]
    for option in options:
        source = context.get_parameter_source(option.name or "")
        if source is click.core.ParameterSource.COMMANDLINE:
            raise UsageError(f"{option.opts[0]} does not apply to {what}", "Leave it out.")


def _write(report: FilesReport, outputs: dict[str, Path | None]) -> None:
    if (json_file := outputs["json"]) is not None:
        from isograd.report.compare_json import render_json

        write_json(json_file, render_json(report))
    if (csv_file := outputs["csv"]) is not None:
        from isograd.report.compare_json import render_csv

        write_json(csv_file, render_csv(report))
    if (html_file := outputs["html"]) is not None:
        from isograd.report.compare_html import render_html

        write_text(html_file, render_html(report))
    if (parquet_file := outputs["parquet"]) is not None:
        from isograd.report.compare_parquet import write_parquet

        write_parquet(parquet_file, report)


def _show(report: FilesReport, quiet: bool, *, to_error: bool) -> None:
    from isograd.cli.screen import show
    from isograd.report.compare_text import render_line, render_text

    show(
        lambda width, colour: (
            render_line(report) if quiet else render_text(report, width=width, colour=colour)
        ),
        to_error=to_error,
    )


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
