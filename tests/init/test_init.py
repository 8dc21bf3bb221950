"""A first case from two files, written as users write them: pairs/ has ten styles."""

from __future__ import annotations

import dataclasses
import shutil
import textwrap
from pathlib import Path

import pytest

import isograd
from isograd.cli import main
from isograd.init.apis import load_apis
from isograd.init.sides import find_side
from isograd.init.values import Tensor, Value
from isograd.init.writing import MARKS
from isograd.verify.case import read_case

PAIRS = Path(__file__).parent / "pairs"
TAKEN = {
    # pair: (files, models, loss and optimizer of the reference, shapes of the inputs and targets)
    "class_only": ("net_torch net_mindspore", "SmallNet SmallNet", None, None, None, None),
    "build_function": ("model model_ms", "build build", "loss", "optimizer", None, None),
    "script_main": (
        "train train_ms",
        "Regressor Regressor",
        "(torch.nn.MSELoss())(output, target)",
        "torch.optim.Adam(model.parameters(), lr=0.001)",
        [(32, 12)],
        None,
    ),
    "argparse_script": (
        "main main_ms",
        "Net Net",
        "torch.nn.functional.nll_loss(output, target)",
        "torch.optim.Adadelta(model.parameters(), lr=1.0)",
        [(64, 1, 28, 28)],
        [(64,)],
    ),
    "factory_kwargs": (
        "models models_ms",
        "create_model create_model",
        None,
        None,
        [(2, 3, 24, 24)],
        None,
    ),
    "loss_module": (
        "net net_ms",
        "Tagger Tagger",
        "net.FocalLoss()(output, target)",
        "make_optimizer",
        None,
        None,
    ),
    "train_loop": (
        "train train_ms",
        "get_network get_network",
        "(torch.nn.CrossEntropyLoss(label_smoothing=0.1))(output, target)",
        "torch.optim.AdamW([{'params': [p for p in model.parameters() if p.ndim > 1], "
        "'weight_decay': 0.1}, {'params': [p for p in model.parameters() if p.ndim <= 1], "
        "'weight_decay': 0.0}], lr=0.0003)",
        [(8, 10)],
        [(8,)],
    ),
    "integers": ("lm lm_ms", "TinyLM TinyLM", "language_loss", None, None, None),
    "two_inputs": ("match match_ms", "get_model get_model", "criterion", None, None, None),
    "dict_output": (
        "detector detector_ms",
        "Detector Detector",
        "torch.nn.functional.cross_entropy(output['logits'], target)"
        " + 0.5 * torch.nn.functional.l1_loss(output['boxes'], target)",
        "torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=0.0001)",
        [(2, 3, 16, 16)],
        [(2, 8, 8), (2, 4, 8, 8)],
    ),
}


def _shapes(values: list[Value]) -> list[tuple[int, ...] | None]:
    return [value.shape if isinstance(value, Tensor) else None for value in values]


def _plain(text: str | None) -> str | None:
    """Without the parentheses that keep an expression together."""
    return None if text is None else text.replace("(", "").replace(")", "")


@pytest.mark.parametrize("pair", TAKEN)
def test_what_the_files_tell(pair: str, tmp_path: Path) -> None:
    """A first user: there is no `isograd init`."""
    files, models, loss, optimizer, inputs, targets = TAKEN[pair]
    folder = shutil.copytree(PAIRS / pair, tmp_path / pair)
    paths = [folder / f"{name}.py" for name in files.split()]
    report = isograd.init(*paths, folder / "case.toml", no_run=True)
    taken = {choice.key: choice.taken for choice in report.choices}
    assert f"{taken['reference model']} {taken['port model']}" == models
    assert _plain(taken["reference loss"]) == _plain(loss or "a stand-in")
    assert taken["reference optimizer"] == (optimizer or "a stand-in")
    case = read_case(folder / "case.toml")
    assert (case.reference.loss is None) == (case.port.loss is None)
    side = find_side(paths[0], load_apis())
    if inputs is not None:
        assert side.inputs is not None
        assert _shapes(list(side.inputs.values())) == inputs
    if targets is not None:
        assert side.loss is not None
        assert _shapes(list(side.loss.targets)) == targets


def test_a_case_that_was_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two inputs, one of them integers, and a target that are written nowhere."""
    folder = shutil.copytree(PAIRS / "two_inputs", tmp_path / "pair")
    monkeypatch.chdir(folder)
    assert main(["init", "match.py", "match_ms.py", "--quiet"]) == 0
    case = read_case(folder / "case.toml")
    assert [spec.shape for spec in case.inputs if hasattr(spec, "shape")] == [
        (2, 3, 32, 32),
        (2, 16),
    ]
    assert [spec.shape for spec in case.targets if hasattr(spec, "shape")] == [(2,)]
    assert sorted(path.name for path in folder.glob("*.py")) == [
        "case_port.py",
        "case_reference.py",
        "match.py",
        "match_ms.py",
    ]


@dataclasses.dataclass(frozen=True)
class Style:
    """A program, and what is found in it."""

    source: str
    model: str
    loss: str | None = None
    optimizer: str | None = None
    inputs: tuple[tuple[int, ...] | None, ...] = ()


HEAD = """
import torch
from torch import nn
import torch.nn.functional as F

