"""Replays a torch step whose values are not finite, and finds the operator that made the first.

The step is cut into its networks' calls and what ran between them, in order.  Between networks the
tensors were kept; a network's call is replayed eagerly under a dispatch mode, with the arguments,
buffers and random states that it had, and its weights, which no update has changed yet.  The
backward pass goes the other way round, with the gradients that the outputs got.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch  # noqa: TID253  # this module is loaded only for a torch training

from isograd.watch.origin import (
    Operation,
    Origin,
    Phase,
    Status,
    classify,
    make_origin,
    trace_back,
)
from isograd.watch.torch_calls import GlueOperator, NetworkCall, floating, version_of
from isograd.watch.torch_observer import Observer, facts, is_fill, kind_of_tensor

if TYPE_CHECKING:
    from isograd.watch.torch_lane import StepState

#: By this factor the gradients are made smaller where an overflow is asked for its reason.
_HARMLESS_SCALE = 1.0


def find_origin(state: StepState) -> Origin:
    """Where the first value that is not finite arose in a step."""
    for part in (_weights, _data, _forward_and_loss, _backward):
        found = part(state)
        if found is not None:
            return found
    return _unknown(state)


def overflows_without_scale(state: StepState, scale: float) -> bool:
    """Whether gradients are not finite even where the loss is not scaled."""
    for call in reversed(state.calls):
        gradients = _output_gradients(call)
        if any(kind_of_tensor(g) for g in gradients.values()):
            return True
        if not gradients:
            continue
        smaller = {place: g / scale * _HARMLESS_SCALE for place, g in gradients.items()}
        operations, _ = _replayed(call, state, smaller)
        if any(one.phase is Phase.BACKWARD and one.is_producer for one in operations):
            return True
    return False


def _weights(state: StepState) -> Origin | None:
    """Weights that were not finite before the step: the update of an earlier one."""
    for name, parameter in zip(state.parameter_names, state.parameters, strict=True):
        kind = kind_of_tensor(parameter)
        if kind is not None:
            earlier = state.step > 0
            return Origin(
                step=max(0, state.step - 1),
                phase=Phase.UPDATE,
                module=name.rpartition(".")[0],
                operator=state.optimizer if earlier else "initial value",
                kind=kind,
                where=state.update_where if earlier else "",
                inputs=(facts(parameter),),
                note=f"{name} was not finite when the step began",
            )
    return None


def _data(state: StepState) -> Origin | None:
    """An input of a network that holds NaN, or Inf other than a mask of -inf."""
    for number, call in enumerate(state.calls):
        for tensor in floating((call.args, call.kwargs)):
            kind = kind_of_tensor(tensor)
            if kind in (None, "-inf") or tensor.requires_grad:
                continue
            made = _glue_trace(state, upto=number, ends=[tensor])
            if made is not None:
                return made
            return Origin(
                step=state.step,
                phase=Phase.DATA,
                module=call.name,
                operator="input",
                kind=str(kind),
                where=call.where,
                inputs=(facts(tensor),),
                note="the batch holds it already",
            )
    return None


def _forward_and_loss(state: StepState) -> Origin | None:
    """The first part of the forward pass from which something bad goes on."""
    for number, call in enumerate(state.calls):
        bad = [t for t in call.outputs if kind_of_tensor(t) not in (None, "-inf")]
        if bad:
            return _in_network(state, call)
        ends = _bad_glue_results(state, number + 1)
        if ends:
            found = _glue_trace(state, upto=number + 1, ends=ends, phase=Phase.LOSS)
            if found is not None:
                return found
    # A -inf that looked like a mask has reached the loss.
    infinite = [c for c in state.calls if any(map(kind_of_tensor, c.outputs))]
    return _in_network(state, infinite[0]) if infinite and state.is_loss_bad else None


def _bad_glue_results(state: StepState, after: int) -> list[torch.Tensor]:
    """Results between networks that are bad and reach the loss or the next network."""
    if after == len(state.calls):
        if not state.is_loss_bad:
            return []
        return [t for t in state.losses if kind_of_tensor(t)]
    following = state.calls[after]
    return [
        t
        for t in floating((following.args, following.kwargs))
        if kind_of_tensor(t) not in (None, "-inf") and t.requires_grad
    ]


def _glue_trace(
    state: StepState, upto: int, ends: Sequence[torch.Tensor], phase: Phase = Phase.DATA
) -> Origin | None:
    """The producer among the operators between networks that led to some tensors."""
    operations, made = _glue_operations(state, upto, phase)
    numbers = [made[id(tensor)] for tensor in ends if id(tensor) in made]
    return trace_back(operations, numbers, state.step) if numbers else None


def _glue_operations(
    state: StepState, upto: int, phase: Phase
) -> tuple[list[Operation], dict[int, int]]:

    found: list[Operation] = []
    made: dict[int, int] = {}
    statuses: dict[int, Status] = {}
    for number, operator in enumerate(state.operators):
        if operator.after_calls > upto:
            break
        inputs = _as_they_were(operator.inputs(), operator.input_versions)
        known = [statuses.get(id(t), _leaf_status(t)) for t in inputs]
        outputs = _as_they_were(floating(operator.output), operator.output_versions)
        kind = next((k for t in outputs if (k := kind_of_tensor(t))), None)
        status, is_producer = classify(kind, known, is_fill(operator.args, operator.kwargs))
        for tensor in outputs:
            statuses[id(tensor)] = status if kind_of_tensor(tensor) else Status.FINITE
        if status is Status.FINITE:
            continue
        sources = tuple(made[id(t)] for t in inputs if id(t) in made)
        for tensor in outputs:
            if kind_of_tensor(tensor):
                made[id(tensor)] = number
        found.append(_glue_operation(number, operator, phase, status, is_producer, kind, sources))
    return found, made


def _as_they_were(tensors: list[torch.Tensor], versions: list[int]) -> list[torch.Tensor]:
    """Those that hold what they held; of the others nothing is known."""
    return [t for t, version in zip(tensors, versions, strict=True) if version_of(t) == version]


def _glue_operation(
    number: int,
    operator: GlueOperator,
    phase: Phase,
    status: Status,
    is_producer: bool,
    kind: str | None,
    sources: tuple[int, ...],
) -> Operation:
    return Operation(
        number,
        phase,
        operator.module,
        operator.function,
        operator.where,
        status,
        is_producer,
        str(kind),
        sources,
        tuple(facts(t) for t in operator.inputs()) if is_producer else (),
    )


def _leaf_status(tensor: torch.Tensor) -> Status:
    """A tensor that no kept operator made: -inf is a mask."""
    kind = kind_of_tensor(tensor)
    if kind is None:
        return Status.FINITE
    return Status.MEANT if kind == "-inf" else Status.BAD


def _in_network(state: StepState, call: NetworkCall) -> Origin:
    operations, bad_ends = _replayed(call, state, None)
    found = trace_back(operations, bad_ends, state.step) if bad_ends else None
    if found is not None:
        return found
    kind = next((k for t in call.outputs if (k := kind_of_tensor(t))), "nan")
    return Origin(
        step=state.step,
        phase=Phase.FORWARD,
        module=call.name,
        operator=type(call.module).__name__,
        kind=kind,
        where=call.where,
        inputs=tuple(facts(t) for t in floating((call.args, call.kwargs)))[:4],
        is_origin=False,
        note="the replay did not reproduce it: the network computes by random numbers or state "
        "that are not torch's own, or by communication",
    )


def _backward(state: StepState) -> Origin | None:
    """Gradients that are not finite, from the loss back to the first network."""
    masked = _masked(state)
    for number in range(len(state.calls), 0, -1):
        found = _glue_backward(state, number, masked)
        if found is not None:
            return found
        call = state.calls[number - 1]
        gradients = _output_gradients(call)
        bad = [g for g in gradients.values() if kind_of_tensor(g)]
        if bad:
            return _narrowed(state, call, bad[0], masked)
        if gradients:
            operations, _ = _replayed(call, state, gradients)
            backward = [one for one in operations if one.phase is Phase.BACKWARD]
            first = next((one for one in backward if one.status is Status.BAD), None)
            if first is None:
                continue
            if not first.is_producer:
                # Its forward result was infinite: the loss does not show it, gradients do.
                return trace_back(operations, [first.number], state.step)
            reached = {one.number for one in backward}
            return make_origin(first, operations, state.step, reached)
    return None


def _glue_backward(state: StepState, after: int, masked: tuple[str, ...]) -> Origin | None:
    """The operator between networks whose backward makes something bad of something finite."""
    for operator in reversed(state.operators):
        if operator.after_calls != after:
            continue
        bad = [(p, g) for p, g in operator.gradients.items() if kind_of_tensor(g)]
        if not bad or not _is_result_gradient_finite(state, operator):
            continue
        place, gradient = bad[0]
        inputs = operator.inputs()
        return Origin(
            step=state.step,
            phase=Phase.BACKWARD,
            module=operator.module,
            operator=_backward_name(operator),
            kind=str(kind_of_tensor(gradient)),
            where=operator.where,
            inputs=tuple(facts(t) for t in inputs),
            note=f"the gradient of input {place} of {operator.function}",
            masked=masked,
        )
    return None


def _backward_name(operator: GlueOperator) -> str:
    output = next(iter(floating(operator.output)), None)
    node = None if output is None else output.grad_fn
    return operator.function if node is None else node.name()


def _is_result_gradient_finite(state: StepState, operator: GlueOperator) -> bool:
    """Whether the gradient of an operator's result was finite, as those who used it saw it."""
    outputs = {id(t) for t in floating(operator.output)}
    for other in state.operators:
        for place, tensor in enumerate(other.inputs()):
            if id(tensor) in outputs and place in other.gradients:
                if kind_of_tensor(other.gradients[place]):
                    return False
    return True


