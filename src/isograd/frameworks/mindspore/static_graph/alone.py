"""Modules of the port compiled alone, and the statements of one module's own construct.

A call that was recorded eagerly runs again, once eagerly and once compiled, with its recorded
inputs: outputs, and the gradients of its inputs and parameters for drawn cotangents.  A construct
is cut behind each of its statements and returns what it holds there.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import math
import sys
import types
from collections.abc import Iterator
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import nn, ops

from isograd import tree
from isograd.frameworks.base import CallInfo, Tensors
from isograd.frameworks.capabilities import CompilesModules
from isograd.frameworks.common import with_tensors
from isograd.frameworks.mindspore.convert import from_value, to_value
from isograd.frameworks.mindspore.differentiate import FLOATS
from isograd.frameworks.mindspore.static_graph.port import EAGER, StaticGraphPort
from isograd.frameworks.mindspore.static_graph.texts import CallText, definition_of, walk
from isograd.frameworks.user_code import load_callable
from isograd.metrics import as_float64, norm
from isograd.tensors import TensorKey, TensorValue, tensor_value

#: Relative error between an eager and a compiled run of one module, both in float32; what the
#: compiler does otherwise is wrong by far more, and rounding of one module by far less.
_TOLERANCE = 2e-3
_TINY = 1e-12
#: Eager runs beside the recorded one, with arguments and parameters moved by a unit in the last
#: place: how far rounding carries a gradient that is zero but for rounding, as that of a bias
#: before a softmax. They run where something differs.  A compiled run may be this much further.
_NOISE_RUNS, _NOISE_TOLERANCE = 2, 10.0
_UNITS = {ms.float16: 2.0**-10, ms.bfloat16: 2.0**-7, ms.float64: 2.0**-52}
#: What a construct that is cut returns beside its variables, and what it is where it ends before.
_MARK = "isograd-holds-here"
_RETURNED = "returned"


class CompiledModules(StaticGraphPort, CompilesModules):
    """A port whose modules are compiled alone."""

    def record(
        self, mode: str, inputs: dict[str, TensorValue], targets: list[TensorValue]
    ) -> tuple[CallInfo, ...]:
        """Record an eager pass for `alone`; its calls."""
        self.forward(mode, inputs, targets, record=True)
        return self.calls()

    def alone(self, call: int, way: str, backward: bool) -> dict[str, Any]:
        """How a recorded call compiles: verdict, and what differs most or why it is refused.

        Verdicts: same, refused, differs, gradient-lost, gradient-differs, unknown (the module
        does not run alone).
        """
        found = self._calls[call]
        cell = self._cells[found.module]
        args, kwargs = tree.unflatten(found.arguments, [t.copy() for t in found.inputs])
        arguments = CallText(args, kwargs)
        return self._judged(cell, arguments, way, backward)

    def loss_alone(self, way: str, targets: list[TensorValue]) -> dict[str, Any]:
        """How the loss compiles on the recorded output; verdicts as those of `alone`."""
        assert self._spec is not None
        assert self._spec.loss is not None
        root = self._calls[0]
        output = tree.unflatten(root.result, [t.copy() for t in root.outputs])
        loss = load_callable(self._spec.loss, self._spec.folder, "[port] loss")
        arguments = CallText((output, *with_tensors(list(targets), from_value)))
        found = self._judged(loss, arguments, way, True)
        source = definition_of(loss)
        place = {"file": source[2], "function": source[1].name} if source else {}
        return found | place

    def _judged(self, cell: Any, arguments: CallText, way: str, backward: bool) -> dict[str, Any]:
        eager = self.attempt(lambda: self._pass_of(cell, arguments, EAGER, backward))
        if "refused" in eager:
            if not backward:
                return {"verdict": "unknown", **eager}
            return self._judged(cell, arguments, way, False)
        compiled = self.attempt(lambda: self._pass_of(cell, arguments, way, backward))
        return self._against(eager["tensors"], compiled, cell, arguments, backward)

    def _against(
        self,
        eager: Tensors,
        compiled: dict[str, Any],
        cell: Any,
        arguments: CallText,
        backward: bool,
    ) -> dict[str, Any]:
        """A compiled run compared with an eager one, and with how far rounding carries that."""
        if "refused" in compiled:
            return {"verdict": "refused", **compiled}
        found = _compared(eager, compiled["tensors"], {})
        if found["verdict"] == "same":
            return found
        noise: dict[str, float] = {}
        for number in range(_NOISE_RUNS):
            with _moved(cell, arguments, number) as moved:
                other = self.attempt(lambda: self._pass_of(cell, moved, EAGER, backward))
            for key, value in other.get("tensors", {}).items():
                if key in eager and eager[key].shape == value.shape:
                    noise[key] = max(noise.get(key, 0.0), _distance(eager[key], value))
        return _compared(eager, compiled["tensors"], noise)

    def _pass_of(self, cell: Any, arguments: CallText, way: str, backward: bool) -> Tensors:
        with self._restoring(self._mode):
            with self.in_way(EAGER):
                space = {"CELL": cell, **arguments.space}
                named = dict(zip(arguments.names, arguments.tensors, strict=True))
                output = eval(f"CELL({arguments.text})", {**space, **named})  # noqa: S307
            places = list(walk(output, "output"))
        floats = [i for i, (_, t) in enumerate(places) if t.dtype in FLOATS]
        positions = [i for i, t in enumerate(arguments.tensors) if t.dtype in FLOATS]
        weights = list(cell.trainable_params()) if isinstance(cell, nn.Cell) else []
        with self._restoring(self._mode), self.in_way(way):
            if not (backward and floats and (positions or weights)):
                return self._forward_alone(cell, arguments, [p for p, _ in places], way)
            return self._with_gradients(cell, arguments, places, (positions, weights), way)

    def _forward_alone(self, cell: Any, arguments: CallText, paths: list[str], way: str) -> Tensors:
        text = (
            f"def run({', '.join(arguments.names)}):\n"
            f"    output = CELL({arguments.text})\n"
            f"    return ({''.join(f'{p}, ' for p in paths)})\n"
        )
        run = self._texts.function(text, "run", {"CELL": cell, **arguments.space})
        outputs = self.compiled(way, run)(*arguments.tensors)
        return {TensorKey.output(i): to_value(t) for i, t in enumerate(outputs)}

    def _with_gradients(
        self,
        cell: Any,
        arguments: CallText,
        places: list[tuple[str, Any]],
        wanted: tuple[list[int], list[Any]],
        way: str,
    ) -> Tensors:
        """Gradients of the inputs at positions and of weights, in one compilation.

        Of the outputs it yields their product with the cotangents: a random projection, in which
        another output shows, beside the size that it is to be measured by. All of the second call:
        what a first one leaves behind shows there (a constant that the gradient writes into).
        """
        positions, weights = wanted
        floats = [(p, t) for p, t in places if t.dtype in FLOATS]
        names = [*arguments.names, *(f"c{i}" for i in range(len(floats)))]
        terms = " + ".join(f"({p} * c{i}).sum()" for i, (p, _) in enumerate(floats))
        text = (
            f"def run({', '.join(names)}):\n"
            f"    output = CELL({arguments.text})\n"
            f"    return {terms}\n"
        )
        run = self._texts.function(text, "run", {"CELL": cell, **arguments.space})
        step = ms.value_and_grad(run, tuple(positions) or None, weights or None)
        text = f"def step({', '.join(names)}):\n    return GRAD({', '.join(names)})\n"
        compiled = self.compiled(way, self._texts.function(text, "step", {"GRAD": step}))
        cotangents = [_cotangent(t, i) for i, (_, t) in enumerate(floats)]
        compiled(*arguments.tensors, *cotangents)
        projection, found = compiled(*arguments.tensors, *cotangents)
        groups = found if positions and weights else (found,)
        keys = [TensorKey.input(i).gradient for i in positions]
        keys += [TensorKey.parameter(p.name).gradient for p in weights]
        flat = [g for group in groups for g in (group if isinstance(group, tuple) else (group,))]
        size = math.hypot(*(norm(as_float64(to_value(t).values)) for _, t in floats))
        projected = np.array([float(to_value(projection).values), size])
        results: Tensors = {"output": tensor_value(projected)}
        return results | {key: to_value(g) for key, g in zip(keys, flat, strict=True)}

    def statements(self, call: int, way: str, backward: bool, verdict: str) -> dict[str, Any]:
        """The first statement of a call's own construct behind which it differs: its lines.

        Empty where the construct has no source, or agrees behind each of its statements.
        """
        found = self._calls[call]
        cell = self._cells[found.module]
        source = definition_of(type(cell).construct)
        if source is None:
            return {}
        function, node, file = source
        body = [s for s in node.body if not _is_text(s)]
        args, kwargs = tree.unflatten(found.arguments, [t.copy() for t in found.inputs])

        def is_wrong(count: int) -> bool:
            cut = self._cut(cell, function, node, body[:count], args, kwargs)
            if cut is None or cut is _RETURNED:
                return cut is _RETURNED
            own = "construct" in cell.__dict__
            before = cell.__dict__.get("construct")
            cell.__dict__["construct"] = types.MethodType(cut, cell)
            try:
                judged = self._judged(cell, CallText(args, kwargs), way, backward)
            finally:
                cell.__dict__.pop("construct")
                if own:
                    cell.__dict__["construct"] = before
            return judged["verdict"] not in ("same", "unknown")

        low, high = 0, len(body)  # agrees behind `low`; the whole differs
        while high - low > 1:
            middle = (low + high) // 2
            if is_wrong(middle):
                high = middle
            else:
                low = middle
        if not body:
            return {}
        wrong = body[high - 1]
        return {"file": file, "line": wrong.lineno, "end": wrong.end_lineno or wrong.lineno}

    def _cut(
        self,
        cell: Any,
        function: types.FunctionType,
        node: ast.FunctionDef,
        body: list[ast.stmt],
        args: Any,
        kwargs: Any,
    ) -> Any:
        """The construct up to a statement, returning the tensors that it holds there.

        None where it does not run so far; `_RETURNED` where it has returned by then.
        """
        probe = copy.deepcopy(node)
        probe.body = [*body, *ast.parse(f"return ({_MARK!r}, dict(locals()))").body]
        with self._restoring(self._mode), self.in_way(EAGER):
            try:
                held = self._texts.remade(function, probe)(cell, *args, **kwargs)
            except Exception:  # a cut construct may not run: then another cut is looked at
                return None
        if not _is_marked(held):
            return _RETURNED
        own = node.args.args[0].arg if node.args.args else ""
        paths = [
            path for name, value in held[1].items() if name != own for path, _ in walk(value, name)
        ]
        if not paths:
            return None
        cut = copy.deepcopy(node)
        held_there = paths[0] if len(paths) == 1 else f"({''.join(f'{p}, ' for p in paths)})"
        cut.body = [*body, *ast.parse(f"return {held_there}").body]
        return self._texts.remade(function, cut)

    def code_of(self, module: str) -> dict[str, Any]:
        """Where a module's construct is written: the class and the file; empty of a library's."""
        for kind in type(self._cells[module]).__mro__:
            if "construct" in vars(kind):
                source = definition_of(vars(kind)["construct"])
                library = kind.__module__.startswith("mindspore.")
                if library or source is None:
                    return {"library": type(self._cells[module]).__name__ if library else ""}
                return {"class": type(self._cells[module]).__name__, "file": source[2]}
        return {}

    def alone_rewritten(
        self, call: int, way: str, backward: bool, edits: list[tuple[str, int, str]]
    ) -> dict[str, Any]:
        """How a call compiles with other definitions of its functions: name, line, text.

        The compiled run of the other text is compared with the eager run of the code as it is.
        """
        found = self._calls[call]
        cell = self._cells[found.module]
        args, kwargs = tree.unflatten(found.arguments, [t.copy() for t in found.inputs])
        arguments = CallText(args, kwargs)
        eager = self.attempt(lambda: self._pass_of(cell, arguments, EAGER, backward))
        if "refused" in eager:
            return {"verdict": "unknown", **eager}
        with self._rewritten(cell, edits) as is_done:
            if not is_done:
                return {"verdict": "unknown"}
            compiled = self.attempt(lambda: self._pass_of(cell, arguments, way, backward))
        return self._against(eager["tensors"], compiled, cell, arguments, backward)

    @contextlib.contextmanager
    def _rewritten(self, cell: nn.Cell, edits: list[tuple[str, int, str]]) -> Iterator[bool]:
        """Other definitions in the places of methods and functions, until the end of the block."""
        wanted = {(name, line): text for name, line, text in edits}
        before: list[tuple[Any, str, Any]] = []
        done: set[tuple[str, int]] = set()
        for owner, name, value in list(_functions_around(cell)):
            source = definition_of(value)
            key = (source[1].name, source[1].lineno) if source else ("", 0)
            if source is None or key not in wanted:
                continue
            node = ast.parse(wanted[key]).body[0]
            assert isinstance(node, ast.FunctionDef)
            before.append((owner, name, value))
            _put(owner, name, self._texts.remade(source[0], node))
            done.add(key)
        try:
            yield done == set(wanted)
        finally:
            for owner, name, value in before:
                _put(owner, name, value)


def _functions_around(cell: nn.Cell) -> Iterator[tuple[Any, str, Any]]:
    """The methods of a cell's classes and the functions of their modules: owner, name, value."""
    for part in cell.cells_and_names():
        for kind in type(part[1]).__mro__:
            if kind.__module__.startswith("mindspore.") or kind is object:
                continue
            for name, value in list(vars(kind).items()):
                if isinstance(value, types.FunctionType):
                    yield kind, name, value
            module = sys.modules.get(kind.__module__)
            for name, value in list(vars(module).items()) if module is not None else ():
                if isinstance(value, types.FunctionType) and value.__module__ == kind.__module__:
                    yield module, name, value


