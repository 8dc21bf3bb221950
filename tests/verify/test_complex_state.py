"""A network that keeps complex numbers is computed in complex128, as the others in float64."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import pytest
from tests.verify.conftest import Answer, CaseMaker

pytest.importorskip("torch")
pytest.importorskip("mindspore")

NETWORK = """
    import numpy as np

    class Net(nn.BASE):
        def __init__(self):
            super().__init__()
            wave = np.exp(1j * np.arange(20).reshape(4, 5)).astype(np.complex64)
            self.wave = WAVE(wave)
            self.layer = nn.LINEAR(5, 3)

        def FORWARD(self, x):
            return self.layer(x @ PARTS)

    def build():
        return Net()
"""
TORCH = {"BASE": "Module", "WAVE": "torch.tensor", "LINEAR": "Linear", "FORWARD": "forward",
         "PARTS": "(self.wave.imag + self.wave.to(torch.complex64).real)"}  # fmt: skip
MINDSPORE = {"BASE": "Cell", "WAVE": "ms.Tensor", "LINEAR": "Dense", "FORWARD": "construct",
             "PARTS": "(ops.imag(self.wave) + ops.real(self.wave))"}  # fmt: skip


def _written(words: dict[str, str]) -> str:
    text = NETWORK
    for word, own in words.items():
        text = text.replace(word, own)
    return text


@pytest.mark.parametrize(
    ("parts", "status"),
    [
        pytest.param(MINDSPORE["PARTS"], 0, id="the same parts"),
        pytest.param("(ops.imag(self.wave) - ops.real(self.wave))", 1, id="another sign"),
    ],
)
def test_parts_of_a_complex_tensor_that_is_kept(
    parts: str, status: int, make_case: CaseMaker, verify: Callable[..., Answer]
) -> None:
    make_case.frameworks = ("torch", "mindspore")
    path = make_case.write()
    for side, words in (("reference", TORCH), ("port", {**MINDSPORE, "PARTS": parts})):
        with (path.parent / f"net_{side}.py").open("a", encoding="utf-8") as file:
            file.write(textwrap.dedent(_written(words)))
    answer = verify(path)
    assert answer.status == status, answer
