"""WebDataset: tar files whose members NAME.field with one NAME are one sample."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from isograd.checkpoints.npy import elements, parse_header
from isograd.data.limits import MAX_FIELDS, MAX_RECORD_BYTES
from isograd.data.sources.base import Item, Problem, Sample, SampleSource, Value, scalar
from isograd.data.sources.lines import plain

_TEXTS = frozenset(("txt", "text", "transcript", "caption"))
_NUMBERS = frozenset(("cls", "cls2", "index", "inx", "id"))


class WebDataset(SampleSource):
    """Samples of one tar file or several, in their order."""

    format = "WebDataset"

    def __init__(self, paths: list[Path], address: str) -> None:
        super().__init__(address)
        self._paths = paths

    def samples(self) -> Iterator[Item]:
        several = len(self._paths) > 1
        for path in self._own(lambda: self._paths):
            yield from _samples(path, f"{path.name}:" if several else "")

    @property
    def is_divisible(self) -> bool:
        return len(self._paths) > 1


def _samples(path: Path, prefix: str) -> Iterator[Item]:
    current = ""
    fields: dict[str, Value] = {}
    problem: Problem | None = None
    for name, content in _members(path):
        if isinstance(content, Problem):
            yield content
            continue
        stem, suffix = _split(name)
        if stem != current:
            if current and (fields or problem):
                yield problem or Sample(prefix + current, _named(fields))
            current, fields, problem = stem, {}, None
        try:
            fields[suffix] = decoded(suffix, content)
            if len(fields) > MAX_FIELDS:
                raise ValueError(f"has more than {MAX_FIELDS:,} members")
        except ValueError as error:
            problem = Problem(prefix + current, f"member {name!r}: {error}")
    if current and (fields or problem):
        yield problem or Sample(prefix + current, _named(fields))


def _named(fields: dict[str, Value]) -> dict[str, Value]:
    """Fields NAME.KIND as NAME, as long as no two become one."""
    short = {name: name.rpartition(".")[0] or name for name in fields}
    return (
        fields
        if len(set(short.values())) < len(short)
        else {short[name]: value for name, value in fields.items()}
    )


def _members(path: Path) -> Iterator[tuple[str, bytes | Problem]]:
    """Name and content of each regular member; what cannot be read is a problem."""
    try:
        with tarfile.open(path, "r|*") as archive:
            for member in archive:
                if not member.isfile():
                    if member.issym() or member.islnk():
                        yield member.name, Problem(member.name, "is a link, which is not followed")
                    continue
                if member.size > MAX_RECORD_BYTES:
                    yield member.name, Problem(member.name, f"announces {member.size:,} bytes")
                    continue
                stream = archive.extractfile(member)
                content = stream.read() if stream is not None else b""
                if len(content) < member.size:
                    yield member.name, Problem(member.name, "is cut off")
                    return
                yield member.name, content
    except (tarfile.TarError, OSError, EOFError, ValueError) as error:
        yield path.name, Problem(path.name, f"the tar file is damaged ({error}); the rest is lost")


def _split(name: str) -> tuple[str, str]:
    """The sample and the field of a member: the field begins at the name's first dot."""
    pure = PurePosixPath(name)
    stem, _, suffix = pure.name.partition(".")
    return str(pure.with_name(stem)) if stem else name, suffix


def decoded(suffix: str, content: bytes) -> Value:
    """A member by its suffix: numbers, texts and arrays, else bytes. ValueError where it is bad."""
    kind = suffix.rpartition(".")[2].lower()
    if kind in _TEXTS:
        return content.decode("utf-8", errors="replace")
    if kind in _NUMBERS:
        return scalar(int(content))
    if kind == "json":
        return plain(_json(content))
    if kind == "npy":
        data = memoryview(content)
        return elements(data, parse_header(data), aligned=False)
    if kind in ("pkl", "pickle", "pyd", "pth", "pt"):
        raise ValueError("it is pickled, which could run code, and is not read")
    return content


def _json(content: bytes) -> object:
    try:
        return json.loads(content)
    except RecursionError as error:
        raise ValueError("it nests too deeply") from error


def is_tar(path: Path) -> bool:
    """Whether a file is a tar archive, also a compressed one."""
    try:
        with path.open("rb") as file:
            head = file.read(512)
        if head[257:262] == b"ustar":
            return True
        with tarfile.open(path, "r|*") as archive:
            return archive.next() is not None
    except (tarfile.TarError, OSError, EOFError, ValueError):
        return False
