"""`isograd verify`: parse, and one call."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from isograd.cli.inputs import CASES, OUTPUT, SEED_HELP
from isograd.cli.verb import show_before, verb
from isograd.errors import UsageError
from isograd.files import prepare_folder

if TYPE_CHECKING:
    from isograd.model import VerifyReport
    from isograd.progress import Progress
    from isograd.verify.many import CasesReport
    from isograd.verify.part import Part


@verb(document="isograd.verify.many:document")
@click.argument("cases", type=CASES, nargs=-1, required=True, metavar="CASE.toml…")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help=SEED_HELP)
@click.option(
    "--keep",
    type=OUTPUT,
    metavar="FOLDER",
    help="Keep the recordings of both sides in this new or empty folder.",
)
@click.option(
    "--stage",
    "stages",
    multiple=True,
    metavar="STAGE",
    help="Run only this stage and what it needs; may be given several times.",
)
@click.option(
    "--module",
    metavar="NAME",
    help="Compare only this module of the reference and those in it; `network` is the whole.",
)
@click.option(
    "--fix", "show_fixes", is_flag=True, help="Show the fixes that can be applied as a diff."
)
@click.option(
    "--apply", "apply_fixes", is_flag=True, help="Write these fixes to the port, and verify again."
)
def command(
    cases: tuple[Path, ...],
    seed: int,
    keep: Path | None,
    stages: tuple[str, ...],
    module: str | None,
    show_fixes: bool,
    apply_fixes: bool,
    progress: Progress,
) -> VerifyReport | CasesReport:
    """Prove that a port is equivalent, or find where it first differs, why, and the fix.

    CASE.toml names the reference, the port, their inputs, loss and optimizer. Both sides run with
    the same weights and inputs, and every layer is compared against float64. Of several cases, or
    a folder of them, a table is shown.

    Exit status: 0 equivalent; 1 divergent, or incomplete because something could not be compared
    (of several cases: one of them is, or could not be verified); 2 isograd was called wrongly or
    could not do its work.
    """
    from isograd.verify.many import expanded, verify_each
    from isograd.verify.part import part_of

    part = part_of(stages, module)
    chosen = expanded(cases)
    if len(chosen) > 1:
        for option, is_given in (("--keep", keep), ("--fix", show_fixes), ("--apply", apply_fixes)):
            if is_given:
                raise UsageError(
                    f"{option} takes one case, and {len(chosen)} are given", "Give one."
                )
        from isograd.verify.ladder import verify_case

        return verify_each(
            chosen,
            lambda case, start: verify_case(
                case, seed=seed, keep=None, progress=progress, part=part, start=start
            ),
        )
    return _verified(chosen[0], seed, keep, part, show_fixes, apply_fixes, progress)


def _verified(
    case: Path,
    seed: int,
    keep: Path | None,
    part: Part,
    show_fixes: bool,
    apply_fixes: bool,
    progress: Progress,
) -> VerifyReport:
    """One case, with its fixes."""
    if keep is not None:
        prepare_folder(keep)
    from isograd.verify.ladder import verify_case

    report = verify_case(case, seed=seed, keep=keep, progress=progress, part=part)
    if not (show_fixes or apply_fixes):
        return report
    from isograd.verify.fixing import fixes_of

    fixes = fixes_of(report)
    if not (apply_fixes and fixes.edits):
        show_before(f"{fixes.diff()}{fixes.sentence()}\n\n")
        return report
    show_before(f"{fixes.diff()}{fixes.apply()}\n\n")
    return verify_case(case, seed=seed, keep=None, progress=progress, part=part)
