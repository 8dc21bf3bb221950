"""What the pickle of a torch checkpoint may name: storages, dtypes and how tensors are rebuilt.

Source: torch/_utils.py and torch/serialization.py of torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from isograd.checkpoints import plain_values
from isograd.checkpoints.base import size_in_bytes
from isograd.checkpoints.dtypes import item_size_bytes
from isograd.checkpoints.safe_pickle import MAX_DEPTH, Function, Global, RefusedPickle

#: Elements that a tensor may repeat beyond its storage, where an axis has the stride 0.
MOST_EXPANDED_BYTES = 64 * 1024 * 1024
_MOST_LEAVES = 1_000_000
#: Wrappers within wrappers, as in `{"state_dict": {"model": …}}`.
_MOST_WRAPPERS = 4
#: Keys under which training scripts put the state of the network.
WRAPPERS = (
    "state_dict", "model_state_dict", "model_state", "model", "module", "network", "net",
    "weights", "params",
)  # fmt: skip

_STORAGES = {
    "Double": "float64",
    "Float": "float32",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Long": "int64",
    "Int": "int32",
    "Short": "int16",
    "Char": "int8",
    "Byte": "uint8",
    "Bool": "bool",
    "ComplexFloat": "complex64",
    "ComplexDouble": "complex128",
}
_DTYPE_ALIASES = {"double": "float64", "float": "float32", "half": "float16", "long": "int64"}
_DTYPES = (
    *_STORAGES.values(),
    *("uint16", "uint32", "uint64"),
    *("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"),
)


@dataclass(frozen=True)
class Storage:
    """The bytes that tensors share; dtype is None where only the tensor knows it."""

    key: str
    dtype: str | None
    size_bytes: int


@dataclass(frozen=True)
class StoredTensor:
    """A tensor by its place in a storage; offset and strides count elements."""

    storage: Storage
    dtype: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    trainable: bool | None = None

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie in C order without gaps."""
        expected = 1
        for extent, stride in zip(self.shape[::-1], self.strides[::-1], strict=True):
            if extent != 1 and stride != expected:
                return 0 in self.shape
            expected *= extent
        return True


def _naturals(numbers: Any) -> tuple[int, ...]:
    if not isinstance(numbers, tuple | list) or len(numbers) > 64:
        raise RefusedPickle("its pickle gives a tensor a shape that is none")
    if any(type(number) is not int or number < 0 for number in numbers):
        raise RefusedPickle("its pickle gives a tensor a negative size or stride")
    return tuple(numbers)


def _rebuilt(
    storage: Any, offset: Any, shape: Any, strides: Any, dtype: str | None, trainable: Any
) -> StoredTensor:
    if not isinstance(storage, Storage) or type(offset) is not int or offset < 0:
        raise RefusedPickle("its pickle builds a tensor of what is no storage")
    own = dtype or storage.dtype
    if own is None:
        raise RefusedPickle("its pickle builds a tensor without a dtype")
    sizes, steps = _naturals(shape), _naturals(strides)
    if len(sizes) != len(steps):
        raise RefusedPickle("its pickle gives a tensor more strides than dimensions")
    size = size_in_bytes(own, sizes)
    if size:
        last = offset + sum((n - 1) * step for n, step in zip(sizes, steps, strict=True))
        if (last + 1) * item_size_bytes(own) > storage.size_bytes:
            raise RefusedPickle(f"its pickle places a tensor of {size:,} bytes beyond its storage")
        if size > max(MOST_EXPANDED_BYTES, storage.size_bytes):
            raise RefusedPickle(f"its pickle expands a storage to {size:,} bytes")
    return StoredTensor(storage, own, offset, sizes, steps, True if trainable is True else None)


def _tensor_v2(
    storage: Any, offset: Any, shape: Any, strides: Any, trainable: Any = False, *_: Any
) -> StoredTensor:
    return _rebuilt(storage, offset, shape, strides, None, trainable)


