"""`isograd verify`: parse, one call, render, exit status."""

from __future__ import annotations

from pathlib import Path

import click

from isograd.cli.outputs import (
    STANDARD_OUTPUT,
    check_files,
    on_a_case,
    progress_on_screen,
    write_json,
)
from isograd.files import prepare_folder, write_text
from isograd.model import Verdict, VerifyReport


@click.command()
@on_a_case
@click.option(
    "--keep",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Keep the recordings of both sides in this new or empty folder.",
)
@click.option(
    "--fix", "show_fixes", is_flag=True, help="Show the fixes that can be applied as a diff."
)
@click.option(
    "--apply", "apply_fixes", is_flag=True, help="Write these fixes to the port, and verify again."
)
def command(
    case: Path,
    json_file: Path | None,
    html_file: Path | None,
    seed: int,
    keep: Path | None,
    show_fixes: bool,
    apply_fixes: bool,
    quiet: bool,
) -> int:
    """Is the port equivalent, stage by stage? Where does it first differ, and why?

    CASE.toml names the reference, the port, their inputs, loss and optimizer. Both sides run with
    the same weights and inputs, and every layer is compared against float64.

    Exit status: 0 equivalent; 1 divergent, or incomplete because something could not be compared;
    2 isograd was called wrongly or could not do its work.
    """
    check_files(case, json_file, html_file)
    if keep is not None:
        prepare_folder(keep)
    from isograd.verify import verify_case

    with progress_on_screen(quiet) as progress:
        report = verify_case(case, seed=seed, keep=keep, progress=progress)
    to_error = json_file == STANDARD_OUTPUT
    _show(report, quiet, to_error=to_error)
    wants_fixes = show_fixes or apply_fixes
    if wants_fixes and _fix(report, apply_fixes, to_error=to_error):
        with progress_on_screen(quiet) as progress:
            report = verify_case(case, seed=seed, keep=None, progress=progress)
        _show(report, quiet, to_error=to_error)
    _write(report, json_file, html_file)
    return 0 if report.verdict is Verdict.EQUIVALENT else 1


def _fix(report: VerifyReport, apply_fixes: bool, *, to_error: bool) -> bool:
    """Show the fixes of a report, or write them; whether a file was changed."""
    from isograd.cli.screen import show
    from isograd.verify.fixing import fixes_of

    fixes = fixes_of(report)
    text = fixes.diff() + fixes.sentence() + "\n"
    changed = apply_fixes and bool(fixes.edits)
    if changed:
        text = f"{fixes.diff()}{fixes.apply()}\n"
    show(lambda width, colour: text, to_error=to_error)
    return changed


def _write(report: VerifyReport, json_file: Path | None, html_file: Path | None) -> None:
    if html_file is not None:
        from isograd.report.html import render_html

        write_text(html_file, render_html(report))
    if json_file is not None:
        from isograd.report.json import render_json

        write_json(json_file, render_json(report))


def _show(report: VerifyReport, quiet: bool, *, to_error: bool) -> None:
    from isograd.cli.screen import show
    from isograd.report.text import render_text, render_verdict

    if quiet:
        show(lambda width, colour: render_verdict(report), to_error=to_error)
    else:
        show(
            lambda width, colour: render_text(report, width=width, colour=colour),
            to_error=to_error,
        )
