"""Everything that a person can get wrong ends in one message that says what to do."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from conftest import Answer, CaseMaker

Verify = Callable[..., "Answer"]
DETAILS = re.compile(r" Details: (\S+)\n$")


def only_message(answer: Any) -> str:
    """The one line on standard error, without the file that keeps a traceback."""
    assert answer.status == 2, answer
    assert answer.out == ""
    kept = DETAILS.search(answer.error)
    if kept:
        Path(kept[1]).unlink()
    text = DETAILS.sub("\n", answer.error)
    assert text.count("\n") == 1
    return str(text.removeprefix("isograd: ").rstrip("\n"))


def spoilt(text: str, before: str, after: str) -> str:
    assert before in text
    return text.replace(before, after, 1)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            "[verify]",
            "[verfy]",
            "case.toml: unknown key 'verfy'. Did you mean 'verify'?",
        ),
        (
            "[verify]",
            "[training]\nsteps = 3\n\n[verify]",
            "case.toml: unknown key 'training'. 'steps' belongs in [verify].",
        ),
        (
            "optimizer =",
            "steps = 3\noptimizer =",
            "case.toml: unknown key 'steps' in [reference]. 'steps' belongs in [verify].",
        ),
        (
            "steps",
            "step",
            "case.toml: unknown key 'step' in [verify]. Did you mean 'steps'?",
        ),
        (
            "optimizer =",
            "optimiser =",
            "case.toml: unknown key 'optimiser' in [reference]. Did you mean 'optimizer'?",
        ),
        (
            "shape",
            "size",
            "case.toml: unknown key 'size' in [inputs, entry 1]. Known: shape, dtype, fill, seed, "
            "name, low, high, valid, padding, file, value, none, list, tuple, dict.",
        ),
        (
            "shape = [6, 4]",
            "shape = [6, 4]\nvalue = 1",
            "case.toml: inputs, entry 1: both value and shape. Keep one of them.",
        ),
        (
            "shape = [6, 4]",
            "value = 2024-01-01",
            "case.toml: inputs, entry 1: value = datetime.date(2024, 1, 1). Use a string, a "
            "number, true, false, or a list of these.",
        ),
        (
            "shape = [6, 4]",
            "none = false",
            "case.toml: inputs, entry 1: none = False. Write none = true.",
        ),
        (
            "shape = [6, 4]",
            "dict = [{ shape = [2] }]",
            "case.toml: inputs, entry 1: dict = [{'shape': [2]}]. Write it as dict = "
            "{ x = { shape = [2] } }.",
        ),
        (
            "shape = [6, 4]",
            "list = [{ shape = [2] }, { shpae = [2] }]",
            "case.toml: unknown key 'shpae' in [inputs, entry 1, list 2]. Did you mean 'shape'?",
        ),
        (
            "shape = [6, 4]",
            "shape = [6, 4]\npadding = 1",
            "case.toml: inputs, entry 1: padding without padding_mask. Leave it out.",
        ),
        (
            'optimizer = "net_reference.py:optimizer"',
            'optimizer = "net_reference.py:optimizer"\nreset = 3',
            "case.toml: [reference] reset is not a text. Write it in quotes.",
        ),
        (
            "[reference]",
            "[reference",
            "case.toml is not valid TOML: Expected ']' at the end of a table declaration (at line "
            "1, column 11). Correct the file.",
        ),
        (
            "steps = 2",
            "steps = 0",
            "case.toml: [verify] steps = 0. Use an integer of 1 or more.",
        ),
        (
            "steps = 2",
            'mode = "fast"',
            "case.toml: [verify] mode = 'fast'. Use one of train, eval, both.",
        ),
        (
            'framework = "fake"',
            'framework = "jax"',
            "case.toml: [reference] framework = 'jax'. Use 'torch' or 'mindspore'.",
        ),
        (
            "shape = [6, 4]",
            "shape = [6, 4]\nseed = -1",
            "case.toml: inputs, entry 1: seed = -1. Use an integer of 0 or more.",
        ),
        (
            "shape = [6, 4]",
            'file = "x.npy"',
            "case.toml: inputs, entry 1: there is no file {tmp}/x.npy. Correct the path.",
        ),
        (
            "shape = [6, 4]",
            "shape = [6, -4]",
            "case.toml: inputs, entry 1: shape = [6, -4]. Write it as shape = [2, 3].",
        ),
        (
            'optimizer = "net_reference.py:optimizer"\n',
            "",
            "case.toml: [reference] has no optimizer, but [port] has one. Name a optimizer "
            "on both sides, or on neither to skip its stages.",
        ),
        (
            'loss = "net_port.py:loss"\n',
            "",
            "case.toml: [port] has no loss, but [reference] has one. Name a loss on both sides, "
            "or on neither to skip its stages.",
        ),
        (
            "net_port.py:build",
            "net_port.py:bild",
            "model = 'net_port.py:bild': there is no 'bild' in net_port.py. It defines: Linear, "
            "Module, ReLU, SGD, Sequential, Tensor, build, loss, mean_squared_error, optimizer.",
        ),
        (
            "net_port.py:build",
            "net_prt.py:build",
            "model names the file {tmp}/net_prt.py, which does not exist. Correct the path.",
        ),
        (
            "net_port.py:build",
            "net_port",
            "model = 'net_port' is not a callable's name. Write it as 'file.py:name' or "
            "'package.module:name'.",
        ),
        (
            'loss = "net_port.py:loss"\n',
            'loss = "net_port.py:loss"\npython = "/nowhere/python"\n',
            "[port] python = '/nowhere/python' is not an executable file. Name a Python "
            "interpreter that has the framework.",
        ),
    ],
)
def test_a_wrong_case_file(
    before: str, after: str, message: str, make_case: CaseMaker, verify: Verify, tmp_path: Path
) -> None:
    path = make_case.write()
    path.write_text(spoilt(path.read_text(), before, after))
    assert only_message(verify("case.toml")) == message.replace("{tmp}", str(tmp_path))


def test_a_missing_case_file(verify: Verify) -> None:
    assert only_message(verify("none.toml")) == (
        "the case file none.toml does not exist. Give the path of a case file in TOML."
    )


def test_a_negative_seed(make_case: CaseMaker, verify: Verify) -> None:
    assert only_message(verify(make_case.write(), "--seed", "-1")) == (
        "Invalid value for '--seed': -1 is not in the range x>=0. See `isograd verify --help`."
    )


def test_pickled_objects_are_never_loaded(make_case: CaseMaker, verify: Verify) -> None:
    np.save(make_case.folder / "x.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    make_case.inputs = '[[inputs]]\nfile = "x.npy"\n'
    assert only_message(verify(make_case.write())) == (
        f"{make_case.folder}/x.npy is not a readable .npy file (Object arrays cannot be loaded "
        "when allow_pickle=False). Save the tensor with numpy.save, without pickled objects."
    )


BUILD = "    return Sequential("
ADVICE = "Run it on its own, mend it, and start isograd again."


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            ((BUILD, "    raise KeyError('width')\n" + BUILD),),
            "the model callable net_port.py:build raised KeyError: 'width' at net_port.py:6. "
            f"{ADVICE}",
        ),
        (
            (("def build", "1 / 0\n\ndef build"),),
            "importing model 'net_port.py:build' raised ZeroDivisionError: division by zero at "
            f"net_port.py:5. {ADVICE}",
        ),
        (
            (("from isograd.frameworks.fake.network import mean_sq", "import nonsense_\n#"),),
            "importing model 'net_port.py:build' raised ModuleNotFoundError: No module named "
            f"'nonsense_' at net_port.py:3. {ADVICE}",
        ),
        (
            ((BUILD, "    return 3\n" + BUILD),),
            "net_port.py:build returned a int, not a isograd.frameworks.fake.network.Module. "
            "Return the network.",
        ),
        (
            (("    return mean_squared_error(output, target)", "    return target.size"),),
            "the loss net_port.py:loss raised AttributeError: 'Tensor' object has no attribute "
            f"'size' at net_port.py:9. {ADVICE}",
        ),
        (
            (("    return mean_squared_error(output, target)", "    return 0.5"),),
            "the loss net_port.py:loss returned a float, not a tensor. Return the scalar loss.",
        ),
        (
            (("model.parameters()", "build().parameters()"),),
            "the optimizer updates 4 parameters that the network does not hold. Give it the "
            "parameters of the network that the callable was given.",
        ),
        (
            (
                (
                    "    return SGD(model.parameters(), lr=0.1)",
                    "    SGD(model.parameters(), lr=0.1)",
                ),
            ),
            "the optimizer callable returned None. Return an optimizer.",
        ),
    ],
)
def test_wrong_code_of_the_user(
    changes: tuple[tuple[str, str], ...], message: str, make_case: CaseMaker, verify: Verify
) -> None:
    make_case.spoil = changes
    assert only_message(verify(make_case.write())) == message


@pytest.mark.parametrize(
    ("frameworks", "message"),
    [
        (
            ("torch", "fake"),
            "the forward pass of the torch network raised RuntimeError: mat1 and mat2 shapes "
            f"cannot be multiplied (6x7 and 4x5). {ADVICE}",
        ),
        (
            ("fake", "mindspore"),
            "the forward pass of the MindSpore network raised ValueError: For 'MatMul' the input "
            f"dimensions must be equal, but got 'x1_col': 7 and 'x2_row': 4. {ADVICE}",
        ),
    ],
)
def test_shapes_that_do_not_fit(
    frameworks: tuple[str, str], message: str, make_case: CaseMaker, verify: Verify
) -> None:
    make_case.frameworks = frameworks
    make_case.inputs = "[[inputs]]\nshape = [6, 7]\n"
    if frameworks[0] == "fake":
        make_case.spoil_reference = (("Linear(4, 5)", "Linear(7, 5)"),)
    assert only_message(verify(make_case.write())) == message


def test_a_loss_that_is_not_scalar(make_case: CaseMaker, verify: Verify) -> None:
    make_case.frameworks = ("torch", "fake")
    change = ("mse_loss(output, target)", "mse_loss(output, target, reduction='none')")
    make_case.spoil_reference = (change,)
    assert only_message(verify(make_case.write())) == (
        "the loss net_reference.py:loss returned a tensor of shape (6, 3), not a scalar. "
        "Return the scalar loss."
    )


def test_a_ports_loss_that_is_not_scalar_diverges(make_case: CaseMaker, verify: Verify) -> None:
    """The reference shows what is meant, so this is a finding and not an error."""
    make_case.spoil = (("mean_squared_error(output, target)", "(output - target) * 1.0"),)
    report = make_case.folder / "report.json"
    answer = verify(make_case.write(), "--json", str(report))
    assert (answer.status, answer.error) == (1, "")
    assert json.loads(report.read_text())["first_divergence"]["stage"] == "loss"


def test_a_torch_optimizer_with_foreign_parameters(make_case: CaseMaker, verify: Verify) -> None:
    make_case.frameworks = ("torch", "fake")
    make_case.spoil_reference = (("SGD(model.parameters()", "SGD(build().parameters()"),)
    assert only_message(verify(make_case.write())) == (
        "the optimizer updates 4 parameters that the network does not hold. Give it the "
        "parameters of the network that the callable was given."
    )


def test_a_worker_that_crashes_in_forward(make_case: CaseMaker, verify: Verify) -> None:
    crash = "import os\nclass Net(Module):\n    def forward(self, x):\n        os._exit(9)\n"
    make_case.spoil = (("def build", crash + "def build"), (BUILD, "    return Net()\n" + BUILD))
    assert only_message(verify(make_case.write())) == (
        "the port worker (fake) ended with exit status 9 in stage forward, method "
        "forward; its last words: nothing. Run the network on its own in that "
        "interpreter, or leave out what crashes it."
    )


def test_an_interpreter_without_the_framework(
    make_case: CaseMaker, verify: Verify, bare_python: Path
) -> None:
    make_case.frameworks = ("fake", "mindspore")
    make_case.port_extra = f'python = "{bare_python}"'
    assert only_message(verify(make_case.write())) == (
        f"the port side needs mindspore, which {bare_python} cannot import (No module named "
        "'mindspore'). Install it there (pip install 'isograd[mindspore]') or set [port] python "
        "in the case to an interpreter that has it."
    )


ROOT = """class Root(ReLU):
    def forward(self, x):
        return super().forward(x) * float("nan")

