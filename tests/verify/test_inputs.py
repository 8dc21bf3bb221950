"""Inputs as users have them: strings, None, containers, callables, masks, and kept state."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from isograd.verify.arguments import TensorSpec
from isograd.verify.case import read_case
from isograd.verify.inputs import make_inputs, make_targets, make_tensor
from isograd.worker.batch import batch_of

if TYPE_CHECKING:
    from conftest import Answer, CaseMaker

Verify = Callable[..., "Answer"]
BOTH = ("torch", "mindspore")


@dataclasses.dataclass(frozen=True)
class Network:
    """The body of one forward pass, for both frameworks, with what it needs besides a layer."""

    arguments: str
    body: str
    setup: str = "pass"
    loss: str = "return ((output - target) ** 2).mean()"

    def source(self, framework: str) -> str:
        """A file with build, loss and optimizer."""
        is_torch = framework == "torch"
        text = f"""
            {"import torch" if is_torch else "import mindspore as ms"}
            from {framework} import nn{"" if is_torch else ", ops"}

            class Net(nn.{"Module" if is_torch else "Cell"}):
                def __init__(self):
                    super().__init__()
                    self.layer = nn.{"Linear" if is_torch else "Dense"}(4, 3)
                    {self.setup}

                def {"forward" if is_torch else "construct"}(self, {self.arguments}):
                    {self.body}

            def build():
                return Net()

            def loss(output, target):
                {self.loss}

            def optimizer(model):
                return OPTIMIZER
        """
        optimizer = (
            "torch.optim.SGD(model.parameters(), lr=0.1)"
            if is_torch
            else "nn.SGD(model.trainable_params(), learning_rate=0.1)"
        )
        return textwrap.dedent(text).replace("OPTIMIZER", optimizer)


def _write(make_case: CaseMaker, networks: tuple[Network, Network]) -> Path:
    make_case.frameworks = BOTH
    make_case.extra = '[verify]\nsteps = 1\nmode = "train"\ncompiled = "off"\n'
    path = make_case.write()
    for side, framework, network in zip(("reference", "port"), BOTH, networks, strict=True):
        (path.parent / f"net_{side}.py").write_text(network.source(framework))
    return path


INPUTS = """
[[inputs]]
shape = [6, 4]
[[inputs]]
value = "scaled"
[[inputs]]
value = 0.5
[[inputs]]
none = true
[[inputs]]
tuple = [{ shape = [6, 4] }, { list = [{ shape = [6, 4] }] }]
[[inputs]]
[inputs.dict]
mask = { shape = [6, 4], fill = "padding_mask", dtype = "float32" }
word = { value = "x" }
[[inputs]]
none = true
name = "other"
"""
#: Each input changes what comes out.
BODY = """
                    x = pair[0] + pair[1][0] * batch["mask"] - x if batch["word"] == "x" else x
                    x = x * scale if kind == "scaled" else x
                    return self.layer(x) if nothing is None and other is None else x
"""


def test_inputs_that_are_no_plain_tensors(make_case: CaseMaker, verify: Verify) -> None:
    """A first user: strings and None cannot be inputs."""
    network = Network("x, kind, scale, nothing, pair, batch, other=1", BODY.strip())
    make_case.inputs = INPUTS
    answer = verify(_write(make_case, (network, network)))
    assert answer.status == 0, answer


BATCH = """
    import numpy as np

    def batch(step):
        generator = np.random.default_rng(step)
        x = generator.standard_normal((6, 4)).astype(np.float32)
        return (x,), {"kind": "scaled", "mask": None}

    def targets():
        return np.ones((6, 3), np.float32), [{"scale": np.float32(2)}]
"""


def test_a_callable_returns_inputs_and_targets(make_case: CaseMaker, verify: Verify) -> None:
    network = Network("x, kind, mask", "return self.layer(x) if kind == 'scaled' else mask")
    loss = "return ((output - target) ** 2).mean() * boxes[0]['scale']"
    network = dataclasses.replace(network, loss=loss)
    make_case.inputs = ""
    make_case.targets = ""
    path = _write(make_case, (network, network))
    for side in ("reference", "port"):
        file = path.parent / f"net_{side}.py"
        file.write_text(
            file.read_text().replace("loss(output, target)", "loss(output, target, boxes)")
        )
    (path.parent / "batches.py").write_text(textwrap.dedent(BATCH))
    head = 'inputs = "batches.py:batch"\ntargets = "batches.py:targets"\n'
    path.write_text(head + path.read_text())
    assert verify(path).status == 0


#: A state that is bound anew, a list that grows, a dictionary that is filled, a GRU's state.
KEEPS = """
                    y, self.state = self.gru(x, self.state)
                    h = self.layer(y[:, -1]) + len(self.calls)
                    h = h if self.hidden is None else h + self.hidden
                    h = h + (self.seen["h"] if "h" in self.seen else 0)
                    self.calls.append(h)
                    self.hidden = h
                    self.seen["h"] = h
                    return h
