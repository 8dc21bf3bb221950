"""Watches a torch training through the framework's own classes; nothing is known by name.

Calls of modules, the backward pass, the optimizers' steps and the scaler are seen where torch
itself passes through them, for this process and until `detach`.  Per step that is well, the cost is
one norm of all gradients; see `torch_calls` for what is kept, and `torch_replay` for what is done
with it when a value is not finite.
"""

from __future__ import annotations

import dataclasses
import importlib
import math
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import torch  # noqa: TID253  # this module is loaded only for a torch training

from isograd.watch.frames import user_line
from isograd.watch.observation import Look, Network, ScaleFacts, StepRecord
from isograd.watch.session import Session
from isograd.watch.torch_batch import BatchWatch, label_outside
from isograd.watch.torch_calls import (
    MOST_CALLS,
    GlueMode,
    NetworkCall,
    begin_call,
    uses_cuda,
)
from isograd.watch.torch_lane import (
    Lane,
    StepState,
    are_untouched,
    gradient_norms,
    largest_gradient,
    marks_of,
)
from isograd.watch.torch_looks import TorchLook, state_largest
from isograd.watch.torch_unheld import Unheld


class TorchWatcher:
    """The adapter of torch."""

    def __init__(self, session: Session, model: Any, optimizers: tuple[Any, ...]) -> None:
        """model: names its modules; None where modules are taken as they are called.

        optimizers: those to watch; all that step where none is given.
        """
        self._session = session
        self._names: dict[int, str] = {}
        self._parameter_names: dict[int, str] = {}
        self._roots: list[torch.nn.Module] = []
        self._chosen = {id(optimizer) for optimizer in optimizers}
        self._lanes: dict[int, Lane] = {}
        self._calls: list[NetworkCall] = []
        self._glue = GlueMode(self._before_function)
        self._batch = BatchWatch()
        self._losses: list[torch.Tensor] = []
        self._scaled: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._scaler: Any = None
        self._outside: tuple[int, int] | None = None
        self._depth = 0
        self._old_calls = 0
        self._look: TorchLook | None = None
        self._unheld = Unheld()
        self._undo: list[Callable[[], None]] = []
        self._in_scaler = False
        if model is not None:
            self._add_root(model, "")

    # ---- attach and detach

    def attach(self) -> None:
        """Begin to watch."""
        device = "cuda" if uses_cuda() else "cpu"
        self._session.describe(
            framework="torch",
            device=device,
            versions={"torch": str(torch.__version__)},
            seeds={"torch": torch.initial_seed()},
        )
        self._replace(torch.nn.Module, "__call__", self._module_call)
        self._replace(torch.autograd, "backward", self._backward)
        self._replace(torch.optim.Optimizer, "zero_grad", self._zero_grad)
        self._replace(torch.amp.GradScaler, "scale", self._scale)
        self._replace(torch.amp.GradScaler, "step", self._scaler_step)
        self._replace(torch.optim.lr_scheduler.LRScheduler, "step", self._schedule_step)
        hooks = importlib.import_module("torch.optim.optimizer")
        for handle in (
            hooks.register_optimizer_step_pre_hook(self._before_step),
            hooks.register_optimizer_step_post_hook(self._after_step),
        ):
            self._undo.append(handle.remove)
        self._glue.show()
        self._look = TorchLook(self._names) if self._session.is_look_due(0) else None

    def detach(self, error: BaseException | None) -> None:
        """Undo everything; a step that an error ended is judged as far as it came."""
        if self._outside is not None and error is not None and self._lanes:
            lane = next(iter(self._lanes.values()))
            self._judge_broken_step(lane)
        elif self._outside is not None and error is not None:
            self._judge_broken_step(None)
        self._glue.hide()
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()
        self._forget()

    def _replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        original = getattr(owner, name)
        setattr(owner, name, make(original))
        self._undo.append(lambda: setattr(owner, name, original))

    def _judge_broken_step(self, lane: Lane | None) -> None:
        if lane is None:
            empty = Network((), np.empty(0, np.int64), np.empty(0, bool), np.empty(0, bool))
            number, step = self._session.add_network(empty), 0
        else:
            number, step = lane.number, lane.step
        batch = self._batch.facts(self._calls, self._outside, number)
        self._session.record(number, StepRecord(step, batch=batch))

    # ---- modules

    def _module_call(self, original: Any) -> Any:
        watcher = self

        def call(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling():
                return original(module, *args, **kwargs)
            if watcher._depth == 0:
                return watcher._outermost(original, module, args, kwargs)
            if watcher._look is None:
                return original(module, *args, **kwargs)
            return watcher._looked(original, module, args, kwargs)

        return call

    def _outermost(
        self,
        original: Any,
        module: torch.nn.Module,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        if not torch.is_grad_enabled() or not any(p.requires_grad for p in module.parameters()):
            before, self._glue.module = self._glue.module, type(module).__name__
            try:
                return original(module, *args, **kwargs)
            finally:
                self._glue.module = before
        is_popped = self._glue.hide()
        if id(module) not in self._names:
            self._add_root(module, type(module).__name__ if self._roots else "")
        found = begin_call(module, self._names[id(module)], args, kwargs)
        self._depth += 1
        try:
            output = self._looked(original, module, args, kwargs)
        finally:
            self._depth -= 1
            if is_popped:
                self._glue.show()
        found.keep_outputs(output)
        self._calls.append(found)
        self._glue.calls = len(self._calls)
        if len(self._calls) > MOST_CALLS:
            self._forget(len(self._calls) - MOST_CALLS)
        return output

    def _looked(self, original: Any, module: Any, args: Any, kwargs: Any) -> Any:
        look = self._look
        if look is None:
            return original(module, *args, **kwargs)
        look.before_module(module)
        output = original(module, *args, **kwargs)
        with torch.no_grad():
            look.after_module(module, args, output)
        return output

    def _add_root(self, module: torch.nn.Module, prefix: str) -> None:
        inner = getattr(module, "_orig_mod", None)
        if isinstance(inner, torch.nn.Module):
            self._names.setdefault(id(module), prefix)
            module = inner
        self._roots.append(module)
        for name, part in module.named_modules():
            self._names.setdefault(id(part), _joined(prefix, name))
        for name, parameter in module.named_parameters():
            self._parameter_names.setdefault(id(parameter), _joined(prefix, name))

    def _before_function(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        outside = label_outside(name, args, kwargs)
        if outside is not None:
            self._outside = outside

    # ---- the backward pass

    def _backward(self, original: Any) -> Any:
        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            roots = tensors if isinstance(tensors, (tuple, list)) else (tensors,)
            self._losses = [t for t in roots if isinstance(t, torch.Tensor)]
            lanes = list(self._lanes.values())
            with self._glue.hidden():
                untouched = [are_untouched(lane.marks) for lane in lanes]
                found = original(tensors, *args, **kwargs)
                for lane, was_untouched in zip(lanes, untouched, strict=True):
                    self._have_gradients(lane, was_untouched)
            return found

        return backward

    def _have_gradients(self, lane: Lane, was_untouched: bool) -> None:
        """A backward pass has ended; another optimizer's gradients are not touched by it."""
        if not are_untouched(lane.marks):
            lane.is_accumulated = lane.is_used and was_untouched
            lane.is_used = lane.is_accumulated
            lane.backward_count += 1
            lane.marks = marks_of(lane.parameters)
        if lane.closures is not None:
            lane.closures += 1
            self._judge_gradients(lane)

    def _judge_gradients(self, lane: Lane) -> None:
        """Before the weights change: the record of the step, and the origin of what is bad."""
        lane.record = self._record(lane, None)
        with torch.no_grad():
            self._find_origin(lane, lane.record)
            if self._look is not None:
                self._look.before_update(lane.parameters)

    def _zero_grad(self, original: Any) -> Any:
        """Under a mode each of the many small accesses would pass through Python."""

        def zero_grad(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            with self._glue.hidden():
                original(optimizer, *args, **kwargs)

        return zero_grad

    def _loss(self) -> torch.Tensor | None:
        """The tensor that the last backward pass began with, without a scaler's factor."""
        if not self._losses:
            return None
        loss = self._losses[-1]
        scaled = self._scaled.get(id(loss))
        found = scaled[1] if scaled is not None and scaled[0] is loss else loss
        return found.detach() if found.numel() == 1 else None

    # ---- the optimizer's step

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        lane = self._lane(optimizer)
        if lane is None:
            return
        lane.where = user_line(2)
        if _has_closure(args, kwargs):
            # The passes come within the step, as Lightning has it: the gradients are judged there.
            lane.closures = 0
            return
        self._glue.pause()
        lane.is_repeated = lane.step > 0 and lane.backward_count == 0
        self._judge_gradients(lane)

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        lane = self._lane(optimizer)
        if lane is None:
            return
        self._glue.pause()
        record, lane.record = lane.record or self._record(lane, None), None
        closures, lane.closures = lane.closures, None
        look: Look | None = None
        # Of several passes within a step each changes weights.
        if self._look is not None and closures in (None, 1):
            with torch.no_grad():
                largest = state_largest(optimizer)
                look = self._look.after_update(lane.parameters, lane.network, largest)
                if lane.number == 0:
                    held = {id(p) for one in self._lanes.values() for p in one.parameters}
                    unheld = self._unheld.unchanged(self._roots, self._parameter_names, held)
                    look = dataclasses.replace(look, unheld=unheld)
        self._finish(lane, record, look)

    def _finish(self, lane: Lane, record: StepRecord, look: Look | None) -> None:
        lane.marks = marks_of(lane.parameters)
        lane.backward_count, lane.is_accumulated, lane.is_used = 0, False, True
        lane.step += 1
        if lane.number == 0:
            # With several optimizers a network's call may serve the update of another one.
            self._forget(self._old_calls if len(self._lanes) > 1 else None)
            self._old_calls = len(self._calls)
            due = self._session.is_look_due(lane.step)
            self._look = TorchLook(self._names) if due else None
        self._glue.resume()
        self._session.record(lane.number, dataclasses.replace(record, look=look))

    def _record(self, lane: Lane, scale: ScaleFacts | None) -> StepRecord:
        norms, absent, loss = gradient_norms(lane.parameters, self._loss())
        bad = ~np.isfinite(norms) & ~absent
        schedule = lane.schedule() if lane.schedule is not None else None
        expected = getattr(schedule, "_last_lr", None) or ()
        return StepRecord(
            step=lane.step,
            loss=loss,
            learning_rates=tuple(float(g["lr"]) for g in lane.optimizer.param_groups),
            expected_rates=tuple(float(rate) for rate in expected),
            gradient_norms=np.where(bad | absent, np.nan, norms),
            gradient_absent=absent,
            gradient_nonfinite=bad,
            is_accumulated=lane.is_accumulated,
            is_repeated=lane.is_repeated,
            batch=self._batch.facts(self._calls, self._outside, lane.number),
            scale=scale or self._scale_facts(lane, norms, False),
        )

    def _lane(self, optimizer: Any) -> Lane | None:
        if self._chosen and id(optimizer) not in self._chosen:
            return None
        lane = self._lanes.get(id(optimizer))
        if lane is None and self._roots:
            lane = self._new_lane(optimizer)
            self._lanes[id(optimizer)] = lane
        return lane

    def _new_lane(self, optimizer: torch.optim.Optimizer) -> Lane:
        pairs = [(p, g) for g in optimizer.param_groups for p in g["params"]]
        order = {key: at for at, key in enumerate(self._parameter_names)}
        pairs.sort(key=lambda pair: order.get(id(pair[0]), len(order)))
        parameters = [parameter for parameter, _ in pairs]
        network = Network(
            tuple(
                self._parameter_names.get(id(p), f"parameter_{at}")
                for at, p in enumerate(parameters)
            ),
            np.array([p.ndim for p in parameters], dtype=np.int64),
            np.array([p.requires_grad for p in parameters], dtype=bool),
            np.array([bool(g.get("weight_decay")) for _, g in pairs], dtype=bool),
        )
        return Lane(optimizer, parameters, network, self._session.add_network(network))

    def _find_origin(self, lane: Lane, record: StepRecord) -> None:
        bad_loss = record.loss is not None and not math.isfinite(record.loss)
        assert record.gradient_nonfinite is not None
        bad = bad_loss or bool(record.gradient_nonfinite.any())
        if bad and self._session.wants_origin:
            from isograd.watch.torch_replay import find_origin

            self._session.origin(find_origin(self.step_state(lane, bad_loss)))

    def step_state(self, lane: Lane, is_loss_bad: bool) -> StepState:
        """What is kept of the step that is going on."""
        return StepState(
            lane.step,
            lane.network.parameters,
            lane.parameters,
            type(lane.optimizer).__name__,
            lane.where,
            self._calls,
            list(self._glue.operators),
            self._losses,
            is_loss_bad,
            self._names,
        )

    # ---- the scaler

    def _scale(self, original: Any) -> Any:
        def scale(scaler: Any, outputs: Any) -> Any:
            found = original(scaler, outputs)
            if isinstance(outputs, torch.Tensor):
                self._scaled = {id(found): (found, outputs)}
            return found

        return scale

    def _scaler_step(self, original: Any) -> Any:
        def step(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            if not scaler.is_enabled():
                return original(scaler, optimizer, *args, **kwargs)
            lane = self._lane(optimizer)
            before = -1 if lane is None else lane.step
            self._scaler = scaler
            self._glue.pause()
            try:
                found = original(scaler, optimizer, *args, **kwargs)
                if lane is not None and lane.step == before:
                    self._skipped(lane)
            finally:
                self._scaler = None
                self._glue.resume()
            return found

        return step

    def _skipped(self, lane: Lane) -> None:
        lane.where = user_line(3)
        record = self._record(lane, None)
        assert record.gradient_nonfinite is not None
        assert record.gradient_norms is not None
        norms = np.where(record.gradient_nonfinite, np.inf, record.gradient_norms)
        facts = self._scale_facts(lane, norms, True)
        record = dataclasses.replace(record, scale=facts)
        is_loss_bad = record.loss is not None and not math.isfinite(record.loss)
        if self._session.wants_origin and (is_loss_bad or self._is_genuine(lane)):
            from isograd.watch.torch_replay import find_origin

            with torch.no_grad():
                self._session.origin(find_origin(self.step_state(lane, is_loss_bad)))
        look = None if self._look is None else self._look.without_update(lane.network)
        self._finish(lane, record, look)

    def _is_genuine(self, lane: Lane) -> bool:
        """Whether the overflow stays at a scale at which none can come from the scale."""
        from isograd.watch.torch_replay import overflows_without_scale

        scale = float(self._scaler.get_scale())
        with torch.no_grad():
            return overflows_without_scale(self.step_state(lane, False), scale)

    def _scale_facts(self, lane: Lane, norms: Any, is_overflow: bool) -> ScaleFacts | None:
        if self._scaler is None:
            return None
        scale = float(self._scaler.get_scale())
        is_dynamic = self._scaler.get_growth_factor() > 1.001
        first: tuple[str, ...] = ()
        if is_overflow:
            first = tuple(
                name
                for name, norm in zip(lane.network.parameters, norms, strict=True)
                if math.isinf(norm)
            )
        exponent = None
        if self._look is not None and not is_overflow:
            largest = largest_gradient(lane.parameters)
            exponent = math.frexp(largest * scale)[1] if 0.0 < largest < math.inf else None
        return ScaleFacts(scale, is_overflow, is_dynamic, exponent, None, first)

    def _schedule_step(self, original: Any) -> Any:
        def step(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            found = original(scheduler, *args, **kwargs)
            lane = self._lanes.get(id(getattr(scheduler, "optimizer", None)))
            if lane is not None:
                lane.schedule = weakref.ref(scheduler)
            return found

        return step

    def _forget(self, calls: int | None = None) -> None:
        """Let go of the step, or of its first calls only."""
        self._glue.forget(calls)
        del self._calls[:calls]
        if calls is not None:
            self._old_calls = max(0, self._old_calls - calls)
            return
        self._old_calls = 0
        self._losses = []
        self._scaled = {}
        self._outside = None


def _has_closure(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether `step(closure)` was called; a hook's first argument is the optimizer itself."""
    return any(callable(value) for value in (*args[1:], *kwargs.values()))


def _joined(prefix: str, name: str) -> str:
    return ".".join(part for part in (prefix, name) if part)
