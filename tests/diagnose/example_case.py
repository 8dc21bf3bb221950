"""Turns an example of a hypothesis into a case, and verifies it within this process."""

from __future__ import annotations

from pathlib import Path

from tests.diagnose.local_worker import LocalWorker

from isograd.diagnose.hypothesis import Example
from isograd.model import VerifyReport
from isograd.progress import SilentProgress
from isograd.verify import verify_case

_TORCH = """
import math
import torch
import torch.nn.functional as F
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
{modules}
    def forward(self, {names}):
        {body}

def build():
    return Net()

def loss(output, *targets):
    {loss}

def optimizer(model):
    return torch.optim.SGD(model.parameters(), 0.1)
"""
_MINDSPORE = """
import math
import mindspore as ms
from mindspore import mint, nn, ops

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
{modules}
    def construct(self, {names}):
        {body}

def build():
    return Net()

def loss(output, *targets):
    {loss}

def optimizer(model):
    return nn.SGD(model.trainable_params(), 0.1)
"""
_FIRST = "y = output[0] if isinstance(output, (tuple, list)) else output\n    return (y * y).mean()"


def write_example(folder: Path, example: Example) -> Path:
    """The two networks and the case file of an example."""
    names = "xyzuvw"[: len(example.inputs)]
    shown = ", ".join(names)
    for file, template, which in (("torch", _TORCH, 0), ("mindspore", _MINDSPORE, 1)):
        lines = [f"        self.{k} = {v[which]}\n" for k, v in example.modules.items()]
        code = example.reference if which == 0 else example.port
        body, loss = f"return {code}", _FIRST
        if "\n" in code or code.lstrip().startswith("return "):
            body = "\n        ".join(code.strip().split("\n"))
        if example.is_loss:
            body, loss = (
                "return x * 1.0",
                f"x = output\n    {', '.join(names[1:])}, = targets\n    return {code}",
            )
        text = template.format(
            modules="".join(lines) or "        pass\n",
            names=names[0] if example.is_loss else shown,
            body=body,
            loss=loss,
        )
        (folder / f"net_{file}.py").write_text(text)
    trains = "" if not example.trains else 'optimizer = "net_{}.py:optimizer"\n'
    case = [
        f'[{side}]\nframework = "{f}"\nmodel = "net_{f}.py:build"\n'
        f'loss = "net_{f}.py:loss"\n{trains.format(f)}'
        for side, f in (("reference", "torch"), ("port", "mindspore"))
    ]
    for number, (name, shape) in enumerate(zip(names, example.inputs, strict=True)):
        table = "targets" if example.is_loss and number else "inputs"
        case.append(f"[[{table}]]\nshape = {list(shape)}\nseed = {number}\n")
        if name in example.integers:
            case.append(
                f'dtype = "int64"\nfill = "integers"\nlow = 0\nhigh = {example.integers[name]}\n'
            )
        else:
            case.append('dtype = "float32"\nfill = "normal"\n')
    case.append(f'[verify]\nmode = "{example.mode}"\ncompiled = "off"\ninput_gradients = true\n')
    path = folder / "case.toml"
    path.write_text("\n".join(case))
    return path


def verify_example(folder: Path, example: Example) -> VerifyReport:
    """Verify an example without starting processes."""
    case = write_example(folder, example)
    return verify_case(case, seed=0, keep=None, progress=SilentProgress(), start=LocalWorker)
