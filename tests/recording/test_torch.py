"""Recording a torch network: what is seen, that it is right, and that nothing is left behind."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isograd
from isograd.errors import RecordingError, UsageError
from isograd.recording.format import Call
from isograd.recording.reader import RecordedStep
from isograd.recording.statistics import measure

torch = pytest.importorskip("torch")
nn = torch.nn


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.relu = nn.ReLU(inplace=True)
        self.head = nn.Linear(4, 2)

    def forward(self, x: Any, *, scale: Any = None) -> Any:
        a = self.relu(self.norm(self.conv(x)))
        b = self.relu(a + a.flip(0))
        pooled = torch.cat([a, b]).mean((2, 3))
        return {"out": self.head(pooled if scale is None else pooled * scale), "hidden": (pooled,)}


@pytest.fixture
def model() -> Any:
    torch.manual_seed(1)
    return Block()


@pytest.fixture
def x() -> Any:
    return torch.randn(2, 3, 6, 6, requires_grad=True)


def hooks_of(model: Any) -> list[Any]:
    found: list[Any] = []
    for module in model.modules():
        found += [
            dict(hooks)
            for key, hooks in vars(module).items()
            if "hook" in key and isinstance(hooks, dict)
        ]
        found.append("forward" in vars(module))
    for parameter in model.parameters():
        found += [
            dict(parameter._backward_hooks or {}),
            parameter._post_accumulate_grad_hooks or {},
        ]
    return found


def call(step: RecordedStep, name: str, occurrence: int = 0, kind: str = "module") -> Call:
    [found] = [c for c in step.calls if (c.kind, c.name, c.occurrence) == (kind, name, occurrence)]
    return found


def test_values_are_those_of_the_network(model: Any, x: Any, tmp_path: Path) -> None:
    outputs: dict[str, Any] = {}

    def keep(name: str, output: Any) -> None:
        outputs[name] = output.detach().clone()

    for name in ("conv", "norm", "head"):
        hook = functools.partial(lambda name, module, args, output: keep(name, output), name)
        getattr(model, name).register_forward_hook(hook)
    before = {name: value.detach().clone() for name, value in model.state_dict().items()}
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with isograd.record(model, tmp_path / "r", tensors="full") as recorder:
        loss = model(x, scale=torch.tensor(2.0))["out"].square().sum()
        loss.backward()
        optimizer.step()
        recorder.step(loss)
    recording = isograd.Recording(tmp_path / "r")
    assert recording.step_numbers == (0,)
    assert recording.manifest.status == "complete"
    assert recording.manifest.silent == ()
    step = recording.step(0)
    assert step.loss == float(loss.detach())
    for name, value in outputs.items():
        [slot] = call(step, name).outputs
        np.testing.assert_array_equal(step.tensor(slot.value).values, value.numpy())
    root = call(step, "")
    assert [slot.name for slot in root.inputs] == ["0.0", "1.scale"]
    assert [slot.name for slot in root.outputs] == ["out", "hidden.0"]
    gradient = step.gradient_of(root.inputs[0].value)
    assert gradient is not None
    np.testing.assert_array_equal(step.tensor(gradient).values, x.grad.numpy())
    for name, parameter in model.named_parameters():
        grad = step.tensor(step.named("gradient")[name]).values
        np.testing.assert_array_equal(grad, parameter.grad.numpy())
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(step.tensor(step.named("after")[name]).values, value)
        np.testing.assert_array_equal(step.tensor(step.named("before")[name]).values, before[name])
    for number in range(len(step.info.values)):
        found = step.statistics(number)
        assert found is not None
        np.testing.assert_equal(dataclasses.astuple(found), measure(step.tensor(number).values))


def test_in_place_modules_change_neither_value_nor_gradient(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 1))
    x = torch.randn(3, 4)
    with isograd.record(model, tmp_path / "r", tensors="full") as recorder:
        model(x).sum().backward()
        recorder.step()
    step = isograd.Recording(tmp_path / "r").step(0)
    before, after = call(step, "1").inputs[0].value, call(step, "1").outputs[0].value
    assert call(step, "0").outputs[0].value == before
    assert call(step, "2").inputs[0].value == after
    linear = step.tensor(before).values
    assert (linear < 0).any()
    np.testing.assert_array_equal(step.tensor(after).values, np.maximum(linear, 0))
    upstream = np.broadcast_to(model[2].weight.detach().numpy(), (3, 4))
    gradients = [step.gradient_of(before), step.gradient_of(after)]
    assert None not in gradients
    np.testing.assert_array_equal(step.tensor(gradients[1] or 0).values, upstream)
    np.testing.assert_array_equal(step.tensor(gradients[0] or 0).values, upstream * (linear > 0))


def test_glue_links_modules(model: Any, x: Any, tmp_path: Path) -> None:
    with isograd.record(model, tmp_path / "r", tensors="full") as recorder:
        output = model(x)["out"]
        torch.nn.functional.mse_loss(output, torch.zeros(4, 2)).backward()
        recorder.step()
    step = isograd.Recording(tmp_path / "r").step(0)
    operations = [c for c in step.calls if c.kind == "operation"]
    assert [c.name for c in operations] == [
        "torch.Tensor.flip",
        "torch.Tensor.add",
        "torch.cat",
        "torch.Tensor.mean",
        "torch.zeros",
        "torch.nn.functional.mse_loss",
    ]
    add = operations[1]
    assert add.inputs[0].value == call(step, "relu").outputs[0].value
    assert add.outputs[0].value == call(step, "relu", 1).inputs[0].value
    assert [step.calls[c.parent].name for c in operations if c.parent is not None] == [""] * 4
    assert operations[5].inputs[0].value == call(step, "head").outputs[0].value


def test_everything_is_undone(model: Any, x: Any, tmp_path: Path) -> None:
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    before = hooks_of(model)
    for number, fails in enumerate([False, True]):
        try:
            with isograd.record(
                model, tmp_path / str(number), tensors="full", optimizer=optimizer
            ) as recorder:
                loss = model(x)["out"].sum()
                assert hooks_of(model) != before
                recorder.step(loss)
                if fails:
                    model(x)
                    raise KeyError("the user's")
        except KeyError:
            assert fails
        assert hooks_of(model) == before
        assert not optimizer._optimizer_step_post_hooks
        assert not torch.overrides._get_current_function_mode_stack()
        assert not loss._backward_hooks
        loss.backward()
    recording = isograd.Recording(tmp_path / "1")
    assert recording.step_numbers == (0,)
    assert (recording.manifest.status, recording.manifest.reason) == (
        "failed",
        'KeyError: "the user\'s"',
    )


def test_recording_changes_no_number(tmp_path: Path) -> None:
    def train(recorded: bool) -> list[bytes]:
        torch.manual_seed(3)
        model = Block()
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)

        def steps(end: Callable[[], None]) -> None:
            for _ in range(3):
                optimizer.zero_grad()
                model(torch.randn(2, 3, 6, 6))["out"].square().sum().backward()
                optimizer.step()
                end()

        if recorded:
            with isograd.record(model, tmp_path / "r", tensors="full") as recorder:
                steps(recorder.step)
        else:
            steps(lambda: None)
        return [value.numpy().tobytes() for value in model.state_dict().values()]

    assert train(True) == train(False)


def test_the_optimizer_ends_steps(model: Any, x: Any, tmp_path: Path) -> None:
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with isograd.record(model, tmp_path / "r", optimizer=optimizer) as recorder:
        for number in range(3):
            loss = model(x)["out"].sum()
            loss.backward()
            optimizer.step()
            if number == 1:
                recorder.step(loss)
    recording = isograd.Recording(tmp_path / "r")
    assert recording.step_numbers == (0, 1, 2)
    assert [step.loss is None for step in recording] == [True, False, True]
    assert [bool(step.named("before")) for step in recording] == [True, False, False]
    assert all(len(step.named("gradient")) == 6 for step in recording)


def test_nothing_grows_with_the_steps(model: Any, x: Any, tmp_path: Path) -> None:
    def held(observer: Any) -> list[int]:
        return [len(part) for part in vars(observer).values() if hasattr(part, "__len__")]

    sizes = []
    with isograd.record(model, tmp_path / "r", tensors="full") as recorder:
        for _ in range(4):
            loss = model(x)["out"].sum()
            loss.backward()
            recorder.step(loss)
            sizes.append(held(recorder._observer))
            assert not loss._backward_hooks
            assert not x._backward_hooks
    assert sizes[0] == sizes[-1]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([1, 3], (1, 3)),
        (slice(1, None, 2), (1, 3)),
        (range(2), (0, 1)),
        (lambda number: number == 2, (2,)),
        (None, (0, 1, 2, 3)),
    ],
)
def test_chosen_steps(model: Any, x: Any, tmp_path: Path, steps: Any, expected: Any) -> None:
    with isograd.record(model, tmp_path / "r", steps=steps) as recorder:
        for _ in range(4):
            model(x)
            recorder.step()
    recording = isograd.Recording(tmp_path / "r")
    assert recording.step_numbers == expected
    assert recording.step(expected[0]).named("before")


def test_chosen_modules(model: Any, x: Any, tmp_path: Path) -> None:
    with isograd.record(model, tmp_path / "r", modules=["h*", "conv"]) as recorder:
        model(x)["out"].sum().backward()
        recorder.step()
    recording = isograd.Recording(tmp_path / "r")
    assert [c.name for c in recording.step(0).calls] == ["conv", "head"]
    assert sorted(recording.step(0).named("gradient")) == [
        "conv.bias", "conv.weight", "head.bias", "head.weight",
    ]  # fmt: skip
    assert recording.manifest.modules == ("conv", "head")


def test_dtypes(tmp_path: Path) -> None:
    class Odd(nn.Module):
        def forward(self, *tensors: Any) -> Any:
            return [tensor.clone() for tensor in tensors]

    tensors = [
        torch.tensor(3.5, dtype=torch.bfloat16),
        torch.randn(3, 4).to(torch.bfloat16).t(),
        torch.empty(0, 3),
        torch.arange(5),
        torch.tensor([True, False]),
        torch.randn(4).half(),
        torch.randn(2, 3, dtype=torch.complex128).conj(),
        torch.randn(4).to(torch.float8_e4m3fn),
        torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
        torch.ones(1).expand(4, 4),
        torch.eye(3).to_sparse(),
    ]
    model = Odd()
    with torch.no_grad(), isograd.record(model, tmp_path / "r", tensors="full") as recorder:
        model(*tensors)
        recorder.step()
    step = isograd.Recording(tmp_path / "r").step(0)
    for slot, tensor in zip(step.calls[0].inputs, tensors, strict=True):
        read = step.tensor(slot.value)
        assert read.dtype == str(tensor.dtype).removeprefix("torch.")
        dense = tensor.to_dense() if tensor.layout is torch.sparse_coo else tensor
        plain = dense.float() if read.dtype in ("bfloat16", "float8_e4m3fn") else dense
        np.testing.assert_array_equal(read.values, plain.resolve_conj().numpy())


def test_inference_mode_and_shared_and_raising_modules(tmp_path: Path) -> None:
    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(3, 3)
            self.b = self.a

        def forward(self, x: Any) -> Any:
            try:
                self.a(torch.zeros(2, 7))
            except RuntimeError:
                x = self.a(x)
            return self.b(x).mul_(2).add_(1)

    model = Shared()
    with torch.inference_mode(), isograd.record(model, tmp_path / "r", tensors="full") as recorder:
        output = model(torch.ones(2, 3))
        recorder.step()
    step = isograd.Recording(tmp_path / "r").step(0)
    modules = [c for c in step.calls if c.kind == "module"]
    assert [(c.name, c.occurrence, c.parent) for c in modules] == [
        ("", 0, None), ("a", 0, 0), ("a", 1, 0), ("a", 2, 0),
    ]  # fmt: skip
    [slot] = modules[0].outputs
    np.testing.assert_array_equal(step.tensor(slot.value).values, output.numpy())


def test_never_an_empty_success(model: Any, x: Any, tmp_path: Path) -> None:
    advice = r"none of the 5 watched modules was seen.*Call the network itself, model\(x\)"
    with pytest.raises(RecordingError, match=advice), isograd.record(model, tmp_path / "a"):
        pass
    with isograd.record(model, tmp_path / "b") as recorder:
        with pytest.raises(RecordingError, match=advice):
            recorder.step()
        model(x)
    unreached = isograd.record(model, tmp_path / "c", steps=[5])
    missed = r"none of the chosen steps was reached.*had 1 steps"
    with pytest.raises(RecordingError, match=missed), unreached:
        model(x)
    assert isograd.Recording(tmp_path / "c").manifest.status == "failed"
    scripted = torch.jit.script(nn.Linear(2, 2))
    with pytest.raises(RecordingError, match=r"is a ScriptModule.*record the plain module"):
        isograd.record(scripted, tmp_path / "d").__enter__()


def test_modules_that_stay_silent_are_named(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    model.unused = nn.Linear(2, 2)
    model.forward = model[0].__call__
    with isograd.record(model, tmp_path / "r"):
        model(torch.ones(1, 2))
    assert isograd.Recording(tmp_path / "r").manifest.silent == ("unused",)


def test_wrong_use(model: Any, x: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"modules: 'hed' matches none.*Near it are 'head'"):
        isograd.record(model, tmp_path / "r", modules=["hed"])
    with pytest.raises(UsageError, match=r"steps: .* holds no step numbers"):
        isograd.record(model, tmp_path / "r", steps=[])
    with pytest.raises(UsageError, match="tensors: 'all' is unknown"):
        isograd.record(model, tmp_path / "r", tensors="all")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"cannot be recorded\. Give a torch"):
        isograd.record([model], tmp_path / "r")
    with isograd.record(model, tmp_path / "r") as recorder:
        with pytest.raises(UsageError, match=r"is being or has been recorded.*Leave that"):
            isograd.record(model, tmp_path / "s").__enter__()
        model(x)
        with pytest.raises(UsageError, match="the loss has 2 elements"):
            recorder.step(torch.ones(2))
        model(x)
    with pytest.raises(UsageError, match="outside of `with`"):
        recorder.step()


CRASH = """
import os, sys, torch, isograd
model = torch.nn.Linear(3, 3)
with isograd.record(model, sys.argv[1], tensors="full") as recorder:
    for number in range(3):
        model(torch.ones(2, 3)).sum().backward()
        recorder.step()
    model(torch.ones(2, 3))
    while not os.path.exists(sys.argv[1] + "/steps/000002"): pass
    os.makedirs(sys.argv[1] + "/steps/.000003.partial")
    open(sys.argv[1] + "/steps/.000003.partial/tensors-000.safetensors", "wb").write(b"half")
    os._exit(9)
"""

READ = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "mindspore", "numba"):
            raise ImportError(name)
sys.meta_path.insert(0, Refuse())
import isograd
recording = isograd.Recording(sys.argv[1])
print(recording.manifest.status, recording.step_numbers, recording.structure.modules[0].kind)
for step in recording:
    for number in range(len(step.info.values)):
        step.tensor(number), step.statistics(number)
assert not {"torch", "mindspore", "numba"} & set(sys.modules)
"""


def test_a_crash_leaves_the_complete_steps_readable_without_a_framework(
    tmp_path: Path, run_script: Any, succeed: Any
) -> None:
    crashed = run_script(CRASH, tmp_path / "r")
    assert crashed.returncode == 9, crashed.stderr
    assert succeed(READ, tmp_path / "r") == "open (0, 1, 2) Linear\n"


def test_the_package_imports_no_framework(succeed: Any) -> None:
    heavy = "{'torch', 'mindspore', 'numba', 'isograd.recording.writer'}"
    script = (
        f"import isograd, sys; isograd.Recording, isograd.record; print({heavy} & set(sys.modules))"
    )
    assert succeed(script) == "{'isograd.recording.writer'}\n"