"""


def test_state_that_a_network_keeps_is_put_back(make_case: CaseMaker, verify: Verify) -> None:
    """A first user: a GRU that keeps its state between calls gives a message about dtypes."""
    setup = "self.state = self.hidden = None; self.calls = []; self.seen = {}; "
    setup += "self.gru = nn.GRU(4, 4, batch_first=True)"
    network = Network("x", KEEPS.strip(), setup=setup)
    make_case.inputs = "[[inputs]]\nshape = [6, 5, 4]\n"
    answer = verify(_write(make_case, (network, network)))
    assert answer.status == 0, answer


RESET = """

STATE = []


def count(x):
    STATE.append(1)
    return len(STATE)


def reset(model):
    STATE.clear()
"""


def test_state_elsewhere_is_reset_by_the_case(make_case: CaseMaker, verify: Verify) -> None:
    network = Network("x", "return self.layer(x) * count(x)")
    make_case.reference_extra = 'reset = "net_reference.py:reset"\n'
    make_case.port_extra = 'reset = "net_port.py:reset"\n'
    path = _write(make_case, (network, network))
    for side in ("reference", "port"):
        file = path.parent / f"net_{side}.py"
        file.write_text(file.read_text() + RESET)
    assert verify(path).status == 0


@pytest.mark.parametrize(
    ("returned", "positional", "keywords"),
    [
        pytest.param("np.ones(2)", 1, [], id="one-array"),
        pytest.param("np.ones(2), np.ones(3)", 2, [], id="tuple"),
        pytest.param("{'a': np.ones(2), 'b': None}", 0, ["a", "b"], id="dictionary"),
        pytest.param("(np.ones(2),), {'b': 'text'}", 1, ["b"], id="args-and-kwargs"),
        pytest.param("[np.ones(2)], {}", 1, [], id="no-kwargs"),
        pytest.param("np.ones(2), {'b': 1}", 2, [], id="a-dictionary-as-argument"),
        pytest.param("(np.float32(1), {0: np.ones(2)})", 2, [], id="keys-that-are-no-names"),
    ],
)
def test_what_a_callable_may_return(
    returned: str, positional: int, keywords: list[str], tmp_path: Path
) -> None:
    source = f"import numpy as np\n\ndef batch():\n    return {returned}\n"
    (tmp_path / "batches.py").write_text(source)
    found = batch_of("inputs", "batches.py:batch", str(tmp_path), 0, 0)
    assert (len(found[0]), list(found[1])) == (positional, keywords)


def test_a_padding_mask_is_a_prefix_of_every_row() -> None:
    spec = TensorSpec((8, 1, 10), "bool", "padding_mask", valid=0.0, padding=1.0)
    mask = make_tensor(spec, (0, 0, 0, 0)).values.astype(int)
    lengths = (1 - mask).sum(-1)
    assert (np.sort(mask, axis=-1) == mask).all()
    assert lengths.max() == 10
    assert lengths.min() >= 5
    assert lengths[-1].max() < 10


def test_a_nested_entry_is_drawn_apart_from_its_neighbours(tmp_path: Path) -> None:
    path = tmp_path / "case.toml"
    path.write_text(
        '[reference]\nmodel = "a.py:A"\nloss = "a.py:l"\n'
        '[port]\nmodel = "b.py:B"\nloss = "b.py:l"\n'
        "[[inputs]]\nlist = [{ shape = [3] }, { shape = [3] }]\n"
        "[[targets]]\ntuple = [{ value = 'x' }, { none = true }]\n"
    )
    case = read_case(path)
    first, second = make_inputs(case, 0)["0"]
    assert not np.array_equal(first.values, second.values)
    assert make_targets(case, 0) == [("x", None)]
