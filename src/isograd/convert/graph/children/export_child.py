"""Exports a network with torch.export and writes its graphs as JSON, its tensors as .npz.

    python export_child.py CASE_FOLDER

The folder holds `reference_side.py`, which builds the network, `inputs.npz`, its arguments in
order, and `more.npz`, the same for a larger batch: numbers that grow with the batch are left open.
Writes `program.json`, which `isograd.convert.graph.program` reads, and `tensors.npz`.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import operator
import sys
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _isograd_rewriting import inlined, stored_back, unaliased  # type: ignore[import-not-found]
from torch.utils import _pytree as pytree

_RANDOM = torch.Tag.nondeterministic_seeded
_FIRST_WORDS = 600
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
            if name in theirs and not _alike(value, theirs[name])
        }

    def _node(self, node: Any) -> dict[str, Any]:
        stack = node.meta.get("nn_module_stack") or {}
        return {
            "name": node.name,
            "target": _name_of(node.target),
            "arguments": self._arguments(node),
            "stack": [[key, path, str(kind)] for key, (path, kind) in stack.items()],
            "shape": _shape(node.meta.get("val")),
            "dtype": _dtype(node.meta.get("val")),
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


def _dtype(value: Any) -> str:
    return str(value.dtype).removeprefix("torch.") if isinstance(value, torch.Tensor) else ""


def _place(node: Any) -> str:
    """The last line of the original's code in the trace of a node, outside torch's own."""
    lines = str(node.meta.get("stack_trace") or "").splitlines()
    places = [line.strip() for line in lines if line.strip().startswith("File ")]
    own = [place for place in places if "/torch/" not in place] or places
    return own[-1] if own else ""


def parameters_of(model: Any, tensors: Tensors) -> list[dict[str, Any]]:
    """Parameters and buffers by name; a tied one names the first of its kind."""
    found: list[dict[str, Any]] = []
    first = first_names(model)
    for module_name, module in model.named_modules(remove_duplicate=True):
        lacking: set[str] = getattr(module, "_non_persistent_buffers_set", set())
        own = [(a, p, "parameter") for a, p in module._parameters.items()]
        own += [(a, b, "buffer") for a, b in module._buffers.items()]
        for attribute, tensor, kind in own:
            if tensor is None:
                continue
            name = f"{module_name}.{attribute}" if module_name else attribute
            entry: dict[str, Any] = {
                "name": name,
                "shape": list(tensor.shape),
                "dtype": _dtype(tensor),
                "kind": kind,
                "trained": bool(tensor.requires_grad),
                "persistent": attribute not in lacking,
                "tied": None if first[name] == name else first[name],
                # What no checkpoint holds is a constant of the port, whatever its values.
                "initial": initial_of(tensor, name, tensors, kind)
                if attribute not in lacking
                else ["values", tensors.add(tensor, name)],
            }
            found.append(entry)
    return found


def first_names(model: Any) -> dict[str, str]:
    """The first name of each parameter and buffer, by all names that it has in the modules."""
    first: dict[int, str] = {}
    found: dict[str, str] = {}
    for module_name, module in model.named_modules(remove_duplicate=False):
        for attribute, tensor in {**module._parameters, **module._buffers}.items():
            if tensor is not None:
                name = f"{module_name}.{attribute}" if module_name else attribute
                found[name] = first.setdefault(id(tensor), name)
    return found


def initial_of(tensor: Any, name: str, tensors: Tensors, kind: str) -> Any:
    """How a tensor's values at the start can be described: a kind and its numbers."""
    values = tensor.detach().float().reshape(-1)
    if values.numel() == 0:
        return ["constant", 0.0]
    low, high = float(values.min()), float(values.max())
    if low == high:
        return ["constant", low]
    if kind == "buffer" or not tensor.is_floating_point():
        return ["values", tensors.add(tensor, name)]
    mean, deviation = float(values.double().mean()), float(values.double().std())
    centred = (values.double() - mean) / deviation
    flatness = float((centred**4).mean())
    if values.numel() < 8:
        return ["normal", mean, deviation]
    # A uniform draw has kurtosis 1.8, a normal one 3; between them lies a cut normal.
    if flatness < 2.1:
        half = deviation * 3**0.5
        return ["uniform", mean - half, mean + half]
    if flatness < 2.7 and values.numel() > 500:
        return ["cut", mean, deviation, max(-low, high)]
    centre = 0.0 if abs(mean) < 4 * deviation / values.numel() ** 0.5 else mean
    return ["normal", centre, deviation]


