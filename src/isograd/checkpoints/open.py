"""Which reader a file or folder needs, decided by its content and not by its suffix."""

from __future__ import annotations

from pathlib import Path

from isograd.checkpoints.base import TensorSource
from isograd.errors import CheckpointError


def open_source(path_or_url: str | Path) -> TensorSource:
    """Open a file or folder of tensors.

    Raises CheckpointError where there is none, or no reader knows it.
    """
    from isograd.checkpoints.remote import is_url, local_copy

    if is_url(str(path_or_url)):
        return _open(local_copy(str(path_or_url)))
    return _open(Path(path_or_url))


def _open(path: Path) -> TensorSource:
    try:
        is_folder, is_file = path.is_dir(), path.is_file()
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise CheckpointError(f"{path}: cannot be read: {reason}", "Check its rights.") from error
    if is_folder:
        from isograd.checkpoints.folders import open_folder

        return open_folder(path, open_source)
    if not is_file:
        raise CheckpointError(f"{path}: does not exist", "Name a file or a folder of tensors.")
    return _open_file(path)


def _open_file(path: Path) -> TensorSource:
    from isograd.checkpoints.ascend_dump import AscendDump, is_binary_dump
    from isograd.checkpoints.mindspore_file import MindSporeFile
    from isograd.checkpoints.numpy_files import NpyFile, NpzFile
    from isograd.checkpoints.safetensors_file import SafetensorsFile
    from isograd.checkpoints.torch_legacy import LegacyTorchFile
    from isograd.checkpoints.torch_zip import TorchZipFile
    from isograd.checkpoints.zip_map import member_names

    try:
        with path.open("rb") as file:
            head = file.read(64)
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error})", "Check its rights.") from error
    if not head:
        raise CheckpointError(f"{path}: is empty", "Copy it again.")
    # The size of a safetensors header may look like the first bytes of any other format.
    if head[8:9] == b"{" and int.from_bytes(head[:8], "little") < 1 << 40:
        return SafetensorsFile(path)
    if is_binary_dump(path, head):
        return AscendDump(path)
    if head.startswith(b"\x93NUMPY"):
        return NpyFile(path)
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        names = member_names(path)
        is_torch = any(name == "data.pkl" or name.endswith("/data.pkl") for name in names)
        return TorchZipFile(path) if is_torch else NpzFile(path)
    if head[:1] == b"\x80" and b"\x02" <= head[1:2] <= b"\x05":
        return LegacyTorchFile(path)
    if head.lstrip()[:1] == b"{":
        return _open_json(path)
    if head[:1] == b"\x0a":
        return MindSporeFile(path)
    raise CheckpointError(
        f"{path}: is no file of tensors that isograd knows",
        "Known are .pth, .ckpt, .safetensors, .npz, .npy, recordings and dump folders.",
    )


def _open_json(path: Path) -> TensorSource:
    from isograd.checkpoints.msprobe import MsprobeDump, is_dump_json
    from isograd.checkpoints.safetensors_file import ShardedCheckpoint

    if is_dump_json(path):
        return MsprobeDump(path, open_source)
    return ShardedCheckpoint(path)