def _put(owner: Any, name: str, value: Any) -> None:
    setattr(owner, name, value)


def _is_marked(held: Any) -> bool:
    if not isinstance(held, tuple) or len(held) != 2 or not isinstance(held[0], str):
        return False
    return held[0] == _MARK


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _cotangent(tensor: Any, number: int) -> Any:
    drawn = np.random.default_rng((17, number)).standard_normal(tuple(tensor.shape))
    return ms.Tensor(np.asarray(drawn, np.float32)).astype(tensor.dtype)


@contextlib.contextmanager
def _moved(cell: Any, arguments: CallText, number: int) -> Iterator[CallText]:
    """A call whose floating arguments and parameters are moved by a unit in the last place."""
    generator = np.random.default_rng((23, number))
    moved = copy.copy(arguments)
    moved.tensors = [_beside(t, generator) for t in arguments.tensors]
    weights = list(cell.trainable_params()) if isinstance(cell, nn.Cell) else []
    before = [weight.copy() for weight in weights]
    for weight in weights:
        ops.assign(weight, _beside(weight, generator))
    try:
        yield moved
    finally:
        for weight, value in zip(weights, before, strict=True):
            ops.assign(weight, value)


def _beside(tensor: Any, generator: np.random.Generator) -> Any:
    if tensor.dtype not in FLOATS:
        return tensor
    sign = generator.choice([-1.0, 1.0], size=tuple(tensor.shape))
    unit = _UNITS.get(tensor.dtype, 2.0**-23)
    return (tensor.astype(ms.float64) * ms.Tensor(1.0 + unit * sign)).astype(tensor.dtype)