def exported(model: Any, arguments: tuple[Any, ...], train: bool) -> Any:
    """The program of one mode."""
    model.train(train)
    with torch.enable_grad():
        program = torch.export.export(model, arguments, strict=False)
    return unaliased(stored_back(inlined(program)))


def changed_parameters(model: Any, arguments: tuple[Any, ...]) -> list[str]:
    """The parameters that a forward pass in training changes, of which a graph may say nothing."""
    try:
        tried = copy.deepcopy(model).train()
        before = {name: value.detach().clone() for name, value in tried.named_parameters()}
        tried(*arguments)
    except Exception:  # what does not run is told by the export
        return []
    after = dict(tried.named_parameters())
    return [name for name, value in before.items() if not _equal(value, after[name].detach())]


def _alike(first: Any, second: Any) -> bool:
    if isinstance(first, (tuple, list)):
        return len(first) == len(second) and all(map(_alike, first, second))
    return not isinstance(first, torch.Tensor) or _equal(first, second)


def _equal(first: Any, second: Any) -> bool:
    return first.shape == second.shape and bool(((first == second) | (first != first)).all())


@contextlib.contextmanager
def own_gradients() -> Iterator[set[str]]:
    """The classes of torch.autograd.Function that are applied: a graph has no backward."""
    seen: set[str] = set()
    original = torch.autograd.Function.__dict__["apply"]

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        seen.add(cls.__qualname__)
        return original.__get__(None, cls)(*args, **kwargs)

    setattr(torch.autograd.Function, "apply", classmethod(apply))  # noqa: B010  # a method
    try:
        yield seen
    finally:
        setattr(torch.autograd.Function, "apply", original)  # noqa: B010


