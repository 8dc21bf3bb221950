"""`isograd verify`: parse, and one call."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from isograd.cli.inputs import CASE, SEED_HELP
from isograd.cli.verb import show_before, verb
from isograd.files import prepare_folder

if TYPE_CHECKING:
    from isograd.model import VerifyReport
    from isograd.progress import Progress


@verb(document="isograd.verify.document:document")
@click.argument("case", type=CASE, metavar="CASE.toml")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help=SEED_HELP)
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
    seed: int,
    keep: Path | None,
    show_fixes: bool,
    apply_fixes: bool,
    progress: Progress,
) -> VerifyReport:
    """Is the port equivalent, stage by stage? Where does it first differ, and why?

    CASE.toml names the reference, the port, their inputs, loss and optimizer. Both sides run with
    the same weights and inputs, and every layer is compared against float64.

    Exit status: 0 equivalent; 1 divergent, or incomplete because something could not be compared;
    2 isograd was called wrongly or could not do its work.
    """
    if keep is not None:
        prepare_folder(keep)
    from isograd.verify.ladder import verify_case

    report = verify_case(case, seed=seed, keep=keep, progress=progress)
    if not (show_fixes or apply_fixes):
        return report
    from isograd.verify.fixing import fixes_of

    fixes = fixes_of(report)
    if not (apply_fixes and fixes.edits):
        show_before(f"{fixes.diff()}{fixes.sentence()}\n\n")
        return report
    show_before(f"{fixes.diff()}{fixes.apply()}\n\n")
    return verify_case(case, seed=seed, keep=None, progress=progress)
