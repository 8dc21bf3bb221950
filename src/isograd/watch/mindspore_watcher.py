"""Watches a MindSpore training, eager or compiled, through the framework's own classes.

Eager: the gradients are seen when the optimizer is called, before it changes the weights, so that a
step whose values are not finite can be replayed as it was.  Compiled: only what a step returns and
the weights are seen; a copy of the weights is kept from before each step, which the replay gets.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mindspore  # noqa: TID253  # this module is loaded only for a MindSpore training
import numpy as np

from isograd.recording.mindspore_optimizers import (
    is_optimizer,
    optimizer_classes,
    optimizers_in_sight,
    parameters_of,
)
from isograd.recording.mindspore_reach import captured, is_cell, jit_executor_class
from isograd.watch.frames import user_line
from isograd.watch.mindspore_batch import BatchWatch
from isograd.watch.mindspore_calls import (
    ForwardCall,
    Replacements,
    executor_class,
    is_tensor,
    numbers_of,
    parameter_paths,
    scalar_of,
)
from isograd.watch.mindspore_looks import MindSporeLook, rates_of, state_largest
from isograd.watch.mindspore_values import as_gradients, decayed, gradient_norms, scale_of
from isograd.watch.mindspore_weights import WeightCopies
from isograd.watch.observation import Network, ScaleFacts, StepRecord
from isograd.watch.session import Session

#: After so many gradients no other class of optimizers is looked for.
_SEARCHES = 8


@dataclass
class Lane:
    """One optimizer and the steps that it has made."""

    optimizer: Any
    parameters: list[Any]
    network: Network
    number: int
    step: int = 0
    where: str = ""


class MindSporeWatcher:
    """The adapter of MindSpore."""

    def __init__(
        self, session: Session, model: Any, optimizers: tuple[Any, ...], scaler: Any
    ) -> None:
        """model: names its cells; None where cells are taken as they are found."""
        self._session = session
        self._model = model
        self._chosen = {id(optimizer) for optimizer in optimizers}
        self._given = optimizers
        self._scaler = scaler
        self._paths: dict[int, str] = {}
        self._names: dict[int, str] = {}
        self._lanes: dict[int, Lane] = {}
        self._replacements = Replacements()
        self._call_replacements = Replacements()
        self._calls: list[ForwardCall] = []
        self._depth = 0
        self._compiled_depth = 0
        self._is_in_optimizer = False
        self._kinds = dict.fromkeys(optimizer_classes())
        self._searches_left = _SEARCHES
        self._gradients: Any = None
        self._scale_value: float | None = None
        self._raw_loss: Any = None
        self._batch = BatchWatch()
        self._look: MindSporeLook | None = None
        self._copies = WeightCopies()
        if model is not None:
            self._add_root(model, "")

    # ---- attach and detach

    def attach(self) -> None:
        """Begin to watch."""
        seed = mindspore.get_seed()
        self._session.describe(
            framework="mindspore",
            device=str(mindspore.get_context("device_target")),
            versions={"mindspore": str(mindspore.__version__)},
            seeds={} if seed is None else {"mindspore": int(seed)},
        )
        replace = self._replacements.replace
        executor = executor_class()
        replace(executor, "new_graph", self._new_graph)
        replace(executor, "end_graph", self._end_graph)
        replace(executor, "grad", self._grad)
        replace(jit_executor_class(), "__call__", self._jit_call)
        replace(mindspore.nn.Cell, "compile_and_run", self._compiled_cell)
        self._replace_calls()
        for scaler in (mindspore.amp.DynamicLossScaler, mindspore.amp.StaticLossScaler):
            replace(scaler, "scale", self._scale)
            replace(scaler, "adjust", self._adjust)
        self._next_look(0)

    def detach(self, error: BaseException | None) -> None:
        """Undo everything."""
        if error is None:
            self._emit_skipped()
        self._call_replacements.undo()
        self._replacements.undo()
        self._calls.clear()
        self._gradients = None
        self._copies.forget()

    def _add_root(self, cell: Any, prefix: str) -> None:
        for name, part in cell.cells_and_names():
            self._names.setdefault(id(part), ".".join(p for p in (prefix, name) if p))
        for key, path in parameter_paths(cell, prefix).items():
            self._paths.setdefault(key, path)

    # ---- eager: forward and backward

    def _new_graph(self, original: Any) -> Any:
        def new_graph(executor: Any, obj: Any, *args: Any, **kwargs: Any) -> Any:
            if self._depth == 0 and not self._is_in_optimizer:
                self._emit_skipped()
                where, state = user_line(2), mindspore.get_rng_state()
                self._calls.append(ForwardCall(obj, args, kwargs, where, state))
                del self._calls[:-4]
            self._depth += 1
            return original(executor, obj, *args, **kwargs)

        return new_graph

    def _end_graph(self, original: Any) -> Any:
        def end_graph(executor: Any, obj: Any, output: Any, *args: Any, **kwargs: Any) -> Any:
            self._depth = max(0, self._depth - 1)
            if self._depth == 0 and self._calls and self._calls[-1].function is obj:
                self._calls[-1].output = output
            return original(executor, obj, output, *args, **kwargs)

        return end_graph

    def _grad(self, original: Any) -> Any:
        def grad(
            executor: Any,
            obj: Any,
            grad_: Any,
            weights: Any,
            position: Any,
            has_aux: Any,
            *args: Any,
        ) -> Any:
            found = original(executor, obj, grad_, weights, position, has_aux, *args)
            if self._calls and self._calls[-1].function is obj:
                self._calls[-1].weights = weights
                self._calls[-1].has_aux = bool(has_aux)
                self._gradients = found
            self._depth = 0
            if self._searches_left:
                self._searches_left -= 1
                self._meet_optimizers()
            return found

        return grad

    def _meet_optimizers(self) -> None:
        """See the steps of optimizers that are not MindSpore's, if the functions hold one."""
        found = {type(one) for one in optimizers_in_sight(sys._getframe(2))}
        new = [kind for kind in found if not issubclass(kind, tuple(self._kinds))]
        if new:
            self._kinds.update(dict.fromkeys(new))
            self._replace_calls()

    # ---- the optimizer

    def _optimizer_call(self, original: Any) -> Any:
        def call(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            if self._compiled_depth or self._is_in_optimizer:
                return original(optimizer, *args, **kwargs)
            lane = self._lane(optimizer)
            gradients = as_gradients(args[0] if args else None)
            if lane is None or gradients is None or len(gradients) != len(lane.parameters):
                return original(optimizer, *args, **kwargs)
            return self._update(lane, gradients, lambda: original(optimizer, *args, **kwargs))

        return call

    def _optimizer_step(self, original: Any) -> Any:
        """For optimizers as torch has them: the parameters hold their gradients."""

        def step(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            is_watched = not self._compiled_depth and not self._is_in_optimizer
            lane = self._lane(optimizer) if is_watched else None
            parameters = [] if lane is None else lane.parameters
            gradients = [getattr(parameter, "grad", None) for parameter in parameters]
            if lane is None or all(gradient is None for gradient in gradients):
                return original(optimizer, *args, **kwargs)
            return self._update(lane, gradients, lambda: original(optimizer, *args, **kwargs))

        return step

    def _update(self, lane: Lane, gradients: list[Any], act: Callable[[], Any]) -> Any:
        """Record a step around the update itself."""
        lane.where, self._is_in_optimizer = user_line(3), True
        try:
            record = self._record(lane, gradients)
            self._find_origin(lane, record)
            if self._look is not None:
                self._look.before_update(lane.parameters, gradients)
            found = act()
            look = None
            if self._look is not None:
                largest = state_largest(lane.optimizer)
                look = self._look.after_update(lane.parameters, lane.network, largest)
        finally:
            self._is_in_optimizer = False
        self._finish(lane, dataclasses.replace(record, look=look))
        return found

    def _lane(self, optimizer: Any) -> Lane | None:
        if self._chosen and id(optimizer) not in self._chosen:
            return None
        lane = self._lanes.get(id(optimizer))
        if lane is None:
            self._find_roots()
            lane = self._lanes[id(optimizer)] = self._new_lane(optimizer)
        return lane

    def _find_roots(self) -> None:
        """Cells that the differentiated functions reach name what no given model has named."""
        if self._model is not None:
            return
        for call in self._calls:
            for cell in captured(call.function, is_cell):
                is_network = bool(cell.trainable_params()) and not is_optimizer(cell)
                if is_network and id(cell) not in self._names:
                    self._add_root(cell, "" if not self._names else type(cell).__name__)

    def _new_lane(self, optimizer: Any) -> Lane:
        parameters = parameters_of(optimizer)
        names = tuple(self._paths.get(id(p), str(p.name)) for p in parameters)
        network = Network(
            names,
            np.array([p.ndim for p in parameters], dtype=np.int64),
            np.array([bool(p.requires_grad) for p in parameters], dtype=bool),
            decayed(optimizer, parameters),
        )
        return Lane(optimizer, parameters, network, self._session.add_network(network))

    def _record(self, lane: Lane, gradients: Any, scale: ScaleFacts | None = None) -> StepRecord:
        norms, bad = gradient_norms(gradients)
        absent = np.array([gradient is None for gradient in gradients], dtype=bool)
        return StepRecord(
            step=lane.step,
            loss=self._loss(),
            learning_rates=rates_of(lane.optimizer),
            gradient_norms=norms,
            gradient_absent=absent,
            gradient_nonfinite=bad,
            is_repeated=lane.step > 0 and not self._calls and self._gradients is None,
            batch=self._batch.facts([(c.args, c.kwargs) for c in self._calls], lane.number),
            scale=scale or self._scale_facts(gradients),
        )

    def _loss(self) -> float | None:
        """The loss of the last call, without a scaler's factor."""
        if not self._calls:
            return None
        return scalar_of(self._calls[-1].output if self._raw_loss is None else self._raw_loss)

    def _finish(self, lane: Lane, record: StepRecord) -> None:
        lane.step += 1
        self._calls.clear()
        self._gradients = None
        self._scale_value = self._raw_loss = None
        if lane.number == 0:
            self._next_look(lane.step)
        self._session.record(lane.number, record)

    def _next_look(self, step: int) -> None:
        had_look, is_due = self._look is not None, self._session.is_look_due(step)
        self._look = MindSporeLook(self._names) if is_due else None
        if had_look or is_due:
            self._replace_calls()

    def _replace_calls(self) -> None:
        """See calls of optimizers, and of all cells at a look.

        MindSpore's compiler reads `__call__` of the cells that it compiles, so that these are put
        back while it may run.
        """
        self._call_replacements.undo()
        for kind in self._kinds:
            if issubclass(kind, mindspore.nn.Cell):
                self._call_replacements.replace(kind, "__call__", self._optimizer_call)
            else:
                self._call_replacements.replace(kind, "step", self._optimizer_step)
        if self._look is not None:
            self._call_replacements.replace(mindspore.nn.Cell, "__call__", self._look.cell_call)

    # ---- loss scale

    def _scale(self, original: Any) -> Any:
        def scale(scaler: Any, inputs: Any) -> Any:
            self._scaler = scaler
            if is_tensor(inputs) and not self._compiled_depth:
                self._scale_value, self._raw_loss = scale_of(scaler), inputs
            return original(scaler, inputs)

        return scale

    def _adjust(self, original: Any) -> Any:
        def adjust(scaler: Any, grads_finite: Any) -> Any:
            self._emit_skipped()
            return original(scaler, grads_finite)

        return adjust

    def _scale_facts(self, gradients: Any) -> ScaleFacts | None:
        scale = self._scale_value or scale_of(self._scaler)
        if scale is None:
            return None
        is_dynamic = "Dynamic" in type(self._scaler).__name__
        exponent = None
        if self._look is not None:
            held = [gradient for gradient in gradients if gradient is not None]
            arrays = [a for g in held if (a := numbers_of(g)) is not None and a.size]
            largest = max((float(np.abs(a).max()) for a in arrays), default=0.0) * scale
            exponent = math.frexp(largest)[1] if 0.0 < largest < math.inf else None
        return ScaleFacts(scale, False, is_dynamic, exponent)

    def _emit_skipped(self) -> None:
        """A backward pass whose gradients no optimizer got, because they were not finite."""
        if self._gradients is None or not self._lanes:
            return
        lane = next(iter(self._lanes.values()))
        gradients = as_gradients(self._gradients)
        if gradients is None or len(gradients) != len(lane.parameters):
            return
        _, bad = gradient_norms(gradients)
        if not bad.any():
            return
        scale = self._scale_value or scale_of(self._scaler)
        names = tuple(n for n, is_bad in zip(lane.network.parameters, bad, strict=True) if is_bad)
        is_dynamic = "Dynamic" in type(self._scaler).__name__
        facts = ScaleFacts(scale or 1.0, True, is_dynamic, None, None, names)
        record = self._record(lane, gradients, facts if scale else None)
        self._find_origin(lane, record)
        look = None if self._look is None else self._look.without_update()
        self._finish(lane, dataclasses.replace(record, look=look))

    # ---- the origin

    def _find_origin(self, lane: Lane, record: StepRecord) -> None:
        bad_loss = record.loss is not None and not math.isfinite(record.loss)
        assert record.gradient_nonfinite is not None
        if not (bad_loss or record.gradient_nonfinite.any()) or not self._session.wants_origin:
            return
        from isograd.watch.mindspore_replay import find_origin

        scale = self._scale_value if record.is_skipped else None
        self._replacements_paused(lambda: self._replay(find_origin, lane, bad_loss, scale))

    def _replay(self, find_origin: Any, lane: Lane, bad_loss: bool, scale: float | None) -> None:
        origin = find_origin(
            lane.step,
            lane.network.parameters,
            lane.parameters,
            type(lane.optimizer).__name__,
            lane.where,
            self._calls,
            self._names,
            bad_loss,
            scale,
        )
        if origin is not None:
            self._session.origin(origin)

    def _replacements_paused(self, act: Any) -> None:
        """Run something that this watcher must not take for the training's."""
        depth, self._compiled_depth = self._compiled_depth, 1
        calls, gradients = self._calls, self._gradients
        in_optimizer, self._is_in_optimizer = self._is_in_optimizer, True
        self._call_replacements.undo()
        try:
            act()
        finally:
            self._compiled_depth, self._calls, self._gradients = depth, calls, gradients
            self._is_in_optimizer, self._depth = in_optimizer, 0
            self._replace_calls()

    # ---- compiled

    def _jit_call(self, original: Any) -> Any:
        def call(executor: Any, *args: Any, **kwargs: Any) -> Any:
            return self._compiled(
                executor.fn, args, kwargs, lambda: original(executor, *args, **kwargs)
            )

        return call

    def _compiled_cell(self, original: Any) -> Any:
        def compile_and_run(cell: Any, *args: Any, **kwargs: Any) -> Any:
            return self._compiled(cell, args, kwargs, lambda: original(cell, *args, **kwargs))

        return compile_and_run

    def _compiled(self, function: Any, args: Any, kwargs: Any, run: Any) -> Any:
        if self._compiled_depth or self._is_in_optimizer:
            return run()
        self._call_replacements.undo()
        try:
            return self._compiled_alone(function, args, kwargs, run)
        finally:
            self._replace_calls()

    def _compiled_alone(self, function: Any, args: Any, kwargs: Any, run: Any) -> Any:
        owner = args[0] if args and isinstance(args[0], mindspore.nn.Cell) else function
        lane = self._lane_of_compiled(owner, function)
        if lane is None:
            return run()
        before = self._copies.keep(lane.optimizer)
        call = ForwardCall(function, args, kwargs, user_line(3), mindspore.get_rng_state())
        call.is_compiled = True
        self._compiled_depth += 1
        try:
            rates = rates_of(lane.optimizer)  # behind the step those of the next one are read
            call.output = run()
        finally:
            self._compiled_depth -= 1
        if self._copies.has_stepped(lane.optimizer):
            self._compiled_step(lane, call, before, rates)
        return call.output

    def _lane_of_compiled(self, owner: Any, function: Any) -> Lane | None:
        for candidate in (owner, function):
            for optimizer in captured(candidate, is_optimizer):
                self._calls = [ForwardCall(candidate, (), {}, "", None)]
                lane = self._lane(optimizer)
                self._calls.clear()
                if lane is not None:
                    return lane
        return self._lane(self._given[0]) if self._given else None

    def _compiled_step(self, lane: Lane, call: ForwardCall, before: Any, rates: Any) -> None:
        lane.where = call.where
        loss = scalar_of(call.output)
        is_finite = self._copies.are_finite(lane.parameters)
        is_skipped = self._copies.were_unchanged
        scale = scale_of(self._scaler)
        facts = None
        if scale is not None:
            is_dynamic = "Dynamic" in type(self._scaler).__name__
            facts = ScaleFacts(scale, is_skipped, is_dynamic)
        record = StepRecord(
            step=lane.step,
            loss=loss,
            learning_rates=rates,
            batch=self._batch.facts([(_without_cells(call.args), call.kwargs)]),
            scale=facts,
        )
        bad_loss = loss is not None and not math.isfinite(loss)
        if (bad_loss or not is_finite) and self._session.wants_origin:
            from isograd.watch.mindspore_replay import find_compiled_origin

            self._replacements_paused(
                lambda: self._session.origin(
                    find_compiled_origin(
                        lane.step,
                        lane.network.parameters,
                        lane.parameters,
                        lane.optimizer,
                        call,
                        before,
                        self._names,
                    )
                )
            )
        look = None
        seen = MindSporeLook(self._names) if self._look is None and not is_finite else self._look
        if seen is not None:
            look = seen.of_compiled(lane.parameters, before.weights, lane.network)
        self._finish(lane, dataclasses.replace(record, look=look))


def _without_cells(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(a for a in args if not isinstance(a, mindspore.nn.Cell))
