"""A graph of torch.export as plain values, with everything constant computed."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Collection
from typing import Any

import torch
from torch.utils import _pytree as pytree

_RANDOM = torch.Tag.nondeterministic_seeded


FIRST_WORDS = 600


#: Operators whose result depends on the shape and dtype of their first argument alone.
_SHAPED = frozenset("new_zeros new_ones new_full zeros_like ones_like full_like".split())


class Tensors:
    """Constants by name, each content once."""

    def __init__(self) -> None:
        self.arrays: dict[str, Any] = {}
        self._known: dict[str, str] = {}

    def add(self, tensor: Any, name: str = "") -> str:
        array = tensor.detach().cpu()
        array = (array.float() if array.dtype == torch.bfloat16 else array).numpy().copy()
        key = hashlib.sha256(array.tobytes() + f"{array.dtype}{array.shape}".encode()).hexdigest()
        if not name and key in self._known:
            return self._known[key]
        name = name or f"constant_{len(self._known)}"
        self._known.setdefault(key, name)
        self.arrays[name] = array
        return name


class Exported:
    """One mode's graph as plain values, with everything constant computed.

    kept: nodes that are not computed, though they depend on constants alone.
    """

    def __init__(
        self, program: Any, tensors: Tensors, names: dict[str, str], kept: Collection[str] = ()
    ) -> None:
        self._program = program
        self._tensors = tensors
        self._names = names
        self._kept = kept
        self._sources: dict[str, dict[str, Any]] = {}
        self._values: dict[str, Any] = {}
        self._constants: dict[str, Any] = {}
        self.inputs: list[str] = []
        self.input_shapes: list[list[int]] = []
        for spec in program.graph_signature.input_specs:
            self._note_input(spec)

    def _note_input(self, spec: Any) -> None:
        kind, name = spec.kind.name, spec.arg.name
        if kind == "USER_INPUT":
            self._sources[name] = {"input": len(self.inputs)}
            self.inputs.append(name)
        elif kind in ("PARAMETER", "BUFFER"):
            self._sources[name] = {"parameter": self._names.get(spec.target, spec.target)}
        elif kind == "CONSTANT_TENSOR":
            value = self._program.constants[spec.target]
            self._values[name] = value.detach().clone()
        else:
            raise TypeError(f"the graph has an input of kind {kind}, {spec.target}")

    def plain(self) -> dict[str, Any]:
        """Nodes in order, and what is returned."""
        nodes, output = [], None
        for node in self._program.graph.nodes:
            if node.op == "call_function":
                if not self._computed(node):
                    nodes.append(self._node(node))
            elif node.op == "output":
                results = [self._value(part) for part in node.args[0]]
                output = self._structured(results)
            elif node.op != "placeholder":
                raise TypeError(f"the graph has a node of kind {node.op}, {node.target}")
        return {"inputs": self.inputs, "nodes": nodes, "output": output}

    def _computed(self, node: Any) -> bool:
        """Compute a node that depends on constants alone, with its effects on them."""
        target = node.target
        if (
            node.name in self._kept
            or "empty" in str(target)
            or any(_RANDOM in getattr(user.target, "tags", ()) for user in (node, *node.users))
        ):
            return False
        if str(target).startswith("aten._assert"):
            return False
        parts: list[Any] = []
        pytree.tree_map(parts.append, (node.args, node.kwargs))
        used = [part for part in parts if isinstance(part, torch.fx.Node)]
        shaped = str(target).partition(".")[2].partition(".")[0] in _SHAPED
        if shaped and isinstance(node.args[0], torch.fx.Node):
            used = [part for part in used if part is not node.args[0]]
        if not all(part.name in self._values for part in used):
            return False
        if not isinstance(node.meta.get("val"), (torch.Tensor, tuple, list)):
            return False

        def known(part: Any) -> Any:
            if not isinstance(part, torch.fx.Node):
                return part
            if part.name in self._values:
                return self._values[part.name]
            return torch.empty(part.meta["val"].shape, dtype=part.meta["val"].dtype)

        args, kwargs = pytree.tree_map(known, (node.args, node.kwargs))
        with torch.no_grad():
            self._values[node.name] = target(*args, **kwargs)
        return True

    def unlike(self, other: Exported) -> set[str]:
        """The computed nodes that have other values there."""
        theirs = other._values
        return {
            name
            for name, value in self._values.items()
            if name in theirs and not alike(value, theirs[name])
        }

    def _node(self, node: Any) -> dict[str, Any]:
        stack = node.meta.get("nn_module_stack") or {}
        return {
            "name": node.name,
            "target": _name_of(node.target),
            "arguments": self._arguments(node),
            "stack": [[key, path, str(kind)] for key, (path, kind) in stack.items()],
            "shape": _shape(node.meta.get("val")),
            "dtype": dtype(node.meta.get("val")),
            "trace": _place(node),
        }

    def _arguments(self, node: Any) -> dict[str, Any]:
        """By the names of the operator's schema; what equals its default is left out."""
        schema = getattr(node.target, "_schema", None)
        if schema is None:
            return {str(i): self._value(part) for i, part in enumerate(node.args)}
        found = {}
        for position, argument in enumerate(schema.arguments):
            if position < len(node.args):
                value = node.args[position]
            elif argument.name in node.kwargs:
                value = node.kwargs[argument.name]
            elif "conv" in schema.name and argument.has_default_value():
                # So that convolutions with and without a stride are of one class.
                value = argument.default_value
            else:
                continue
            has_default = argument.has_default_value() and "conv" not in schema.name
            if has_default and _is_plain(value) and _same(value, argument.default_value):
                continue
            found[argument.name] = self._value(value)
        return found

    def _value(self, part: Any) -> Any:
        if isinstance(part, torch.fx.Node):
            if part.name in self._values:
                # As it is now: what changes it later does so in the order of the graph.
                return {"constant": self._tensors.add(self._values[part.name])}
            return self._sources.get(part.name, {"node": part.name})
        if isinstance(part, (list, tuple)):
            return {"list": [self._value(item) for item in part]}
        if isinstance(part, torch.dtype):
            return {"dtype": str(part).removeprefix("torch.")}
        if isinstance(part, (torch.device, torch.layout, torch.memory_format)):
            return {"word": str(part)}
        if isinstance(part, float) and part in (float("inf"), float("-inf")):
            return {"infinity": part > 0}
        if part is None or isinstance(part, (bool, int, float, str)):
            return part
        raise TypeError(f"the graph holds a {type(part).__name__} as an argument")

    def _structured(self, results: list[Any]) -> Any:
        kinds = [spec.kind.name for spec in self._program.graph_signature.output_specs]
        users = [r for r, kind in zip(results, kinds, strict=True) if kind == "USER_OUTPUT"]
        made = pytree.tree_unflatten(
            [_Leaf(i) for i in range(len(users))], self._program.call_spec.out_spec
        )
        return _structure(made, users)


