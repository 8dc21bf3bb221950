"""Names of tensors, and what they can be asked."""

from __future__ import annotations

import numpy as np
import pytest

from isograd.tensors import Role, TensorKey, gradients_of_parameters, keyed, tensor_value


@pytest.mark.parametrize(
    ("key", "text", "role", "pin", "slot", "name"),
    [
        pytest.param(TensorKey.input(0), "input.0", Role.INPUT, None, 0, "input.0", id="input"),
        pytest.param(
            TensorKey.input("mask"), "input.mask", Role.INPUT, None, None, "input.mask",
            id="input by name",
        ),
        pytest.param(
            TensorKey.output(2), "output.2", Role.OUTPUT, None, 2, "output.2", id="output"
        ),
        pytest.param(
            TensorKey.input_of_pin(3, 1), "input_of.3.1", Role.INPUT_OF_PIN, 3, 1, "input_of.3.1",
            id="input of a pinned call",
        ),
        pytest.param(
            TensorKey.output_of_pin(3, 1).gradient, "gradient.pin.3.1", Role.OUTPUT_OF_PIN, 3, 1,
            "gradient.pin.3.1", id="gradient of a pinned call's output",
        ),
        pytest.param(
            TensorKey.parameter("layer.0.weight").gradient, "gradient.parameter.layer.0.weight",
            Role.PARAMETER, None, None, "layer.0.weight", id="gradient of a parameter",
        ),
        pytest.param(
            TensorKey.buffer("norm.1"), "buffer.norm.1", Role.BUFFER, None, None, "norm.1",
            id="a buffer whose name ends in a number",
        ),
        pytest.param(TensorKey("loss"), "loss", Role.LOSS, None, None, "loss", id="loss"),
        pytest.param(TensorKey("steps"), "steps", None, None, None, "steps", id="another text"),
    ],
)  # fmt: skip
def test_a_key_says_what_it_names(
    key: TensorKey, text: str, role: Role | None, pin: int | None, slot: int | None, name: str
) -> None:
    assert key == text
    assert (key.role, key.pin, key.slot, key.name) == (role, pin, slot, name)
    assert key.is_gradient == text.startswith("gradient.")


def test_a_gradient_is_of_its_tensor() -> None:
    key = TensorKey.output(1)
    assert key.gradient.of == key
    assert key.gradient.kind == "gradient.output"


def test_gradients_of_parameters_come_by_the_parameters_names() -> None:
    one = tensor_value(np.ones(1, np.float32))
    tensors = {"output.0": one, "gradient.input.0": one, "gradient.parameter.a.b": one}
    assert list(gradients_of_parameters(tensors)) == ["a.b"]
    assert [key.role for key, _ in keyed(tensors)] == [Role.OUTPUT, Role.INPUT, Role.PARAMETER]
