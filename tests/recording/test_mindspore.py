"""Recording a MindSpore network, each test in a process of its own."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest

if importlib.util.find_spec("mindspore") is None:
    pytest.skip("MindSpore is not installed", allow_module_level=True)

NETWORK = """
import sys
import numpy as np
import mindspore as ms
from mindspore import nn, ops, Tensor
import isograd
from isograd.errors import RecordingError

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first = nn.Dense(3, 4)
        self.relu = nn.ReLU()
        self.second = nn.Dense(4, 2)

    def construct(self, x):
        hidden = self.relu(self.first(x))
        joined = ops.concat((hidden, hidden * 2), 0)
        return self.second(joined), {"hidden": hidden}

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(1)
net = Net()
x = Tensor(np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32))
optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)

def forward(x):
    return net(x)[0].square().sum()

differentiate = ms.value_and_grad(forward, 0, optimizer.parameters)

def hooks_of(net):
    return sum(len(hooks) for _, cell in net.cells_and_names() for key, hooks in vars(cell).items()
            if "hook" in key and  hasattr(hooks, "__len__"))
"""

VALUES = """
before = hooks_of(net)
methods = [ops.concat, ops.add, Tensor.__mul__, Tensor.sum, Tensor.__dict__.get("__mul__")]
with isograd.record(net, sys.argv[1], tensors="full") as recorder:
    loss, (x_gradient, gradients) = differentiate(x)
    optimizer(gradients)
    recorder.step(loss)
assert hooks_of(net) == before
assert methods == [ops.concat, ops.add, Tensor.__mul__, Tensor.sum, Tensor.__dict__.get("__mul__")]
step = isograd.Recording(sys.argv[1]).step(0)
assert step.loss == float(loss.asnumpy())
calls = {call.name: call for call in step.calls if call.kind == "module"}
assert list(calls) == ["", "first", "relu", "second"], list(calls)
assert calls["relu"].inputs[0].value == calls["first"].outputs[0].value
assert [slot.name for slot in calls[""].outputs] == ["0", "1.hidden"]
def array(number):
    return step.tensor(number).values
np.testing.assert_array_equal(array(calls[""].inputs[0].value), x.asnumpy())
gradient = step.gradient_of(calls[""].inputs[0].value)
np.testing.assert_array_equal(array(gradient), x_gradient.asnumpy())
for parameter, gradient in zip(optimizer.parameters, gradients, strict=True):
    np.testing.assert_array_equal(array(step.named("gradient")[parameter.name]), gradient.asnumpy())
    np.testing.assert_array_equal(array(step.named("after")[parameter.name]), parameter.asnumpy())
    assert (array(step.named("before")[parameter.name]) != parameter.asnumpy()).any()
linear = array(calls["first"].outputs[0].value)
np.testing.assert_array_equal(array(calls["relu"].outputs[0].value), np.maximum(linear, 0))
hidden = calls["relu"].outputs[0].value
names = [call.name for call in step.calls if call.kind == "operation" and call.parent == 0]
print(names)
assert any("concat" in name for name in names) and len(names) == 2, names
join = next(call for call in step.calls if "concat" in call.name)
assert join.inputs[0].value == hidden and join.outputs[0].value == calls["second"].inputs[0].value
"""

STEPS = """
plain = [differentiate(x)[0].asnumpy().tobytes() for _ in range(2)]
with isograd.record(net, sys.argv[1], optimizer=optimizer, steps=[0, 2]) as recorder:
    held = []
    for _ in range(3):
        loss, (_, gradients) = differentiate(x)
        optimizer(gradients)
        held.append([len(v) for v in vars(recorder._observer).values() if hasattr(v, "__len__")])
    assert held[0] == held[2], held
recording = isograd.Recording(sys.argv[1])
assert recording.step_numbers == (0, 2)
assert all(step.named("before") and len(step.named("gradient")) == 4 for step in recording)
assert recording.manifest.seeds == {"mindspore": 1}
statistics = recording.step(2).statistics(recording.step(2).named("after")["first.weight"])
np.testing.assert_allclose(statistics.norm, np.linalg.norm(net.first.weight.asnumpy()), rtol=1e-6)
try:
    with isograd.record(net, sys.argv[1] + "b") as recorder:
        net(x)
        recorder.step()
        raise KeyError