class Batches:
    """Two graphs of one mode that differ in the size of the batch."""

    def __init__(self, sizes: tuple[int, int], ours: Tensors, theirs: Tensors) -> None:
        self._first, self._second = sizes
        self._ours, self._theirs = ours, theirs

    def opened(self, graph: dict[str, Any], other: dict[str, Any]) -> dict[str, Any] | None:
        """The first graph with `{"batch": factor}` for what grows; None where it is not alike."""
        try:
            found: dict[str, Any] = self._merged(graph, other)
        except _UnlikeError:
            return None
        return found

    def _merged(self, ours: Any, theirs: Any) -> Any:
        if type(ours) is not type(theirs):
            raise _UnlikeError
        if isinstance(ours, dict):
            if ours.keys() != theirs.keys():
                raise _UnlikeError
            if "constant" in ours:
                return self._constant(ours, theirs)
            return {k: self._merged(v, theirs[k]) for k, v in ours.items() if k != "trace"} | (
                {"trace": ours["trace"]} if "trace" in ours else {}
            )
        if isinstance(ours, list):
            if len(ours) != len(theirs):
                raise _UnlikeError
            return [self._merged(a, b) for a, b in zip(ours, theirs, strict=True)]
        if ours == theirs:
            return ours
        if isinstance(ours, int) and not isinstance(ours, bool):
            factor = ours // self._first
            if factor * self._first == ours and factor * self._second == theirs:
                return {"batch": factor, "now": ours}
        raise _UnlikeError

    def _constant(self, ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
        first = self._ours.arrays[ours["constant"]]
        second = self._theirs.arrays[theirs["constant"]]
        if first.shape != second.shape or not np.array_equal(first, second):
            raise _UnlikeError
        return ours


class _UnlikeError(Exception):
    """Two graphs differ in more than numbers that grow with the batch."""


def module_kinds(model: Any) -> Iterable[tuple[str, str]]:
    """Every module's path and class."""
    for name, module in model.named_modules(remove_duplicate=False):
        kind = type(module)
        yield name, f"{kind.__module__}.{kind.__qualname__}"


def _inputs(path: Path) -> tuple[Any, ...]:
    with np.load(path) as given:
        return tuple(torch.from_numpy(given[key]) for key in sorted(given.files, key=int))


def graphs_of(
    model: Any,
    arguments: tuple[Any, ...],
    more: tuple[Any, ...],
    train: bool,
    tensors: Tensors,
) -> tuple[dict[str, Any], dict[str, Any] | None, dict[str, Any] | None]:
    """The graph of one mode; with the batch left open, if another batch gives the same graph.

    The third is open where the second is not: what depends on the size of the batch (a mask made
    of `arange(batch)`) is computed by the port then, which may lack an operator for it.
    """
    names = first_names(model)
    program = exported(model, arguments, train)
    own = Exported(program, tensors, names)
    graph = own.plain()
    try:
        program_of_more = exported(model, more, train)
    except Exception:  # a network may take this batch alone
        return graph, None, None
    scratch = Tensors()
    other = Exported(program_of_more, scratch, names)
    batches = Batches((arguments[0].shape[0], more[0].shape[0]), tensors, scratch)
    opened = batches.opened(graph, other.plain())
    unlike = own.unlike(other) if opened is None else set()
    if not unlike:
        return graph, opened, None
    computing = Exported(program, tensors, names, unlike).plain()
    computing_more = Exported(program_of_more, scratch, names, unlike).plain()
    return graph, None, batches.opened(computing, computing_more)


def named_constants(part: Any) -> Iterator[str]:
    """The constants that a graph or a parameter's first values name."""
    if isinstance(part, dict):
        if "constant" in part:
            yield part["constant"]
        for inner in part.values():
            yield from named_constants(inner)
    elif isinstance(part, list):
        if part[:1] == ["values"]:
            yield part[1]
        for inner in part:
            yield from named_constants(inner)


def main() -> None:
    """Export the network of the folder."""
    folder = Path(sys.argv[1])
    sys.path.insert(0, str(folder))
    answer: dict[str, Any] = {"problem": "", "fixed": False, "functions": [], "changed": []}
    torch.manual_seed(0)
    import reference_side  # type: ignore[import-not-found]

    model = reference_side.build()
    tensors = Tensors()
    arguments, more = (_inputs(folder / name) for name in ("inputs.npz", "more.npz"))
    answer["parameters"] = parameters_of(model, tensors)
    answer["modules"] = dict(module_kinds(model))
    answer["changed"] = changed_parameters(model, arguments)
    answer["modes"], answer["computing"] = {}, {}
    for mode in ("train", "eval"):
        try:
            with own_gradients() as functions:
                graph, opened, computing = graphs_of(
                    model, arguments, more, mode == "train", tensors
                )
            answer["functions"] = sorted({*answer["functions"], *functions})
            answer["modes"][mode] = opened or graph
            answer["fixed"] = answer["fixed"] or opened is None
            answer["computing"][mode] = opened or computing
        except Exception as error:  # noqa: PERF203 - the other mode may still be exported
            said = " ".join(str(error).split())[:_FIRST_WORDS]
            answer["problem"] = f"torch.export, {mode} mode: {type(error).__name__}: {said}"
    if not answer["fixed"]:
        answer["computing"] = {}  # the graphs are open without it
    used = {*named_constants(answer), *(entry["name"] for entry in answer["parameters"])}
    arrays = {name: array for name, array in tensors.arrays.items() if name in used}
    np.savez_compressed(folder / "tensors.npz", **arrays)
    (folder / "program.json").write_text(json.dumps(answer), encoding="utf-8")


if __name__ == "__main__":
    main()