def _tensor_v3(
    storage: Any,
    offset: Any,
    shape: Any,
    strides: Any,
    trainable: Any,
    _hooks: Any,
    dtype: Any,
    *_: Any,
) -> StoredTensor:
    if not isinstance(dtype, Global) or not isinstance(dtype.value, str):
        raise RefusedPickle("its pickle builds a tensor of an unknown dtype")
    return _rebuilt(storage, offset, shape, strides, dtype.value, trainable)


def _parameter(data: Any, trainable: Any = True, *_: Any) -> StoredTensor:
    if not isinstance(data, StoredTensor):
        raise RefusedPickle("its pickle builds a parameter of what is no tensor")
    return replace(data, trainable=bool(trainable))


def _from_type(function: Any, _kind: Any, arguments: Any, _state: Any) -> Any:
    if not isinstance(function, Global) or function.name not in FUNCTIONS:
        raise RefusedPickle("its pickle builds a tensor by an unknown function")
    if function.name.endswith("_rebuild_from_type_v2") or not isinstance(arguments, tuple):
        raise RefusedPickle("its pickle builds a tensor of a tensor")
    return FUNCTIONS[function.name](*arguments)


def _ordered(*pairs: Any) -> dict[Any, Any]:
    if pairs and pairs != ([],) and pairs != ((),):
        found = {}
        for key, value in pairs[0]:
            if not isinstance(key, str | int):
                raise RefusedPickle("its pickle uses a container as a name")
            found[key] = value
        return found
    return {}


def _plain_tuple(*items: Any) -> tuple[Any, ...]:
    if not items:
        return ()
    if not isinstance(items[0], tuple | list):
        raise RefusedPickle("its pickle builds a size of what is no sequence")
    return tuple(items[0])


FUNCTIONS: dict[str, Function] = {
    "torch._utils._rebuild_tensor": lambda storage, offset, shape, strides: _tensor_v2(
        storage, offset, shape, strides
    ),
    "torch._utils._rebuild_tensor_v2": _tensor_v2,
    "torch._utils._rebuild_tensor_v3": _tensor_v3,
    "torch._utils._rebuild_parameter": _parameter,
    "torch._utils._rebuild_parameter_with_state": _parameter,
    "torch._tensor._rebuild_from_type_v2": _from_type,
    "torch.nn.parameter.Parameter": _parameter,
    "collections.OrderedDict": _ordered,
    "torch.Size": _plain_tuple,
    "torch.device": lambda *names: ":".join(str(name) for name in names if isinstance(name, str)),
    "torch.serialization._get_layout": lambda name: str(name),
    **plain_values.FUNCTIONS,
}
VALUES: dict[str, Any] = {
    **{f"torch.{name}Storage": dtype for name, dtype in _STORAGES.items()},
    "torch.storage.UntypedStorage": None,
    **{f"torch.{dtype}": dtype for dtype in _DTYPES},
    **{f"torch.{alias}": dtype for alias, dtype in _DTYPE_ALIASES.items()},
    "torch.Tensor": None,
    **plain_values.VALUES,
}


def storage_of(identifier: Any) -> Storage:
    """The storage of a persistent id ``("storage", type, key, location, count, …)``."""
    if not isinstance(identifier, tuple) or len(identifier) < 5 or identifier[0] != "storage":
        raise RefusedPickle("its pickle refers to what is no storage")
    kind, key, count = identifier[1], identifier[2], identifier[4]
    if not isinstance(kind, Global) or not isinstance(key, str) or type(count) is not int:
        raise RefusedPickle("its pickle describes a storage wrongly")
    if len(identifier) > 5 and identifier[5] is not None:
        raise RefusedPickle("its pickle uses a view of a storage, as torch did before 0.4")
    dtype = kind.value if isinstance(kind.value, str) else None
    if count < 0 or count > 1 << 60 or not kind.name.endswith("Storage"):
        raise RefusedPickle("its pickle gives a storage an impossible size")
    return Storage(key, dtype, count * (item_size_bytes(dtype) if dtype else 1))


