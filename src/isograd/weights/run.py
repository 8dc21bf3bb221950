"""What `isograd weights` and `isograd params` do: checks, then one conversion or inventory."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from isograd.checkpoints.open import open_source
from isograd.errors import UsageError
from isograd.files import require_path, require_writable, resolved, write_text
from isograd.weights.convert import ConvertOptions, convert, format_of
from isograd.weights.correspondence import ParamsReport, report_of
from isograd.weights.map_file import map_text, read_map
from isograd.weights.model import ConversionReport
from isograd.weights.network import network_of
from isograd.weights.plan import make_plan
from isograd.weights.targets import check_target
from isograd.weights.writers import FORMATS

_Listener = Callable[[int, int], None]


@dataclass(frozen=True)
class WeightsRequest:
    """One checkpoint, and how it is written as another.

    names: "torch", "mindspore" or "keep"; None where the target's suffix decides.
    origin: whose names the source has, where they do not tell.
    renames: another name of a tensor or a module, by its name.
    into: builder of the network that will load the target; python: the interpreter that runs it.
    shard_size: the most bytes of a shard of a folder, as "5GB"; None for a single file.
    others: further files that the caller writes, which must not be one of these.
    is_forced: whether a target that is there is replaced.
    """

    source: str
    target: Path
    names: str | None = None
    origin: str | None = None
    dtype: str | None = None
    allow_overflow: bool = False
    renames: Mapping[str, str] = field(default_factory=dict)
    map_file: Path | None = None
    write_map: Path | None = None
    into: str | None = None
    python: str | None = None
    is_partial: bool = False
    part: str | None = None
    shard_size: str | None = None
    has_checksum: bool = False
    is_verified: bool = True
    others: tuple[Path, ...] = ()
    is_forced: bool = False


def convert_weights(
    request: WeightsRequest, listener: _Listener = lambda done, total: None
) -> ConversionReport:
    """Write one checkpoint as another; raises `IsogradError`, and then nothing is written.

    listener: gets the bytes that are done and their total.
    """
    shard_bytes = None if request.shard_size is None else size_bytes(request.shard_size)
    _check(request, is_folder=shard_bytes is not None)
    suggested = None if shard_bytes is not None else FORMATS[format_of(request.target)][1]
    names = request.names
    framework = suggested if names is None else (None if names == "keep" else names)
    if request.has_checksum and (shard_bytes is not None or format_of(request.target) != ".ckpt"):
        raise UsageError("--crc is for .ckpt only", "Leave it out.")
    options = ConvertOptions(
        request.dtype,
        request.is_verified,
        request.has_checksum,
        shard_bytes,
        request.allow_overflow,
        request.is_partial,
    )
    into = request.into
    with open_source(request.source) as opened:
        if into is not None and framework is None:
            raise UsageError("--into needs to know a framework", "Add --to torch or mindspore.")
        network = network_of(into, framework, request.python) if into and framework else None
        given = read_map(request.map_file) if request.map_file is not None else None
        plan = make_plan(
            opened,
            framework,
            rename=dict(request.renames),
            given=given,
            network=network,
            origin=request.origin,
            part=request.part,
        )
        report = convert(opened, request.target, plan, options, listener=listener)
    if request.write_map is not None:
        write_text(request.write_map, map_text(plan))
    return report


def params_of(
    first: str,
    second: str | None = None,
    *,
    read: bool = True,
    listener: _Listener = lambda done, total: None,
) -> ParamsReport:
    """The inventory of one checkpoint, or of two with their correspondence.

    read: whether the numbers are read; listener: gets the bytes that are done and their total.
    """
    with ExitStack() as stack:
        sources = [stack.enter_context(open_source(path)) for path in (first, second) if path]
        return report_of(*sources, read=read, listener=listener)


def _check(request: WeightsRequest, *, is_folder: bool) -> None:
    """Raise UsageError for everything that can be known to fail before the work begins."""
    if request.map_file is not None and any((request.renames, request.into, request.part)):
        raise UsageError(
            "--map decides every name; --rename, --into and --part have no place beside it",
            "Leave out one of them.",
        )
    source = Path(request.source)
    if "://" not in request.source:
        require_path(source, "Name a file or a folder of tensors.")
    seen = {resolved(source), *_files_of(source)}
    written = (request.write_map,) if request.write_map is not None else ()
    for path in (request.target, *request.others, *written):
        if path.resolve() in seen:
            raise UsageError(f"{path} would be overwritten", "Give each file its own name.")
        seen.add(path.resolve())
        if path is not request.target:
            require_writable(path)
    check_target(request.target, is_folder=is_folder, is_forced=request.is_forced)


def _files_of(source: Path) -> set[Path]:
    """The files that a folder or an index of shards may consist of."""
    if source.suffix == ".json":
        return {path.resolve() for path in source.parent.glob("*.safetensors")}
    if source.is_dir():
        return {path.resolve() for path in source.rglob("*") if path.is_file()}
    return set()


def size_bytes(text: str) -> int:
    """The bytes that a size such as "5GB" or "500 MB" means; raises UsageError."""
    found = re.fullmatch(r"(\d{1,9})\s*([KMGT]?)B?", text.strip(), re.IGNORECASE)
    size = 0 if found is None else int(found[1]) * 1000 ** " KMGT".index(found[2].upper() or " ")
    if not size:
        raise UsageError(f"--shard-size {text!r} is no size", "Write it as 500MB or 5GB.")
    return size