def _narrowed(
    state: StepState, call: NetworkCall, gradient: torch.Tensor, masked: tuple[str, ...]
) -> Origin:
    return Origin(
        step=state.step,
        phase=Phase.BACKWARD,
        module=call.name,
        operator="backward",
        kind=str(kind_of_tensor(gradient)),
        where=call.where,
        inputs=(facts(gradient),),
        is_origin=False,
        note="the gradient of this network's output was not finite already; the operator between "
        "the network and the loss was not seen",
        masked=masked,
    )


def _masked(state: StepState) -> tuple[str, ...]:
    operations, _ = _glue_operations(state, len(state.calls), Phase.LOSS)
    return tuple(
        f"{one.operator} ({one.where}) gave {one.kind}, which was masked"
        for one in operations
        if one.is_producer
    )[:5]


def _unknown(state: StepState) -> Origin:
    return Origin(
        step=state.step,
        phase=Phase.BACKWARD if not state.is_loss_bad else Phase.LOSS,
        module="",
        operator="unknown",
        kind="nan",
        where=state.update_where,
        is_origin=False,
        note="no network's call and no operator of this step made it when replayed; look at code "
        "that changes gradients between backward() and step(), and at communication",
    )


def _output_gradients(call: NetworkCall) -> dict[int, torch.Tensor]:
    return call.gradients


