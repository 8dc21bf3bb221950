"""Replays a MindSpore step whose values are not finite, and finds the operator that made the first.

The differentiated function is called again, eagerly, with what it was given: operators are seen by
a dispatch mode, gradients by hooks on the operators' inputs.  A compiled step is called as plain
Python with the weights that it had; afterwards all weights and states are what they were.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

import mindspore  # noqa: TID253  # this module is loaded only for a MindSpore training

from isograd import tree
from isograd.watch.mindspore_calls import ForwardCall, floating, is_floating, is_tensor
from isograd.watch.mindspore_observer import Observer, facts, kind_of_tensor
from isograd.watch.mindspore_weights import Kept, put_back
from isograd.watch.origin import Origin, Phase, trace_back

_RANDOM = (
    "the replay did not reproduce it: the step draws random numbers that cannot be set "
    "(nn.Dropout on a CPU), keeps state of its own, or communicates"
)
_COMPUTED_BEFORE = (
    "the loss was recorded before it was differentiated, so that nothing can run again. Compute it "
    "in a function that mindspore.value_and_grad takes, or convert without --eager"
)


def find_origin(
    step: int,
    names: Sequence[str],
    parameters: list[Any],
    optimizer: str,
    where: str,
    calls: list[ForwardCall],
    modules: dict[int, str],
    is_loss_bad: bool,
    scale: float | None,
) -> Origin | None:
    """Where the first value arose that is not finite; None for an overflow that is the scale's.

    scale: of the loss, where the update was left out; the replay then runs without it.
    """
    found = _weights(step, names, parameters, optimizer, where)
    found = found or next((f for call in calls if (f := _data(step, call))), None)
    if found is not None:
        return found
    for call in calls:
        if _is_computed_before(call):
            return _not_reproduced(step, [], is_loss_bad, where, _COMPUTED_BEFORE)
        observer = _replayed(call, parameters, modules, scale)
        found = _in_observed(step, observer, is_loss_bad, names, parameters)
        if found is not None:
            return found
    if scale is not None and not is_loss_bad:
        return None
    return _not_reproduced(step, calls, is_loss_bad, where)


def find_compiled_origin(
    step: int,
    names: Sequence[str],
    parameters: list[Any],
    optimizer: Any,
    call: ForwardCall,
    before: Kept,
    modules: dict[int, str],
) -> Origin:
    """The same for a compiled step, from the weights that it began with."""
    everything = [*parameters, *(p for p, _ in before.state)]
    now = [p.asnumpy().copy() for p in everything]
    put_back(everything, [*before.weights, *(values for _, values in before.state)])
    try:
        found = _weights(step, names, parameters, type(optimizer).__name__, call.where)
        found = found or _data(step, call)
        if found is not None:
            return found
        observer = Observer(modules, call.where)
        with _eager(), observer.cells(), observer:
            call.function(*call.args, **call.kwargs)
        found = _in_observed(step, observer, True, names, parameters)
        return found or _not_reproduced(step, [call], True, call.where)
    except Exception as error:  # the user's code, run in another mode than it was written for
        origin = _not_reproduced(step, [call], True, call.where)
        note = f"the step does not run eagerly ({type(error).__name__}: {str(error)[:200]})"
        return Origin(**{**vars(origin), "note": note})
    finally:
        put_back(everything, now)


@contextlib.contextmanager
def _eager() -> Iterator[None]:
    """PyNative mode without jit, inside of this context."""
    mode, jit = mindspore.get_context("mode"), os.environ.get("MS_JIT")
    os.environ["MS_JIT"] = "0"
    if mode != mindspore.PYNATIVE_MODE:
        mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    try:
        yield
    finally:
        if mode != mindspore.PYNATIVE_MODE:
            mindspore.set_context(mode=mode)
        if jit is None:
            del os.environ["MS_JIT"]
        else:
            os.environ["MS_JIT"] = jit


def _replayed(
    call: ForwardCall, parameters: list[Any], modules: dict[int, str], scale: float | None
) -> Observer:
    observer = Observer(modules, call.where)
    statistics = [
        p for cell in _cells(call.function) for p in cell.untrainable_params() if is_tensor(p)
    ]
    kept = [p.asnumpy().copy() for p in statistics]
    state = mindspore.get_rng_state()

    def forward(*args: Any) -> Any:
        output = call.function(*args, **call.kwargs)
        first = output[0] if isinstance(output, (tuple, list)) else output
        return first if scale is None else first / scale

    weights = parameters if call.weights is None else list(_parameters(call.weights))
    if call.random is not None:
        mindspore.set_rng_state(call.random)
    try:
        with observer.cells(), observer:
            mindspore.value_and_grad(forward, None, mindspore.ParameterTuple(weights))(*call.args)
    finally:
        mindspore.set_rng_state(state)
        put_back(statistics, kept)
    return observer


def _parameters(weights: Any) -> Iterator[Any]:
    yield from weights if isinstance(weights, (tuple, list)) else (weights,)


def _cells(function: Any) -> Iterator[Any]:
    from isograd.recording.mindspore_reach import captured, is_cell

    seen: set[int] = set()
    for cell in captured(function, is_cell, depth=2):
        if not seen.intersection({id(cell)}):
            seen.update(id(inner) for _, inner in cell.cells_and_names())
            yield cell


def _weights(
    step: int, names: Sequence[str], parameters: list[Any], optimizer: str, where: str
) -> Origin | None:
    for name, parameter in zip(names, parameters, strict=True):
        kind = kind_of_tensor(parameter)
        if kind is not None:
            return Origin(
                step=max(0, step - 1),
                phase=Phase.UPDATE,
                module=name.rpartition(".")[0],
                operator=optimizer if step else "initial value",
                kind=kind,
                where=where if step else "",
                inputs=(facts(parameter),),
                note=f"{name} was not finite when the step began",
            )
    return None


def _data(step: int, call: ForwardCall) -> Origin | None:
    tensors, skeleton = tree.flatten((call.args, call.kwargs), is_tensor)
    for path, tensor in zip(tree.slot_names(skeleton), tensors, strict=True):
        if not is_floating(tensor) or isinstance(tensor, mindspore.Parameter):
            continue
        kind = kind_of_tensor(tensor)
        if kind not in (None, "-inf"):
            return Origin(
                step=step,
                phase=Phase.DATA,
                module="",
                operator="input",
                kind=str(kind),
                where=call.where,
                inputs=(facts(tensor),),
                note=f"argument {path.partition('.')[2]} of the step holds it already",
            )
    return None


def _in_observed(
    step: int, observer: Observer, is_loss_bad: bool, names: Sequence[str], parameters: list[Any]
) -> Origin | None:
    """The origin in the forward pass if it reaches the loss, else in the backward pass."""
    operations = observer.operations
    if is_loss_bad:
        last = observer.last_bad()
        found = trace_back(operations, [last] if last is not None else [], step)
        if found is not None and found.phase is not Phase.BACKWARD:
            return found
    masked = tuple(
        f"{one.operator} ({one.where}) gave {one.kind}, which was masked"
        for one in operations
        if one.is_producer and one.phase is not Phase.BACKWARD
    )[:5]
    paths = {id(p): name for name, p in zip(names, parameters, strict=True)}
    return observer.backward_origin(step, masked, paths)


def _is_computed_before(call: ForwardCall) -> bool:
    """Whether the differentiated function only returns what was recorded before it was called."""
    cells = getattr(call.function, "__closure__", None) or ()
    return call.output is not None and any(one.cell_contents is call.output for one in cells)


def _not_reproduced(
    step: int, calls: list[ForwardCall], is_loss_bad: bool, where: str, note: str = _RANDOM
) -> Origin:
    call = calls[-1] if calls else None
    inputs = floating((call.args, call.kwargs)) if call is not None else []
    return Origin(
        step=step,
        phase=Phase.LOSS if is_loss_bad else Phase.BACKWARD,
        module="",
        operator="unknown",
        kind="nan",
        where=where if call is None else call.where,
        inputs=tuple(facts(t) for t in inputs[:4]),
        is_origin=False,
        note=note,
    )
