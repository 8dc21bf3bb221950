"""`isograd weights`: parse, one call, render, exit status."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from isograd.cli import outputs
from isograd.errors import UsageError
from isograd.files import require_writable, write_text

if TYPE_CHECKING:
    from isograd.weights.model import ConversionReport

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
    "--from",
    "origin",
    type=click.Choice(["torch", "mindspore"]),
    help="Whose names SRC has, where they do not tell.",
)
@click.option(
    "--dtype",
    type=click.Choice(["float64", "float32", "float16", "bfloat16"]),
    help="Cast floating tensors; what would overflow is refused.",
)
@click.option("--allow-overflow", is_flag=True, help="Write infinities where a cast overflows.")
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
@click.option(
    "--partial", "is_partial", is_flag=True, help="Write DST though the network lacks something."
)
@click.option(
    "--part", metavar="NAME", help="Convert this part of SRC, such as ema, not the network."
)
@click.option(
    "--shard-size",
    metavar="SIZE",
    help="DST is a new folder of .safetensors shards of at most this size, such as 5GB.",
)
@click.option(
    "--crc", "has_checksum", is_flag=True, help="End a .ckpt in its checksum (crc_check=True)."
)
@click.option("--no-verify", is_flag=True, help="Check no checksum and do not read DST back.")
@click.option(
    "--json",
    "json_file",
    type=_FILE,
    metavar="FILE",
    help="Write the report as JSON; `-` is standard output and moves the text to standard error.",
)
@click.option("--quiet", is_flag=True, help="Show no progress, and only the last line.")
def command(
    source: str,
    target: Path,
    names: str | None,
    origin: str | None,
    dtype: str | None,
    allow_overflow: bool,
    rename: tuple[str, ...],
    map_file: Path | None,
    write_map: Path | None,
    into: str | None,
    python: str | None,
    is_partial: bool,
    part: str | None,
    shard_size: str | None,
    has_checksum: bool,
    no_verify: bool,
    json_file: Path | None,
    quiet: bool,
) -> int:
    """How does this checkpoint become one that the other framework loads?

    Names and layouts are converted; DST's suffix chooses the format: .pth, .ckpt, .safetensors or
    .npz. Everything is checked before DST is written; it is read back and compared before it takes
    its place, which it does whole or not at all. Optimizer states and copies beside the network are
    left out and listed; --part NAME converts one of them.

    Exit status: 0 written, nothing to look at; 1 something is left over or missing, and where the
    network would lack something nothing was written; 2 nothing was written.
    """
    shard_bytes = None if shard_size is None else _size_bytes(shard_size)
    _check(source, target, map_file, (rename, into, part), (json_file, write_map), shard_bytes)
    from isograd.checkpoints.open import open_source
    from isograd.weights.convert import ConvertOptions, convert, format_of
    from isograd.weights.map_file import map_text, read_map
    from isograd.weights.network import network_of
    from isograd.weights.plan import make_plan
    from isograd.weights.writers import FORMATS

    suggested = None if shard_bytes is not None else FORMATS[format_of(target)][1]
    framework = suggested if names is None else (None if names == "keep" else names)
    renames = _renames(rename)
    if has_checksum and (shard_bytes is not None or format_of(target) != ".ckpt"):
        raise UsageError("--crc is for .ckpt only", "Leave it out.")
    options = ConvertOptions(
        dtype, not no_verify, has_checksum, shard_bytes, allow_overflow, is_partial
    )
    with open_source(source) as opened, _progress(quiet) as listener:
        if into is not None and framework is None:
            raise UsageError("--into needs to know a framework", "Add --to torch or mindspore.")
        network = network_of(into, framework, python) if into and framework else None
        given = read_map(map_file) if map_file is not None else None
        plan = make_plan(
            opened,
            framework,
            rename=renames,
            given=given,
            network=network,
            origin=origin,
            part=part,
        )
        report = convert(opened, target, plan, options, listener=listener)
    if write_map is not None:
        write_text(write_map, map_text(plan))
    _show(report, json_file, quiet)
    return 1 if report.needs_action else 0


def _show(report: ConversionReport, json_file: Path | None, quiet: bool) -> None:
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


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A line on a terminal while it takes long; nothing elsewhere."""
    if quiet:
        yield lambda done, total: None
        return
    from isograd.report.bytes_progress import BytesLine

    with BytesLine(sys.stderr, "weights") as line:
        yield line.advance


def _check(
    source: str,
    target: Path,
    map_file: Path | None,
    names: tuple[tuple[str, ...], str | None, str | None],
    written: tuple[Path | None, ...],
    shard_bytes: int | None,
) -> None:
    """Raise UsageError for everything that can be known to fail before the work begins."""
    if map_file is not None and any(names):
        raise UsageError(
            "--map decides every name; --rename, --into and --part have no place beside it",
            "Leave out one of them.",
        )
    from isograd.weights.targets import check_target

    seen = {Path(source).resolve(), *_files_of(Path(source))}
    for path in (target, *written):
        if path is None or path == outputs.STANDARD_OUTPUT:
            continue
        if path.resolve() in seen:
            raise UsageError(f"{path} would be overwritten", "Give each file its own name.")
        seen.add(path.resolve())
        if path is not target:
            require_writable(path)
    check_target(target, is_folder=shard_bytes is not None)


def _files_of(source: Path) -> set[Path]:
    """The files that a folder or an index of shards may consist of."""
    if source.suffix == ".json":
        return {path.resolve() for path in source.parent.glob("*.safetensors")}
    if source.is_dir():
        return {path.resolve() for path in source.rglob("*") if path.is_file()}
    return set()


def _size_bytes(text: str) -> int:
    found = re.fullmatch(r"(\d{1,9})\s*([KMGT]?)B?", text.strip(), re.IGNORECASE)
    size = 0 if found is None else int(found[1]) * 1000 ** " KMGT".index(found[2].upper() or " ")
    if not size:
        raise UsageError(f"--shard-size {text!r} is no size", "Write it as 500MB or 5GB.")
    return size


def _renames(rename: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for rule in rename:
        old, equals, new = rule.partition("=")
        if not equals or not old or old in found:
            raise UsageError(f"--rename {rule!r} is no OLD=NEW", "Write each rule once, as a=b.")
        found[old] = new
    return found