def _compared(eager: Tensors, compiled: Tensors, noise: dict[str, float]) -> dict[str, Any]:
    """The worst of the tensors: gradients that are lost before those that differ."""
    worst: dict[str, Any] = {"verdict": "same"}
    rank = {"same": 0, "gradient-differs": 1, "gradient-lost": 2, "differs": 3}
    for key, value in eager.items():
        allowed = _NOISE_TOLERANCE * noise.get(key, 0.0)
        verdict, error = _difference(key, value, compiled.get(key), allowed)
        if rank[verdict] > rank[worst["verdict"]]:
            worst = {"verdict": verdict, "tensor": key, "deviation": error}
    return worst


def _difference(
    key: str, value: TensorValue, other: TensorValue | None, allowed: float
) -> tuple[str, float]:
    is_gradient = key.startswith("gradient.")
    differs = "gradient-differs" if is_gradient else "differs"
    if other is None or other.shape != value.shape:
        return differs, float("inf")
    first, second = as_float64(value.values), as_float64(other.values)
    if bool((np.isnan(first) != np.isnan(second)).any()):
        return differs, float("inf")
    size, error = norm(first), _distance(value, other)
    if error <= max(_TOLERANCE * max(size, _TINY), allowed):
        return "same", error
    if is_gradient and size > _TINY and not second.any():
        return "gradient-lost", 1.0
    return differs, error / max(size, _TINY)


def _distance(value: TensorValue, other: TensorValue) -> float:
    """Frobenius norm of the difference where neither is NaN."""
    return norm(np.nan_to_num(as_float64(value.values) - as_float64(other.values), nan=0.0))