def _replayed(
    call: NetworkCall, state: StepState, gradients: dict[int, torch.Tensor] | None
) -> tuple[list[Operation], list[int]]:
    """A call under the observer: its operations, and those that made bad outputs.

    gradients: of the outputs by their places; None for the forward pass alone.
    """
    observer = Observer(state.names, call.where)
    grad = torch.enable_grad() if gradients is not None else torch.no_grad()
    with _as_it_was(call), call.random.restored(), observer.modules(), grad:
        with observer:
            output = call.module(*call.args, **call.kwargs)
        outputs = floating(output)
        if gradients is not None:
            places = [p for p in gradients if p < len(outputs) and outputs[p].requires_grad]
            inputs: list[torch.Tensor] = [p for p in state.parameters if p.requires_grad]
            inputs += [t for t in floating((call.args, call.kwargs)) if t.requires_grad]
            with observer, contextlib.suppress(RuntimeError):
                torch.autograd.grad(
                    [outputs[p] for p in places],
                    inputs,
                    [gradients[p].to(outputs[p].dtype) for p in places],
                    allow_unused=True,
                )
    return observer.operations, observer.makers(outputs)


@contextlib.contextmanager
def _as_it_was(call: NetworkCall) -> Iterator[None]:
    """The network's state as it stood before the call; eager code where it is compiled."""
    now = [buffer.detach().clone() for buffer, _ in call.buffers]
    with torch.no_grad(), contextlib.ExitStack() as stack:
        if hasattr(torch.compiler, "set_stance"):
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        for buffer, before in call.buffers:
            buffer.copy_(before)
        after = [{key: attributes[key] for key in kept} for attributes, kept in call.numbers]
        for attributes, kept in call.numbers:
            attributes.update(kept)
        try:
            yield
        finally:
            for (attributes, _), kept in zip(call.numbers, after, strict=True):
                attributes.update(kept)
            for (buffer, _), present in zip(call.buffers, now, strict=True):
                buffer.copy_(present)
