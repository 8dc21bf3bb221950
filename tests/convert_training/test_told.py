"""Methods that tell something beside their value, where that cannot be told behind the step."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.test_compiled_steps import converted, program


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        pytest.param(
            "self.trainer.note(batch_idx, loss)",
            "self.trainer.note(batch_idx, self.layers[0].weight.sum())",
            "effect beside its value",
            id="weights, which the step changes",
        ),
        pytest.param(
            "self.trainer.note(batch_idx, loss)",
            "self.trainer.note(batch_idx, self(x).sum())",
            "effect beside its value",
            id="the network is called for it",
        ),
        pytest.param(
            "self.trainer.note(batch_idx, loss)",
            "self.trainer.callback(batch_idx, loss)",
            "effect beside its value",
            id="what is called is not known",
        ),
        pytest.param(
            "self.trainer.note(batch_idx, loss)",
            "if batch_idx:\n            self.trainer.note(batch_idx, loss)",
            "effect beside its value",
            id="under a condition",
        ),
        pytest.param(
            "return loss * 2.0",
            "loss = loss * 2.0\n        return loss",
            "effect beside its value",
            id="the value has changed since",
        ),
        pytest.param(
            "        self.rounds += 1",
            "        self.rounds += 1\n        self.module.scale += 1.0",
            "changes between steps",
            id="it changes what the step computes",
        ),
    ],
)
def test_why_what_is_told_keeps_a_loop_eager(
    old: str, new: str, reason: str, tmp_path: Path
) -> None:
    given = program("told").replace("return self.layers(x)", "return self.layers(x) * self.scale")
    given = given.replace("self.layers = nn", "self.scale = 1.0\n        self.layers = nn")
    given = given.replace("module.trainer = self", "module.trainer, self.module = self, module")
    assert old in given
    text, found = converted(given.replace(old, new), tmp_path)
    assert "ms.jit" not in text
    assert len(found) == 1
    assert re.search(reason, found[0])
