"""Exports a network with torch.export and writes its graphs as JSON, its tensors as .npz.

    python export_child.py CASE_FOLDER

The folder holds `reference_side.py`, which builds the network, `inputs.npz`, its arguments in
order, and `more.npz`, the same for a larger batch: numbers that grow with the batch are left open.
Writes `program.json`, which `isograd.convert.graph.program` reads, and `tensors.npz`.
"""

from __future__ import annotations

import contextlib
import copy
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _isograd_graph_values import (  # type: ignore[import-not-found]
    FIRST_WORDS,
    Exported,
    Tensors,
    dtype,
    equal,
)
from _isograd_rewriting import inlined, stored_back, unaliased  # type: ignore[import-not-found]


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
                "dtype": dtype(tensor),
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
    return [name for name, value in before.items() if not equal(value, after[name].detach())]


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
            said = " ".join(str(error).split())[:FIRST_WORDS]
            answer["problem"] = f"torch.export, {mode} mode: {type(error).__name__}: {said}"
    if not answer["fixed"]:
        answer["computing"] = {}  # the graphs are open without it
    used = {*named_constants(answer), *(entry["name"] for entry in answer["parameters"])}
    arrays = {name: array for name, array in tensors.arrays.items() if name in used}
    np.savez_compressed(folder / "tensors.npz", **arrays)
    (folder / "program.json").write_text(json.dumps(answer), encoding="utf-8")


if __name__ == "__main__":
    main()
