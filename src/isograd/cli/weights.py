"""`isograd weights`: parse, and one call."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from isograd.cli.inputs import OUTPUT
from isograd.cli.verb import output_files, verb
from isograd.errors import UsageError

if TYPE_CHECKING:
    from isograd.progress import Progress
    from isograd.weights.model import ConversionReport


@verb(document="isograd.weights.document:document")
@click.argument("source", metavar="SRC")
@click.option("-o", "--output", "target", type=OUTPUT, required=True, metavar="DST")
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
@click.option("--map", "map_file", type=OUTPUT, metavar="FILE", help="Convert by this map.")
@click.option("--write-map", type=OUTPUT, metavar="FILE", help="Write the map for re-use.")
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
@click.option("--force", "is_forced", is_flag=True, help="Replace DST if it is there.")
def command(
    source: str,
    target: Path,
    rename: tuple[str, ...],
    no_verify: bool,
    progress: Progress,
    **given: Any,
) -> ConversionReport:
    """Convert a checkpoint to the other framework's format and names.

    Names and layouts are converted; DST's suffix chooses the format: .pth, .ckpt, .safetensors or
    .npz. Everything is checked before DST is written; it is read back and compared before it takes
    its place, which it does whole or not at all. Optimizer states and copies beside the network are
    left out and listed; --part NAME converts one of them.

    Exit status: 0 written, nothing to look at; 1 something is left over or missing, and where the
    network would lack something nothing was written; 2 nothing was written.
    """
    from isograd.weights.run import WeightsRequest, convert_weights

    request = WeightsRequest(
        source,
        target,
        renames=_renames(rename),
        is_verified=not no_verify,
        others=output_files(),
        **given,
    )
    return convert_weights(request, partial(progress.advance, unit="bytes"))


def _renames(rename: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for rule in rename:
        old, equals, new = rule.partition("=")
        if not equals or not old or old in found:
            raise UsageError(f"--rename {rule!r} is no OLD=NEW", "Write each rule once, as a=b.")
        found[old] = new
    return found
