"""Gradients by name, from a tape and onto parameters."""

from __future__ import annotations

import numpy as np

from isograd.frameworks.base import ReplayRequest, Tensors
from isograd.frameworks.fake.convert import gradient_of, state_of
from isograd.frameworks.fake.network import Module
from isograd.frameworks.fake.observe import Pin
from isograd.frameworks.fake.tape import Node, Tensor, Values, gradients
from isograd.tensors import TensorKey


def end_gradients(model: Module, leaves: dict[str, Tensor], found: dict[Node, Values]) -> Tensors:
    """Gradients of parameters and inputs of an end-to-end pass, by name.

    found: by node, in its shape and dtype.
    returns: the shapes and dtypes of the parameters and inputs.
    """
    results: Tensors = {}
    for name in state_of(model):
        parameter = dict(model.named_parameters())[name]
        if parameter.trainable and parameter.node in found:
            results[TensorKey.parameter(name).gradient] = gradient_of(parameter, found)
    for key, leaf in leaves.items():
        if leaf.is_floating and leaf.node in found:
            results[TensorKey.input(key).gradient] = gradient_of(leaf, found)
    return results


def replayed_gradients(
    request: ReplayRequest,
    model: Module,
    inputs: list[Tensor],
    pins: list[Pin],
    outputs: list[Tensor],
) -> Tensors:
    """Gradients of a replay's inputs, pins and parameters, given those at its ends.

    returns: the shapes and dtypes of the inputs, pins and parameters.
    """
    ends = list(zip([t.node for t in outputs], request.output_cotangents, strict=False))
    for pin, given in zip(pins, request.pin_cotangents, strict=False):
        ends += zip(pin.seen, given, strict=False)
    found = gradients([(n, np.asarray(g.values, n.values.dtype)) for n, g in ends if g is not None])
    leaves = {TensorKey.input(i).gradient: t for i, t in enumerate(inputs)}
    for number, pin in enumerate(pins):
        leaves |= {
            TensorKey.output_of_pin(number, i).gradient: t for i, t in enumerate(pin.outputs)
        }
    parameters = dict(model.named_parameters())
    leaves |= {TensorKey.parameter(n).gradient: parameters[n] for n in request.parameters}
    return {key: gradient_of(leaf, found) for key, leaf in leaves.items() if leaf.is_floating}


def give_gradients(model: Module, given: Tensors) -> None:
    """Hand gradients to the parameters, and none to the others.

    given: the shapes of the parameters, any dtypes.
    """
    parameters = dict(model.named_parameters())
    for parameter in parameters.values():
        parameter.gradient = None
    for key, value in given.items():
        parameter = parameters[key.removeprefix("gradient.parameter.")]
        parameter.gradient = np.asarray(value.values, parameter.values.dtype)
