"""`isograd compare`: parse, and one call."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from isograd.cli.inputs import OUTPUT
from isograd.cli.verb import Output, verb
from isograd.errors import UsageError

if TYPE_CHECKING:
    from isograd.compare.answer import Answer
    from isograd.compare.files.curve_model import CurvesReport
    from isograd.compare.files.model import FilesReport
    from isograd.compare.files.options import CompareOptions
    from isograd.progress import Progress

_STEPS = re.compile(r"(\d*):(\d*)")
#: Options that hold for every kind of input, and those that hold for one kind only.
_ALWAYS = frozenset({"inputs", "json_file", "csv_file", "quiet", "is_all"})
_OF_CURVES = frozenset({"html_file", "steps", "series"})
_OF_QUESTIONS = frozenset({"sql"})


@verb(
    document="isograd.compare.document:document",
    outputs=(
        Output("csv", "Write a row per tensor.", "isograd.compare.table:render_csv"),
        Output(
            "parquet",
            "Write a row per tensor as Parquet (extra `sql`).",
            "isograd.compare.parquet:parquet_bytes",
            is_text=False,
            check="isograd.compare.parquet:require_duckdb",
        ),
    ),
)
@click.argument("inputs", nargs=-1, metavar="A B")
@click.option(
    "--sql",
    metavar="QUESTION",
    help="Ask Parquet files a question instead: they are the tables result, result2, …",
)
@click.option(
    "--map", "map_file", type=OUTPUT, metavar="FILE", help="Which name of A is which of B."
)
@click.option(
    "--envelope",
    "envelope_file",
    type=OUTPUT,
    metavar="FILE",
    help="JSON with the relative error that each tensor may have; `*` is all others.",
)
@click.option("--rtol", type=click.FloatRange(min=0), help="Allowed share of each element of A.")
@click.option("--atol", type=click.FloatRange(min=0), help="Allowed absolute difference.")
@click.option("--only", multiple=True, metavar="GLOB", help="Compare only these names.")
@click.option("--ignore", multiple=True, metavar="GLOB", help="Leave these names out.")
@click.option(
    "--with-states",
    is_flag=True,
    help="Compare what lies beside the networks, too, such as states of an optimizer.",
)
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
@click.option("--resume", "journal", type=OUTPUT, metavar="FILE", help="Keep finished pairs here.")
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
def command(progress: Progress, **given: Any) -> FilesReport | CurvesReport | Answer:
    """Compare two checkpoints, tensor folders, dumps or loss curves.

    A is the reference. Tensors are paired by the map, by name, by the conventions of the two
    frameworks, and by structure. Without --rtol, --atol or --envelope the tolerance is that of the
    dtype; integers must be equal. Two logs are recognised and compared as loss curves.

    Exit status: 0 all was compared and agrees; 1 something differs, is missing or could not be
    compared (with --consecutive: a tensor that trains did not change, or is not finite); 2 isograd
    was called wrongly or could not do its work.
    """
    inputs: tuple[str, ...] = given["inputs"]
    if given["sql"] is not None:
        _refuse_others(_ALWAYS | _OF_QUESTIONS, "a question in SQL")
        from isograd.compare.parquet import answer

        return answer(given["sql"], [Path(name) for name in inputs])
    from isograd.compare.run import are_logs, check_count, compare_tensors

    check_count(inputs, is_one_enough=given["is_between_ranks"])
    if are_logs(inputs):
        _refuse_others(_ALWAYS | _OF_CURVES, "loss curves")
        from isograd.compare.files.curves import compare_logs

        first, second = (Path(name) for name in inputs)
        return compare_logs(first, second, _span(given["steps"]), given["series"])
    _refuse(_OF_CURVES - {"html_file"}, "tensors")
    options = _options(given, inputs)
    return compare_tensors(
        inputs, options, is_between_ranks=given["is_between_ranks"], progress=progress
    )


def _span(steps: str | None) -> tuple[int, int | None] | None:
    """The first and the last step, both included."""
    if steps is None:
        return None
    found = _STEPS.fullmatch(steps)
    if found is None or steps == ":":
        raise UsageError(f"--steps {steps!r} is no span of steps", "Write FIRST:LAST, as 1:100.")
    first, last = int(found[1] or 0), int(found[2]) if found[2] else None
    if last is not None and last < first:
        raise UsageError(f"--steps {steps} holds no step", "Write FIRST:LAST, as 1:100.")
    return first, last


def _options(given: dict[str, Any], inputs: tuple[str, ...]) -> CompareOptions:
    from isograd.compare.files.options import CompareOptions
    from isograd.compare.run import with_rules

    options = CompareOptions(
        only=given["only"],
        ignore=given["ignore"],
        with_states=given["with_states"],
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


def _refuse_others(allowed: frozenset[str], what: str) -> None:
    _refuse(frozenset(click.get_current_context().params) - allowed, what)


def _refuse(names: frozenset[str], what: str) -> None:
    """Raise UsageError for an option that is given and means nothing here."""
    context = click.get_current_context()
    options = [option for option in context.command.params if option.name in names]
    for option in options:
        source = context.get_parameter_source(option.name or "")
        if source is click.core.ParameterSource.COMMANDLINE:
            raise UsageError(f"{option.opts[0]} does not apply to {what}", "Leave it out.")