def build"""
ROOTS = (("ReLU()", "Root()"), ("def build", ROOT))


def test_a_reference_that_yields_nan(make_case: CaseMaker, verify: Verify) -> None:
    make_case.spoil_reference = ROOTS
    assert only_message(verify(make_case.write())) == (
        "the reference's own output 0 holds 18 NaN of 18 values (fake, eval mode), so there is "
        "nothing to compare with. Choose inputs, targets and weights on which the reference works, "
        "or mend the reference."
    )


def test_a_port_that_yields_nan_diverges(make_case: CaseMaker, verify: Verify) -> None:
    make_case.spoil = ROOTS
    report = make_case.folder / "report.json"
    answer = verify(make_case.write(), "--json", str(report))
    assert (answer.status, answer.error) == (1, "")
    found = json.loads(report.read_text())
    assert found["verdict"] == "divergent"
    assert found["first_divergence"]["stage"] == "forward"
    assert "NaN: 0 in the reference, 30 in the port" in report.read_text()


@pytest.mark.parametrize("last", ["Twice()", "Wide()"], ids=["number", "shape"])
def test_a_port_with_other_outputs_diverges(
    last: str, make_case: CaseMaker, verify: Verify
) -> None:
    layers = """class Twice(Module):
    def forward(self, x):
        return (x * 2.0, x)