@dataclass(frozen=True)
class Flattened:
    """What an unpickled object holds, by dotted names.

    parts: of the tensors that lie beside the network's own state, the part.
    wrapper: the key of the network's state, which is left out of the names.
    """

    tensors: Mapping[str, StoredTensor]
    others: Mapping[str, str]
    parts: Mapping[str, str]
    wrapper: str = ""


def flattened(root: Any) -> Flattened:
    """Tensors and other values of an unpickled object; RefusedPickle where it holds itself."""
    tensors: dict[str, StoredTensor] = {}
    others: dict[str, str] = {}
    states = _states_of_optimizers(root)
    wrapper = _wrapper(root)
    depth = len(wrapper)
    parts: dict[str, str] = {}
    for count, (path, leaf) in enumerate(_leaves(root, (), set())):
        if count > _MOST_LEAVES:
            raise RefusedPickle("its pickle holds more values than any checkpoint")
        name = ".".join(path) or "tensor"
        if name in tensors or name in others:
            raise RefusedPickle(f"two of its values have the name {name!r:.200}")
        if isinstance(leaf, StoredTensor):
            tensors[name] = leaf
            if path and (path[0] in states or path[:depth] != wrapper):
                parts[name] = path[0]
        else:
            others[name] = _shown(leaf)
    start = "".join(f"{key}." for key in wrapper)
    stripped = {name.removeprefix(start): tensor for name, tensor in tensors.items()}
    if not wrapper or len(stripped) != len(tensors) or stripped.keys() & others.keys():
        return Flattened(tensors, others, parts)
    return Flattened(stripped, others, parts, ".".join(wrapper))


def _wrapper(root: Any) -> tuple[str, ...]:
    """The keys under which a training script put the state of the network, if any."""
    found: list[str] = []
    while isinstance(root, dict) and len(found) < _MOST_WRAPPERS:
        key = next((key for key in WRAPPERS if _holds_tensors(root.get(key))), None)
        if key is None or any(isinstance(value, StoredTensor) for value in root.values()):
            break
        found.append(key)
        root = root[key]
    return tuple(found)


def _holds_tensors(value: Any) -> bool:
    """Whether a dictionary holds tensors, itself or under the key of a further wrapper."""
    for _ in range(_MOST_WRAPPERS):
        if not isinstance(value, dict):
            return False
        if any(isinstance(item, StoredTensor) for item in value.values()):
            return True
        value = next((value[key] for key in WRAPPERS if isinstance(value.get(key), dict)), None)
    return False


def _states_of_optimizers(root: Any) -> set[str]:
    """The keys whose values are states of torch's optimizers, or lists of them."""
    if not isinstance(root, dict):
        return set()
    return {
        str(key)
        for key, value in root.items()
        for state in (value if isinstance(value, list) else [value])
        if isinstance(state, dict) and {"state", "param_groups"} <= state.keys()
    }


def _shown(leaf: Any) -> str:
    if isinstance(leaf, Global):
        return leaf.name
    if isinstance(leaf, int) and leaf.bit_length() > 10_000:
        return "a very large number"
    return str(leaf)[:1000]


def _leaves(
    value: Any, path: tuple[str, ...], above: set[int]
) -> Iterator[tuple[tuple[str, ...], Any]]:
    if not isinstance(value, dict | list | tuple | set | frozenset):
        yield path, value
        return
    if id(value) in above or len(path) > MAX_DEPTH:
        raise RefusedPickle("its pickle contains itself")
    above.add(id(value))
    items: Mapping[Any, Any] = value if isinstance(value, dict) else dict(enumerate(value))
    for key, item in items.items():
        yield from _leaves(item, (*path, str(key)), above)
    above.discard(id(value))
