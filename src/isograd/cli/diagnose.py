"""`isograd diagnose`: parse, and one call."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from isograd.cli.inputs import CASE, SEED_HELP
from isograd.cli.verb import is_asked_for, verb
from isograd.errors import UsageError

if TYPE_CHECKING:
    from isograd.model import DiagnoseReport, ModuleList
    from isograd.progress import Progress


@verb(document="isograd.verify.diagnose_document:document")
@click.argument("case", type=CASE, metavar="CASE.toml")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help=SEED_HELP)
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
    case: Path, seed: int, module: str | None, mode: str | None, is_list: bool, progress: Progress
) -> DiagnoseReport | ModuleList:
    """Explain why one module differs, with every hypothesis that was tried.

    The module runs alone on both sides with the reference's inputs. Then the reference runs again
    under every hypothesis that applies to its code, and the port is compared with each.

    Exit status: 0 the module agrees; 1 it differs, or could not be judged; 2 isograd was called
    wrongly or could not do its work.
    """
    if is_list and (is_asked_for("json") or is_asked_for("html")):
        raise UsageError("--list writes no report", "Leave out --json and --html.")
    if module is None and not is_list:
        raise UsageError("diagnose needs the name of a module", "Give --module NAME, or --list.")
    from isograd.verify.diagnose_case import diagnose_case, list_modules

    if module is None or is_list:
        from isograd.model import ModuleList

        modules = list_modules(case, seed=seed, progress=progress)
        return ModuleList(str(case), modules)
    return diagnose_case(case, module, mode=mode, seed=seed, progress=progress)