class Wide(Module):
    def forward(self, x):
        return x * Tensor(__import__("numpy").ones((2, 1, 1), "f"))

def build"""
    make_case.spoil = (("Linear(5, 3))", f"Linear(5, 3), {last})"), ("def build", layers))
    make_case.keys = ((), ())
    make_case.targets = ""
    report = make_case.folder / "report.json"
    answer = verify(make_case.write(), "--json", str(report))
    assert (answer.status, answer.error) == (1, "")
    assert json.loads(report.read_text())["verdict"] == "divergent"


def test_parameters_without_partner_are_incomplete(make_case: CaseMaker, verify: Verify) -> None:
    net = """class Net(Sequential):
    def forward(self, x):
        for name in "012":
            x = getattr(self, name)(x)
        return x

def build"""
    make_case.spoil = (
        ("return Sequential", "model = Net"),
        ("Linear(5, 3))", "Linear(5, 3))\n    model.odd = Linear(2, 2)\n    return model"),
        ("def build", net),
    )
    report = make_case.folder / "report.json"
    answer = verify(make_case.write(), "--json", str(report))
    assert (answer.status, answer.error) == (1, "")
    assert json.loads(report.read_text())["verdict"] == "incomplete"
    assert "odd.weight (2, 2) of the port has no partner in the reference" in report.read_text()
