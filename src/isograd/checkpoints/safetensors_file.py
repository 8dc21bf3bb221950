"""Files in the safetensors layout, alone or as the shards that an index names.

The layout is eight bytes of header size, a JSON header, and the tensors' bytes without gaps.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from isograd.checkpoints.base import (
    IndexedSource,
    RawTensor,
    TensorInfo,
    TensorSource,
    drop_pages,
    map_file,
    size_in_bytes,
    view,
)
from isograd.checkpoints.jsons import read_json, unique_pairs
from isograd.recording import tensor_file

#: safetensors' names of dtypes, by ours: those of recordings, and the 8-bit floats.
CODES = {
    **tensor_file.CODES,
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float8_e8m0fnu": "F8_E8M0",
    "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
}
_DTYPES = {code: name for name, code in CODES.items()}


class SafetensorsFile(IndexedSource):
    """One file, mapped into memory; a tensor's pages are read when it is."""

    kind = "safetensors"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._data = map_file(path)
        self._body, header = self._header()
        self._metadata = self._texts(header.pop("__metadata__", {}))
        self._starts: dict[str, int] = {}
        self._check(header)

    @property
    def metadata(self) -> Mapping[str, str]:
        return self._metadata

    def forget(self) -> None:
        drop_pages(self._data)

    def raw(self, name: str) -> RawTensor:
        return self._taken(name, aligned=True)

    def stored(self, name: str) -> RawTensor:
        return self._taken(name, aligned=False)

    def _taken(self, name: str, *, aligned: bool) -> RawTensor:
        info = self.info(name)
        start = self._body + self._starts[name]
        bits = view(self._data, start, info.dtype, info.shape, aligned=aligned)
        return RawTensor(bits, info.dtype)

    def _header(self) -> tuple[int, dict[str, Any]]:
        size = int.from_bytes(self._data[:8], "little")
        if size > tensor_file.MAX_HEADER_BYTES or 8 + size > len(self._data):
            raise self.refusal(f"announces a header of {size:,} bytes, which it does not hold")
        try:
            text = bytes(self._data[8 : 8 + size]).decode("utf-8")
            header = json.loads(text, object_pairs_hook=unique_pairs)
        except (ValueError, RecursionError) as error:
            raise self.refusal(f"has a header that is no JSON ({error})") from error
        if not isinstance(header, dict):
            raise self.refusal("has a header that is no JSON object")
        return 8 + size, header

    def _texts(self, found: Any) -> dict[str, str]:
        if not isinstance(found, dict):
            raise self.refusal("has metadata that are no JSON object")
        return {str(key): str(value) for key, value in found.items()}

    def _check(self, header: dict[str, Any]) -> None:
        spans: list[tuple[int, int, str]] = []
        for name, fields in header.items():
            try:
                dtype = _DTYPES[fields["dtype"]]
                shape = tuple(fields["shape"])
                start, end = fields["data_offsets"]
                size = size_in_bytes(dtype, shape)
            except (KeyError, TypeError, ValueError) as error:
                raise self.refusal(f"describes tensor {name!r} wrongly ({error!r})") from error
            if type(start) is not int or type(end) is not int or end - start != size or start < 0:
                raise self.refusal(f"gives tensor {name!r} a shape that does not fit its bytes")
            spans.append((start, end, name))
            self.add(TensorInfo(name, dtype, shape, size))
            self._starts[name] = start
        position = 0
        for start, end, name in sorted(spans):
            if start != position:
                raise self.refusal(f"leaves a gap or an overlap before tensor {name!r}")
            position = end
        if self._body + position != len(self._data):
            raise self.refusal(
                f"holds {len(self._data) - self._body:,} bytes of tensors, "
                f"and its header announces {position:,}"
            )


class ShardedCheckpoint(IndexedSource):
    """Shards that an index puts together: `model.safetensors.index.json`, or torch's `.bin`."""

    kind = "safetensors, sharded"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        index = read_json(path)
        weight_map = index.get("weight_map") if isinstance(index, dict) else None
        if not isinstance(weight_map, dict) or not weight_map:
            raise self.refusal("is JSON, and no index of safetensors shards")
        self._shards: dict[str, TensorSource] = {}
        self._shard_of: dict[str, TensorSource] = {}
        for name, file in weight_map.items():
            shard = self._open_shard(file)
            if name not in shard:
                raise self.refusal(f"places {name!r} in {file}, which does not hold it")
            self.add(shard.info(name))
            self._shard_of[name] = shard
        if any(shard.kind.startswith("torch") for shard in self._shards.values()):
            self.kind = "torch, sharded"
        self._skipped = {
            f"{file}: {info.name}": "the index does not name it"
            for file, shard in self._shards.items()
            for info in shard
            if self._shard_of.get(info.name) is not shard
        }

    @property
    def metadata(self) -> Mapping[str, str]:
        return {"shards": str(len(self._shards))}

    @property
    def skipped(self) -> Mapping[str, str]:
        return self._skipped

    def forget(self) -> None:
        for shard in self._shards.values():
            shard.forget()

    def raw(self, name: str) -> RawTensor:
        self.info(name)
        return self._shard_of[name].raw(name)

    def stored(self, name: str) -> RawTensor:
        self.info(name)
        return self._shard_of[name].stored(name)

    def verify(self) -> bool:
        """Check the shards that have checksums; true where all have."""
        return sum(shard.verify() for shard in self._shards.values()) == len(self._shards)

    def _open_shard(self, file: object) -> TensorSource:
        if not isinstance(file, str) or not file or Path(file).name != file:
            raise self.refusal(f"names the shard {file!r:.100}, which is no file beside it")
        if file not in self._shards:
            path = self.path.parent / file
            with contextlib.suppress(OSError):
                if path.resolve().parent != self.path.parent.resolve() and not _is_hub_cache(path):
                    raise self.refusal(f"names the shard {file!r}, a link out of its folder")
            self._shards[file] = _open_one(path)
        return self._shards[file]


def _open_one(path: Path) -> TensorSource:
    """A shard: torch's zip format where it is called `.bin`, and never another index."""
    if path.suffix == ".bin":
        from isograd.checkpoints.torch_zip import TorchZipFile

        return TorchZipFile(path)
    return SafetensorsFile(path)


def _is_hub_cache(path: Path) -> bool:
    """The Hugging Face cache: snapshots/REVISION/FILE links to blobs/HASH of the same model."""
    snapshots = path.parent.resolve().parent
    return snapshots.name == "snapshots" and path.resolve().parent == snapshots.parent / "blobs"