except KeyError:
    pass
assert isograd.Recording(sys.argv[1] + "b").step_numbers == (0,)
with isograd.record(net, sys.argv[1] + "c", tensors="full") as recorder:
    net(Tensor(np.ones((2, 3)), ms.float32))
assert hooks_of(net) == 0
class Odd(nn.Cell):
    def construct(self, *tensors):
        return tensors
odd = [Tensor(3.5, ms.bfloat16), Tensor(np.arange(5)), Tensor(np.array([True, False])),
       Tensor(np.zeros((0, 3), np.float32)), Tensor(np.ones(2), ms.float16)]
with isograd.record(Odd(), sys.argv[1] + "d", tensors="full") as recorder:
    recorder._model(*odd)
step = isograd.Recording(sys.argv[1] + "d").step(0)
read = [step.tensor(slot.value) for slot in step.calls[0].inputs]
assert [value.dtype for value in read] == ["bfloat16", "int64", "bool", "float32", "float16"], read
assert [value.shape for value in read] == [(), (5,), (2,), (0, 3), (2,)]
assert float(read[0].values) == 3.5
class InPlace(nn.Cell):
    def __init__(self):
        super().__init__()
        self.relu = nn.ReLU()
        self.again = nn.ReLU()
    def construct(self, x):
        y = self.relu(x)
        y[0] = 7.0
        return self.again(y)
with isograd.record(InPlace(), sys.argv[1] + "e", tensors="full") as recorder:
    recorder._model(Tensor(np.array([1.0, 2.0], np.float32)))
step = isograd.Recording(sys.argv[1] + "e").step(0)
calls = {call.name: call for call in step.calls}
assert step.tensor(calls["relu"].outputs[0].value).values.tolist() == [1.0, 2.0]
assert step.tensor(calls["again"].inputs[0].value).values.tolist() == [7.0, 2.0]
"""

SILENCE = """
def refused(network, path, call, *parts):
    try:
        with isograd.record(network, sys.argv[1] + path) as recorder:
            call()
            recorder.step()
    except RecordingError as error:
        text = str(error)
    else:
        raise AssertionError("recorded something")
    for part in (*parts, "MindSpore's hooks are silent under GRAPH_MODE and inside jit"):
        assert part in text, text

@ms.jit
def compiled(x):
    return net(x)[0].sum()

refused(net, "a", lambda: compiled(x), "the network was compiled while it was being recorded")
compiled(x)
refused(net, "d", lambda: None, "none of the 4 watched modules was seen")
inner = Net()
inner.construct = ms.jit(inner.construct)
outer = nn.SequentialCell(inner)
message = "construct of cell '0' (Net) is compiled by jit"
refused(outer, "b", lambda: None, message, "3 watched cells")
ms.set_context(mode=ms.GRAPH_MODE)
refused(net, "c", lambda: net(x), "MindSpore is in GRAPH_MODE", "PYNATIVE_MODE")
assert hooks_of(net) == 0
"""


WITHOUT_GRADIENT = """
with isograd.record(net, sys.argv[1], tensors="full") as recorder:
    net(x)
    recorder.step()
    loss, gradients = ms.value_and_grad(forward, None, optimizer.parameters)(x)
    recorder.step(loss)
evaluated, trained = (isograd.Recording(sys.argv[1]).step(number) for number in (0, 1))
assert [call.name for call in evaluated.calls if call.kind == "module"] == [
    "", "first", "relu", "second"]
assert not evaluated.info.gradients
inputs = {call.name: call.inputs[0].value for call in trained.calls if call.kind == "module"}
assert trained.gradient_of(inputs["second"]) is not None
"""


def as_file(tmp_path: Path, text: str) -> str:
    """jit needs the source of what it compiles, so the script lies in a file."""
    path = tmp_path / "script.py"
    path.write_text(NETWORK + text)
    return f"import runpy; runpy.run_path({str(path)!r}, run_name='__main__')"


@pytest.mark.parametrize(
    "text",
    [VALUES, STEPS, SILENCE, WITHOUT_GRADIENT],
    ids=["values", "steps", "silence", "without gradient"],
)
def test_recording(tmp_path: Path, succeed: Callable[..., str], text: str) -> None:
    succeed(as_file(tmp_path, text), tmp_path / "r")
