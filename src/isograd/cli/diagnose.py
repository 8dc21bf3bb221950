"""`isograd diagnose`: parse, one call, render, exit status."""

from __future__ import annotations

from pathlib import Path

import click

from isograd.cli import outputs
from isograd.errors import UsageError
from isograd.files import write_text
from isograd.model import DiagnoseReport, Verdict


@click.command()
@outputs.on_a_case
@click.option(
    "--module",
    metavar="NAME",
    help="The reference's module; `network` is the root's own code, `loss` the loss alone.",
)
@click.option(
    "--mode", type=click.Choice(["train", "eval"]), help="Default: the first of the case's modes."
)
@click.option("--list", "is_list", is_flag=True, help="Only list the modules.")
def command(
    case: Path,
    json_file: Path | None,
    html_file: Path | None,
    seed: int,
    quiet: bool,
    module: str | None,
    mode: str | None,
    is_list: bool,
) -> int:
    """Why does this one module differ, and which hypotheses were tried on it?

    The module runs alone on both sides with the reference's inputs. Then the reference runs again
    under every hypothesis that applies to its code, and the port is compared with each.

    Exit status: 0 the module agrees; 1 it differs, or could not be judged; 2 isograd was called
    wrongly or could not do its work.
    """
    outputs.check_files(case, json_file, html_file)
    if is_list:
        if json_file is not None or html_file is not None:
            raise UsageError("--list writes no report", "Leave out --json and --html.")
        return _list(case, seed, quiet)
    if module is None:
        raise UsageError("diagnose needs the name of a module", "Give --module NAME, or --list.")
    from isograd.verify import diagnose_case

    with outputs.progress_on_screen(quiet) as progress:
        report = diagnose_case(case, module, mode=mode, seed=seed, progress=progress)
    _write(report, json_file, html_file)
    _show(report, quiet, to_error=json_file == outputs.STANDARD_OUTPUT)
    return 0 if report.verdict is Verdict.EQUIVALENT else 1


def _list(case: Path, seed: int, quiet: bool) -> int:
    from isograd.cli.screen import show
    from isograd.report.diagnose_text import render_list
    from isograd.verify import list_modules

    with outputs.progress_on_screen(quiet) as progress:
        modules = list_modules(case, seed=seed, progress=progress)
    show(lambda width, colour: render_list(modules, width=width, colour=colour), to_error=False)
    return 0


def _write(report: DiagnoseReport, json_file: Path | None, html_file: Path | None) -> None:
    if html_file is not None:
        from isograd.report.diagnose_html import render_html

        write_text(html_file, render_html(report))
    if json_file is not None:
        from isograd.report.diagnose_json import render_json

        outputs.write_json(json_file, render_json(report))


def _show(report: DiagnoseReport, quiet: bool, *, to_error: bool) -> None:
    from isograd.cli.screen import show
    from isograd.report import diagnose_text

    show(
        lambda width, colour: (
            diagnose_text.render_verdict(report)
            if quiet
            else diagnose_text.render_text(report, width=width, colour=colour)
        ),
        to_error=to_error,
    )