class Net(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embed = nn.Embedding(config.words, config.width)
        self.head = nn.Linear(config.width, config.words)

    def forward(self, ids, targets=None):
        logits = self.head(self.embed(ids))
        return logits, None if targets is None else F.cross_entropy(logits.mT, targets)

    def make_optimizer(self, lr):
        return torch.optim.AdamW(self.parameters(), lr=lr)

class Settings:
    words: int = 20
    width: int = 8

class Rows(torch.utils.data.Dataset):
    def __init__(self, count):
        self.x, self.y = torch.randn(count, 5), torch.randint(0, 2, (count,))

    def __getitem__(self, index):
        return self.x[index], self.y[index]
"""
STYLES = {
    "loss-in-the-network": Style(
        """
model = Net(Settings(width=4))
optimizer = model.make_optimizer(3e-4)
ids = torch.randint(0, 20, (2, 6))
logits, loss = model(ids, torch.roll(ids, -1, 1))
loss.backward()
""",
        "users_file.Net(users_file.Settings(width=4))",
        "output[1]",
        "model.make_optimizer(0.0003)",
        ((2, 6), (2, 6)),
    ),
    "configuration-of-a-class": Style("", "users_file.Net(config=users_file.Settings())"),
    "networks-in-a-network": Style(
        """
width = 2 * 4
layers = [nn.Linear(5, width), nn.ReLU()]
model = nn.Sequential(*layers, nn.Sequential(nn.Linear(width, 2)))
model(torch.zeros(3, 5))
""",
        "torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.ReLU(), "
        "torch.nn.Sequential(torch.nn.Linear(8, 2)))",
        inputs=((3, 5),),
    ),
    "rows-of-a-data-set-and-a-constant-in-the-loss": Style(
        """
model = nn.Linear(5, 2)
criterion = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0]))
for x, y in torch.utils.data.DataLoader(Rows(100), batch_size=16):
    criterion(model(x), y).backward()
""",
        "torch.nn.Linear(5, 2)",
        "users_file.criterion(output, target)",
        inputs=((16, 5),),
    ),
    "keyword-arguments-from-a-batch": Style(
        """
model = nn.Bilinear(4, 4, 2)
batch = {"input1": torch.rand(2, 4), "input2": torch.rand(2, 4)}
(0.5 * F.mse_loss(model(**batch), torch.ones(2, 2))).backward()
""",
        "torch.nn.Bilinear(4, 4, 2)",
        "0.5 * torch.nn.functional.mse_loss(output, target)",
        inputs=((2, 4), (2, 4)),
    ),
}


@pytest.mark.parametrize("name", STYLES)
def test_programs(name: str, tmp_path: Path) -> None:
    style = STYLES[name]
    path = tmp_path / "01-train.py"  # a name that no import statement can hold
    path.write_text(HEAD + style.source)
    side = find_side(path, load_apis())
    assert side.model is not None
    assert side.model.code == style.model
    loss = None if side.loss is None else MARKS.sub("target", side.loss.code)
    assert _plain(loss) == _plain(style.loss)
    assert (side.optimizer and side.optimizer.code) == style.optimizer
    assert _shapes(list((side.inputs or {}).values())) == list(style.inputs)


TORCH = """
    from torch import nn

    class Net(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            self.layer = nn.Linear(width, depth)

        def forward(self, x):
            return self.layer(x)
"""


@pytest.mark.parametrize(
    ("port", "said"),
    [
        pytest.param(
            TORCH.replace("torch", "mindspore").replace("Module", "Cell"),
            "net.py: Net needs width; write it under kwargs",
            id="arguments-that-nobody-gives",
        ),
        pytest.param(
            TORCH.replace("torch", "mindspore").replace("Module", "Cell")
            + "\n    class Other(nn.Cell):\n        pass\n",
            "port.py: Other is compared; it also defines Net",
            id="two-networks",
        ),
    ],
)
def test_what_cannot_be_known_is_said(port: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(textwrap.dedent(TORCH))
    (tmp_path / "port.py").write_text(textwrap.dedent(port))
    report = isograd.init(
        tmp_path / "net.py", tmp_path / "port.py", tmp_path / "case.toml", no_run=True
    )
    assert said in report.unknown
    assert f"# - {said}" in (tmp_path / "case.toml").read_text()


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        pytest.param("x = 1\n", "holds no network that isograd can see", id="no-network"),
        pytest.param("def (\n", "is not valid Python", id="syntax"),
        pytest.param("x = 'a' * 10**9\nwhile True: x = x + x\n", "holds no network", id="endless"),
    ],
)
def test_bad_files(reference: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(reference)
    with pytest.raises(isograd.IsogradError, match=message):
        isograd.init(tmp_path / "net.py", tmp_path / "net.py", tmp_path / "case.toml")


def test_a_case_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(textwrap.dedent(TORCH))
    (tmp_path / "case.toml").write_text("mine")
    with pytest.raises(isograd.IsogradError, match="is there already"):
        isograd.init(tmp_path / "net.py", tmp_path / "net.py", tmp_path / "case.toml")
    assert (tmp_path / "case.toml").read_text() == "mine"
