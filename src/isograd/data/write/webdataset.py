"""WebDataset: a tar file with the members NUMBER.FIELD.KIND of each sample."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np

from isograd.data.sources.base import Value
from isograd.data.write.base import Fields, Writer, cannot


class WebDatasetWriter(Writer):
    """One tar file; times and owners are zero, so that equal samples make equal files."""

    def __init__(self, path: Path, name: str) -> None:
        super().__init__(path)
        self._archive = tarfile.open(path, "w", format=tarfile.PAX_FORMAT)  # noqa: SIM115 - until finish
        self._count = 0

    def write(self, fields: Fields) -> None:
        self.require_same(fields, self._count)
        for name, value in fields.items():
            suffix, content = _member(name, value)
            member = tarfile.TarInfo(f"{self._count:09d}.{name.replace('.', '_')}.{suffix}")
            member.size = len(content)
            self._archive.addfile(member, io.BytesIO(content))
        self._count += 1

    def finish(self) -> list[Path]:
        self._archive.close()
        return []


_BY_MAGIC = ((b"\xff\xd8\xff", "jpg"), (b"\x89PNG", "png"), (b"RIFF", "wav"))


def _member(name: str, value: Value) -> tuple[str, bytes]:
    if isinstance(value, str):
        return "txt", value.encode("utf-8", errors="surrogatepass")
    if isinstance(value, bytes):
        return next((end for magic, end in _BY_MAGIC if value.startswith(magic)), "bin"), value
    if value.dtype.kind not in "biuf":
        raise cannot(name, f"has no form in a tar ({value.dtype})")
    if value.ndim == 0 and value.dtype == np.int64:
        return "id", str(int(value)).encode()
    stream = io.BytesIO()
    np.save(stream, np.ascontiguousarray(value).reshape(value.shape), allow_pickle=False)
    return "npy", stream.getvalue()
