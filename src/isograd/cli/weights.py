"""`isograd weights`: parse, one call, render, exit status."""

from __future__ import annotations

from pathlib import Path

import click

from isograd.cli import outputs
from isograd.errors import UsageError
from isograd.files import require_writable, write_text

_FILE = click.Path(path_type=Path)


@click.command()
@click.argument("source", metavar="SRC")
@click.option("-o", "--output", "target", type=_FILE, required=True, metavar="DST")
@click.option(
    "--to",
    "names",
    type=click.Choice(["torch", "mindspore", "keep"]),
    help="Whose names DST has. Default: by its suffix; .safetensors and .npz keep them.",
)
@click.option(
    "--dtype",
    type=click.Choice(["float64", "float32", "float16", "bfloat16"]),
    help="Cast floating tensors; what overflows is reported.",
)
@click.option(
    "--rename", multiple=True, metavar="OLD=NEW", help="A tensor's or a module's other name."
)
@click.option("--map", "map_file", type=_FILE, metavar="FILE", help="Convert by this map.")
@click.option("--write-map", type=_FILE, metavar="FILE", help="Write the map for re-use.")
@click.option(
    "--into",
    metavar="PACKAGE.MODULE:BUILDER",
    help="Check against the network that will load DST, and take its names and layouts.",
)
@click.option("--python", metavar="PATH", help="The interpreter that builds it.")
@click.option("--no-verify", is_flag=True, help="Do not read DST back.")
@click.option("--json", "json_file", type=_FILE, metavar="FILE", help="Write the report as JSON.")
@click.option("--quiet", is_flag=True, help="Show only the last line.")
def command(
    source: str,
    target: Path,
    names: str | None,
    dtype: str | None,
    rename: tuple[str, ...],
    map_file: Path | None,
    write_map: Path | None,
    into: str | None,
    python: str | None,
    no_verify: bool,
    json_file: Path | None,
    quiet: bool,
) -> int:
    """How does this checkpoint become one that the other framework loads?

    Names and layouts are converted; DST's suffix chooses the format: .pth, .ckpt, .safetensors or
    .npz. DST is read back and compared before it takes its place, which it does whole or not at
    all.

    Exit status: 0 written, nothing to look at; 1 written, and something is left over, missing,
    ambiguous or overflowed; 2 nothing was written.
    """
    _check(source, target, map_file, rename, into, (json_file, write_map))
    from isograd.checkpoints.open import open_source
    from isograd.weights.convert import convert, format_of
    from isograd.weights.map_file import map_text, read_map
    from isograd.weights.network import network_of
    from isograd.weights.plan import make_plan
    from isograd.weights.writers import FORMATS

    suggested = FORMATS[format_of(target)][1]
    framework = suggested if names is None else (None if names == "keep" else names)
    renames = _renames(rename)
    with open_source(source) as opened:
        if into is not None and framework is None:
            raise UsageError("--into needs to know a framework", "Add --to torch or mindspore.")
        network = network_of(into, framework, python) if into and framework else None
        given = read_map(map_file) if map_file is not None else None
        plan = make_plan(opened, framework, rename=renames, given=given, network=network)
        report = convert(opened, target, plan, dtype=dtype, verify=not no_verify)
    if write_map is not None:
        write_text(write_map, map_text(plan))
    from isograd.cli.screen import show
    from isograd.report import weights_text
    from isograd.report.weights_json import render_json

    if json_file is not None:
        outputs.write_json(json_file, render_json(report))
    show(
        lambda width, colour: (
            weights_text.sentence(report) + "\n"
            if quiet
            else weights_text.render_text(report, width=width, colour=colour)
        ),
        to_error=json_file == outputs.STANDARD_OUTPUT,
    )
    return 1 if report.needs_action else 0


def _check(
    source: str,
    target: Path,
    map_file: Path | None,
    rename: tuple[str, ...],
    into: str | None,
    written: tuple[Path | None, ...],
) -> None:
    """Raise UsageError for everything that can be known to fail before the work begins."""
    if map_file is not None and (rename or into):
        raise UsageError(
            "--map decides every name; --rename and --into have no place beside it",
            "Leave out one of them.",
        )
    seen = {Path(source).resolve()}
    for path in (target, *written):
        if path is None or path == outputs.STANDARD_OUTPUT:
            continue
        if path.resolve() in seen:
            raise UsageError(f"{path} would be overwritten", "Give each file its own name.")
        seen.add(path.resolve())
        require_writable(path)


def _renames(rename: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for rule in rename:
        old, equals, new = rule.partition("=")
        if not equals or not old or old in found:
            raise UsageError(f"--rename {rule!r} is no OLD=NEW", "Write each rule once, as a=b.")
        found[old] = new
    return found
