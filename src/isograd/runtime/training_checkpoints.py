"""torch.save and torch.load without pickle: one .ckpt file of MindSpore for any nest of values.

A plain state dict is an ordinary checkpoint.  Anything else is one too, whose tensors are named by
their path and whose structure is JSON in one more entry.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import shutil
import tempfile
import uuid
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import nn  # noqa: TID253

from isograd.runtime.storages import copies_own_their_memory

_STRUCTURE = "__structure__"
#: The networks that this process has saved as a whole, by the marks in their files: each as it was,
#: but for its Parameters, whose values are in the file.
_NETWORKS: dict[str, Any] = {}
_PLAIN = (bool, int, float, str, type(None))


def save(obj: Any, f: Any, *_: Any, **__: Any) -> None:
    """Write tensors, numbers, texts, lists, tuples, dicts and networks into one file.

    f: a path, or a file that is open.  Raises TypeError for anything else: of an object its
    state_dict() can be kept.  A network can be read again by the process that has saved it.
    """
    tensors: dict[str, Any] = {}
    if _is_state(obj):
        tensors.update(obj)
    else:
        structure = json.dumps(_described(obj, "", tensors)).encode()
        tensors[_STRUCTURE] = ms.Tensor(np.frombuffer(structure, np.uint8).copy())
    entries = [{"name": name, "data": ms.Tensor(value)} for name, value in tensors.items()]
    is_stream = hasattr(f, "write")
    path = "" if is_stream else _path_of(f)
    folder = None if is_stream else os.path.dirname(path) or "."
    with tempfile.TemporaryDirectory(dir=folder) as own:
        made = os.path.join(own, "checkpoint.ckpt")
        ms.save_checkpoint(entries, made)
        if is_stream:
            with open(made, "rb") as written:
                shutil.copyfileobj(written, f)
        else:
            os.chmod(made, 0o644)
            os.replace(made, path)


def _path_of(f: Any) -> str:
    """Where a checkpoint lies."""
    if isinstance(f, (str, os.PathLike)):
        return os.fspath(f)
    raise TypeError("a checkpoint is a file: give its path, or a file that is open")


def load(f: Any, map_location: Any = None, *_: Any, **__: Any) -> Any:
    """Read what `save` wrote, or any checkpoint of MindSpore as a dict of tensors.

    f: a path, or a file that is open, which is read from where it stands.
    """
    with tempfile.TemporaryDirectory() as own:
        link = os.path.join(own, "checkpoint.ckpt")
        if hasattr(f, "read"):
            with open(link, "wb") as copy_of_it:
                shutil.copyfileobj(f, copy_of_it)
            _refuse_torch(link, getattr(f, "name", "FILE"))
        else:
            path = _path_of(f)
            _refuse_torch(path, path)
            try:
                os.symlink(os.path.abspath(path), link)
            except OSError:
                shutil.copyfile(path, link)
        read = ms.load_checkpoint(link)
    tensors = {name: ms.Tensor(value.asnumpy()) for name, value in read.items()}
    structure = tensors.pop(_STRUCTURE, None)
    if structure is None:
        return OrderedDict(tensors)
    return _built(json.loads(bytes(structure.asnumpy())), tensors)


def _refuse_torch(path: str, name: Any) -> None:
    with open(path, "rb") as file:
        if file.read(2) in (b"PK", b"\x80\x02"):
            raise ValueError(
                f"{name} is a checkpoint of torch. Convert it: isograd weights {name} -o NEW.ckpt"
            )


def _is_state(obj: Any) -> bool:
    """Whether an object is a state dict with names that a checkpoint can hold."""
    return (
        isinstance(obj, Mapping)
        and bool(obj)
        and all(isinstance(key, str) and key for key in obj)
        and all(isinstance(value, ms.Tensor) for value in obj.values())
    )


def _described(value: Any, path: str, tensors: dict[str, Any]) -> Any:
    """A value as JSON; its tensors are put aside by their path."""
    if isinstance(value, (ms.Tensor, np.ndarray)):
        name = path or "value"
        while name in tensors:
            name += "_"
        tensors[name] = ms.Tensor(value)
        return {"array" if isinstance(value, np.ndarray) else "tensor": name}
    if isinstance(value, _PLAIN):
        return {"value": value}
    if isinstance(value, np.generic):
        return {"value": value.item()}
    if isinstance(value, argparse.Namespace):
        return {"namespace": _described(vars(value), path, tensors)}
    if isinstance(value, Mapping):
        items = [
            [_described(key, path, tensors), _described(part, f"{path}.{key}".lstrip("."), tensors)]
            for key, part in value.items()
        ]
        return {"dict": items}
    if isinstance(value, (list, tuple, set)):
        kind = next(kind for kind in (list, tuple, set) if isinstance(value, kind)).__name__
        parts = enumerate(value)
        return {kind: [_described(p, f"{path}.{n}".lstrip("."), tensors) for n, p in parts]}
    if isinstance(value, Path):
        return {"value": str(value)}
    if isinstance(value, nn.Cell):
        return _of_network(value, path, tensors)
    raise TypeError(f"{type(value).__name__} at {path or 'the top'} cannot be kept: save a dict.")


def _of_network(network: Any, path: str, tensors: dict[str, Any]) -> Any:
    """A whole network: its weights and modes.  Its code is not kept, but the network in memory."""
    mark = f"{type(network).__qualname__} {uuid.uuid4().hex}"
    copies_own_their_memory()
    _NETWORKS[mark] = copy.deepcopy(network, {id(part): part for part in network.get_parameters()})
    weights = [_described(part.value(), path, tensors) for part in network.get_parameters()]
    modes = [cell.training for _, cell in network.cells_and_names()]
    return {"network": [mark, weights, modes]}


def _network(content: Any, tensors: dict[str, Any]) -> Any:
    mark, weights, modes = content
    if mark not in _NETWORKS:
        name = mark.partition(" ")[0]
        raise TypeError(
            f"a whole {name} was saved by another process, and its code is not in the file: "
            "make one and give it the weights of a saved state_dict()"
        )
    network = copy.deepcopy(_NETWORKS[mark])
    for parameter, value in zip(network.get_parameters(), weights, strict=True):
        parameter.set_data(_built(value, tensors))
    for (_, cell), mode in zip(network.cells_and_names(), modes, strict=True):
        cell.add_flags(training=mode)
    return network


def _built(described: Any, tensors: dict[str, Any]) -> Any:
    ((kind, content),) = described.items()
    if kind == "network":
        return _network(content, tensors)
    if kind == "value":
        return content
    if kind in ("tensor", "array"):
        return tensors[content].asnumpy() if kind == "array" else tensors[content]
    if kind == "namespace":
        return argparse.Namespace(**_built(content, tensors))
    if kind == "dict":
        return {_built(key, tensors): _built(part, tensors) for key, part in content}
    parts = [_built(part, tensors) for part in content]
    return {"list": list, "tuple": tuple, "set": set}[kind](parts)
