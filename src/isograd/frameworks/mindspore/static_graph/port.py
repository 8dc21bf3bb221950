"""The port under the static graph: whole passes and training steps, `jit` and GRAPH_MODE.

Three ways run the same network: "eager"; "jit", in which one compiled function holds the pass or
the whole step; "graph", in which MindSpore's mode is GRAPH_MODE.  Weights are given by
`ops.assign`, because `jit` goes on with the weights that it saw first after `set_data`.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import gc
import inspect
import os
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import mindspore as ms
from mindspore import nn

from isograd import tree
from isograd.errors import IsogradError
from isograd.frameworks.base import SideSpec, Structure, Tensors
from isograd.frameworks.common import (
    Arguments,
    reset_network,
    split_optimizer,
    users_line,
    with_tensors,
)
from isograd.frameworks.mindspore.adapter import MindSporeFramework
from isograd.frameworks.mindspore.convert import from_value, to_value
from isograd.frameworks.mindspore.network import force_eager
from isograd.frameworks.mindspore.observe import is_tensor
from isograd.frameworks.mindspore.passes import _distinct
from isograd.frameworks.mindspore.static_graph import chance
from isograd.frameworks.mindspore.static_graph.refusal import raised_place, reduced, users_place
from isograd.frameworks.mindspore.static_graph.texts import CallText, Texts, paths_of
from isograd.frameworks.user_code import load_callable
from isograd.tensors import TensorKey, TensorValue

EAGER, JIT, GRAPH = "eager", "jit", "graph"
#: The port as it is written: its own `jit` and its own mode.
OWN = "own"

_real_jit = ms.jit


class StaticGraphPort(MindSporeFramework):
    """One MindSpore network that is compiled; `own`: its own `jit` is left as it is."""

    def __init__(self, own: bool = False) -> None:
        self._own = own
        self._asked: list[str] = []
        self._own_mode = ms.PYNATIVE_MODE
        self._texts = Texts()
        self._steppers: dict[str, _Stepper] = {}
        super().__init__()

    def _prepare(self) -> None:  # type: ignore[override]
        force_eager()
        ms.set_context(save_graphs_path=str(self._texts.folder))
        chance.install()
        # The compiler reads a function's lines anew for every graph that it stands in.
        inspect.getsourcelines = functools.cache(inspect.getsourcelines)  # type: ignore[assignment]
        ms.jit = self._note_jit
        for place in (ms, ms.context):
            place.set_context = self._note_context(place.set_context)

    def _note_jit(self, function: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Stands in for `mindspore.jit`, and notes that the port asks for it."""
        self._note("jit")
        if self._own:
            return _real_jit(function, *args, **kwargs)
        if callable(function):
            return function
        return lambda wrapped: wrapped

    def _note_context(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def set_context(*args: Any, **kwargs: Any) -> Any:
            if kwargs.get("mode") == ms.GRAPH_MODE and users_line() is not None:
                self._note("GRAPH_MODE")
                self._own_mode = ms.GRAPH_MODE
            return original(*args, **kwargs)

        return set_context

    def _note(self, what: str) -> None:
        place = users_line(3)
        where = f" at {os.path.basename(place[0])}:{place[1]}" if place else ""
        if f"{what}{where}" not in self._asked:
            self._asked.append(f"{what}{where}")

    def build(self, spec: SideSpec, seed: int) -> Structure:
        structure = super().build(spec, seed)
        self.keep_scale(False)
        # The compiler leaves files where it runs; the user's folder is not the place for them.
        os.chdir(self._texts.folder)
        # What is imported by now stays; the compiler collects garbage with each compilation.
        gc.freeze()
        return structure

    def keep_scale(self, keeps: bool) -> None:
        super().keep_scale(keeps)
        chance.keep_scale(self._cells.values(), keeps)

    def asks(self) -> tuple[str, ...]:
        """Where the port itself asks to be compiled, in words."""
        return tuple(self._asked)

    @contextlib.contextmanager
    def in_way(self, way: str) -> Iterator[None]:
        """MindSpore's mode of one way."""
        before = ms.get_context("mode")
        mode = self._own_mode if way == OWN else ms.PYNATIVE_MODE
        ms.set_context(mode=ms.GRAPH_MODE if way == GRAPH else mode)
        try:
            yield
        finally:
            ms.set_context(mode=before)

    def attempt(self, run: Callable[[], Tensors]) -> dict[str, Any]:
        """What a run yields; where it is refused, why, and the user's line."""
        try:
            return {"tensors": run()}
        except IsogradError as error:
            cause = error.__cause__
            if cause is None:
                raise
            return self._refusal(cause)
        except Exception as error:  # whatever the compiler raises is its answer
            return self._refusal(error)

    def _refusal(self, error: BaseException) -> dict[str, Any]:
        text, folder = str(error), str(self._texts.folder)
        place = users_place(text, folder) or raised_place(error, folder)
        said = reduced(text)
        if not text.strip():
            said = type(error).__name__
        return {"refused": said, "place": place, "error": type(error).__name__}

    def compiled(self, way: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function as this way runs it."""
        found: Callable[..., Any] = _real_jit(function) if way == JIT else function
        return found

    def once(
        self,
        way: str,
        mode: str,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
        backward: bool,
        must_run: bool,
    ) -> dict[str, Any]:
        """One whole pass: outputs, and with backward the loss and the parameters' gradients.

        must_run: false where another mode runs as well; then it runs where a module reads its mode.
        """
        if not must_run and not reads_mode(self._model):
            return {"unread": True}

        def run() -> Tensors:
            with self._restoring(mode), self.in_way(way):
                if not backward:
                    return self._outputs(way, inputs)
                names = self._learning()
                weights = [self._parameters[n] for n in names]
                step = _Stepper(self, way, names, weights, None)
                return step(inputs, targets)

        return self.attempt(run)

    def _learning(self) -> list[str]:
        names = [n for n, p in self._parameters.items() if getattr(p, "requires_grad", False)]
        return _distinct(names, self._parameters)

    def _outputs(self, way: str, inputs: dict[str, TensorValue]) -> Tensors:
        arguments = self.arguments(inputs)
        text = f"def run({', '.join(arguments.names)}):\n    return NET({arguments.text})\n"
        run = self._texts.function(text, "run", {"NET": self._model, **arguments.space})
        output = self.compiled(way, run)(*arguments.tensors)
        found, _ = tree.flatten(output, is_tensor)
        return {TensorKey.output(i): to_value(t) for i, t in enumerate(found)}

    @staticmethod
    def arguments(inputs: dict[str, TensorValue]) -> CallText:
        """The network's arguments as text.

        inputs: any shapes and dtypes that the network takes.
        """
        arguments = Arguments(inputs)
        positional, keywords = arguments.put(map(from_value, arguments.tensors.values()))
        return CallText(positional, keywords)

    def _start_steps(self, way: str) -> None:
        """Make a fresh optimizer for one way's training steps; the mode is training."""
        assert self._spec is not None
        assert self._spec.optimizer is not None
        self._model.set_train(True)
        names = self._learning()
        function = load_callable(self._spec.optimizer, self._spec.folder, "[port] optimizer")
        optimizer, schedulers = split_optimizer(function(self._model))
        held = {id(p): n for n, p in reversed(self._parameters.items())}
        own = getattr(optimizer, "parameters", None)
        if own is not None and not callable(own):
            names = [held[id(p)] for p in own]
        weights = [self._parameters[n] for n in names]
        self._steppers[way] = _Stepper(self, way, names, weights, optimizer, schedulers)

    def step(
        self,
        way: str,
        state: Tensors | None,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
        is_first: bool,
    ) -> dict[str, Any]:
        """One training step of a way from a given state: loss, outputs, gradients, state."""
        if is_first:
            self._start_steps(way)

        def run() -> Tensors:
            if state is not None:
                self.load_state(state)
            self._model.set_train(True)
            reset_network(self._spec, self._model, "port")
            with self.in_way(way):
                found = self._steppers[way](inputs, targets)
            return found | {f"state.{n}": v for n, v in self.state().items()}

        return self.attempt(run)


def reads_mode(model: nn.Cell) -> bool:
    """Whether code of a cell asks for its mode, apart from dropout that passes its input."""
    cells = [cell for _, cell in model.cells_and_names() if not chance.passes_input(cell)]
    kinds = {kind for cell in cells for kind in type(cell).__mro__} - {*nn.Cell.__mro__}
    files = {sys.modules.get(kind.__module__) for kind in kinds if not _is_mindspores(kind)}
    return any(_names_mode(part) for part in (*files, *filter(_is_mindspores, kinds)))


def _is_mindspores(kind: type) -> bool:
    return kind.__module__.startswith("mindspore.")


def _names_mode(part: Any) -> bool:
    """Whether the code of a class or a module names a cell's mode; its docstrings may."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(part)))
    except (OSError, TypeError, SyntaxError):
        return True
    names = {
        getattr(node, "attr", getattr(node, "value", None))
        for node in ast.walk(tree)
        if isinstance(node, (ast.Attribute, ast.Constant))
    }
    return not names.isdisjoint(("training", "phase", "set_train"))


class _Stepper:
    """A training step of one way: compiled at its first call, kept for the further ones."""

    def __init__(
        self,
        port: StaticGraphPort,
        way: str,
        names: list[str],
        weights: list[Any],
        optimizer: Any,
        schedulers: Sequence[Any] = (),
    ) -> None:
        self._port, self._way = port, way
        self._names, self._weights, self._optimizer = names, weights, optimizer
        self._schedulers = schedulers
        self._run: Callable[..., Any] | None = None

    def __call__(self, inputs: dict[str, TensorValue], targets: list[TensorValue]) -> Tensors:
        arguments = self._port.arguments(inputs)
        given = CallText(with_tensors(list(targets), from_value), letter="y")
        if self._run is None:
            self._run = self._make(arguments, given)
        loss, outputs, gradients = self._run(*arguments.tensors, *given.tensors)
        with self._eagerly():
            for scheduler in self._schedulers:  # between the steps of a loop, in plain Python
                scheduler.step()
        results: Tensors = {TensorKey.output(i): to_value(t) for i, t in enumerate(outputs)}
        results["loss"] = to_value(loss)
        for name, gradient in zip(self._names, gradients, strict=True):
            results[TensorKey.parameter(name).gradient] = to_value(gradient)
        return results

    def _make(self, arguments: CallText, targets: CallText) -> Callable[..., Any]:
        port = self._port
        assert port._spec is not None
        assert port._spec.loss is not None
        paths = self._paths(arguments)
        listed = ", ".join(arguments.names + targets.names)
        further = f", {targets.text}" if targets.text else ""
        text = (
            f"def forward({listed}):\n"
            f"    output = NET({arguments.text})\n"
            f"    return LOSS(output{further}), ({''.join(f'{p}, ' for p in paths)})\n"
        )
        loss = load_callable(port._spec.loss, port._spec.folder, "[port] loss")
        space = {"NET": port._model, "LOSS": loss, **arguments.space, **targets.space}
        forward = port._texts.function(text, "forward", space)
        differentiated = ms.value_and_grad(forward, None, self._weights, has_aux=True)
        space = {"GRAD": differentiated, "OPT": self._optimizer}
        has_optimizer = self._optimizer is not None
        inside = has_optimizer and self._is_compiled_with_it()
        text = (
            f"def step({listed}):\n"
            f"    (loss, outputs), gradients = GRAD({listed})\n"
            + ("    OPT(gradients)\n" if inside else "")
            + "    return loss, outputs, gradients\n"
        )
        step = port.compiled(self._way, port._texts.function(text, "step", space))
        if not has_optimizer or inside:
            return step

        def with_update(*given: Any) -> Any:
            found = step(*given)
            stepper = self._optimizer if callable(self._optimizer) else self._optimizer.step
            with self._eagerly():
                stepper(tuple(found[2]))
            return found

        return with_update

    def _eagerly(self) -> contextlib.AbstractContextManager[None]:
        """The mode of what stands outside of the compiled step."""
        return self._port.in_way(EAGER if self._way == GRAPH else self._way)

    def _is_compiled_with_it(self) -> bool:
        """Whether the optimizer is compiled: a cell, and in GRAPH_MODE the user's own.

        There it is a graph apart, of MindSpore's code alone, which `jit` has compiled in the step.
        """
        if self._way == GRAPH and type(self._optimizer).__module__.startswith("mindspore."):
            return False
        return isinstance(self._optimizer, nn.Cell)

    def _paths(self, arguments: CallText) -> list[str]:
        """Where the tensors of the output are; found by an eager run that leaves no trace."""
        port = self._port
        mode = "train" if port._model.training else "eval"
        with port._restoring(mode), port.in_way(EAGER):
            tensors = dict(zip(arguments.names, arguments.tensors, strict=True))
            space = {"NET": port._model, **arguments.space, **tensors}
            output = eval(f"NET({arguments.text})", space)  # noqa: S307 - isograd's own text
        return paths_of(output, "output")