class _Leaf:
    def __init__(self, number: int) -> None:
        self.number = number


def _structure(made: Any, users: list[Any]) -> Any:
    if isinstance(made, _Leaf):
        return users[made.number]
    if isinstance(made, dict):
        return {"dict": [[str(key), _structure(part, users)] for key, part in made.items()]}
    if isinstance(made, (list, tuple)):
        return {"list": [_structure(part, users) for part in made]}
    if hasattr(made, "__dataclass_fields__"):
        parts = [getattr(made, name) for name in made.__dataclass_fields__]
        return {"list": [_structure(part, users) for part in parts if part is not None]}
    return None if made is None else made


def _is_plain(value: Any) -> bool:
    return not isinstance(value, torch.fx.Node)


def _same(value: Any, default: Any) -> bool:
    if isinstance(value, (list, tuple)) or isinstance(default, (list, tuple)):
        listed = isinstance(value, (list, tuple)) and isinstance(default, (list, tuple))
        return listed and list(value) == list(default)
    return type(value) is type(default) and bool(value == default)


def _name_of(target: Any) -> str:
    if isinstance(target, torch._ops.OpOverload):
        return str(target)
    module = getattr(target, "__module__", "")
    name = getattr(target, "__name__", str(target))
    return f"operator.{name}" if target in vars(operator).values() else f"{module}.{name}"


def _shape(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return [int(size) for size in value.shape]
    if isinstance(value, (list, tuple)):
        return {"list": [_shape(part) for part in value]}
    return None


def dtype(value: Any) -> str:
    return str(value.dtype).removeprefix("torch.") if isinstance(value, torch.Tensor) else ""


def _place(node: Any) -> str:
    """The last line of the reference's code in the trace of a node, outside torch's own."""
    lines = str(node.meta.get("stack_trace") or "").splitlines()
    places = [line.strip() for line in lines if line.strip().startswith("File ")]
    own = [place for place in places if "/torch/" not in place] or places
    return own[-1] if own else ""


def alike(first: Any, second: Any) -> bool:
    if isinstance(first, (tuple, list)):
        return len(first) == len(second) and all(map(alike, first, second))
    return not isinstance(first, torch.Tensor) or equal(first, second)


def equal(first: Any, second: Any) -> bool:
    return first.shape == second.shape and bool(((first == second) | (first != first)).all())
