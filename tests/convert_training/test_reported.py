"""Methods that a step calls: what they report beside their value, and where that keeps it eager."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.test_compiled_steps import LOOP, converted, program


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
    given = program("reported").replace(
        "return self.layers(x)", "return self.layers(x) * self.scale"
    )
    given = given.replace("self.layers = nn", "self.scale = 1.0\n        self.layers = nn")
    given = given.replace("module.trainer = self", "module.trainer, self.module = self, module")
    assert old in given
    text, found = converted(given.replace(old, new), tmp_path)
    assert "ms.jit" not in text
    assert len(found) == 1
    assert re.search(reason, found[0])


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        pytest.param("return self.forward(x).sum()", "", id="forward"),
        pytest.param("return self(x).sum()", "", id="itself"),
        pytest.param(
            "self.seen['x'] = 1\n        return self.forward(x).sum()",
            "does not compile to the same",
            id="a dictionary that is written to",
        ),
        pytest.param(
            "found = self.forward(x).sum()\n        seen.note(found)\n        return found",
            "",
            id="an object gets the loss, behind the step",
        ),
        pytest.param(
            "found = self.forward(x).sum()\n        seen.keep(found)\n        return found",
            "effect beside its value",
            id="an object gets the loss for what is not known",
        ),
        pytest.param(
            "parts = []\n        parts.append(self.forward(x).sum())\n        return parts[0]",
            "",
            id="a list of its own",
        ),
    ],
)
def test_methods_of_a_network_that_a_step_calls(body: str, reason: str, tmp_path: Path) -> None:
    begin = "    def __init__(self):\n        super().__init__(4, 1)\n        self.seen = {}\n\n"
    kind = f"class Net(nn.Linear):\n{begin}    def step(self, x):\n        {body}"
    text = LOOP.replace("model = nn.Linear(4, 1)", f"{kind}\n\n\nmodel = Net()")
    text, found = converted(text.replace("model(x).sum()", "model.step(x)"), tmp_path)
    assert ("ms.jit" in text) is not bool(reason)
    assert re.search(reason, "".join(found)), found
