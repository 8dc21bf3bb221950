"""Networks that return dataclasses, named tuples and dictionaries train by compiled steps."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.running import assert_follows, convert

HEAD = """
import copy
from collections import OrderedDict, namedtuple
from dataclasses import dataclass, field
from typing import NamedTuple, Optional

import torch
from torch import nn
from torch.nn import functional as F
"""
NET = """

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l, self.s = nn.Linear(4, 4), nn.Linear(4, 3)
        for i, p in enumerate(self.parameters()):
            p.data.copy_(torch.sin(torch.arange(p.numel()).view(p.shape) * 1.3 + i) * 0.3)

    def forward(self, x, y=None):
        FORWARD


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.2)
x = torch.cos(torch.arange(20.0)).view(5, 4)
y = torch.sin(torch.arange(15.0)).view(5, 3)
for _ in range(3):
    out = net(x, y)
    LOSS
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
    BEHIND
"""
DATACLASS = """
@dataclass
class Out:
    scores: torch.Tensor
    loss: Optional[torch.Tensor] = None
    hidden: Optional[torch.Tensor] = field(default=None)
"""
OPTIONAL = """
h = torch.tanh(self.l(x))
s = self.s(h)
if y is None:
    return Out(s)
return Out(s, loss=((s - y) ** 2).mean())
"""


def program(classes: str, forward: str, loss: str = "loss = out.loss", behind: str = "") -> str:
    """A training script with these classes of records, this forward and these lines behind it."""
    text = HEAD + textwrap.dedent(classes) + NET
    for word, indent, lines in (
        ("FORWARD", 8, forward), ("LOSS", 4, loss), ("BEHIND", 4, behind or "pass")
    ):  # fmt: skip
        own = textwrap.indent(textwrap.dedent(lines).strip(), " " * indent).strip()
        text = text.replace(word, own, 1)
    return text


COMPILED = [
    pytest.param(
        DATACLASS,
        OPTIONAL,
        "loss = out.loss",
        """
        print(out.scores.sum().item(), float(out.hidden is None), sep="\\n")
        print(float(isinstance(out, Out)), float(net(x).loss is None), sep="\\n")
        """,
        id="a dataclass whose loss is optional",
    ),
    pytest.param(
        """
        @dataclass
        class Base:
            hidden: torch.Tensor = None
            pair: tuple = ()

        @dataclass
        class Head(Base):
            score: torch.Tensor = None

        @dataclass
        class Full:
            head: Head = None
            others: list = None
        """,
        """
        h = torch.tanh(self.l(x))
        head = Head(hidden=h, pair=(h * 2, None), score=self.s(h))
        if isinstance(head, tuple):
            h = h * 100
        return Full(head, others=[h])
        """,
        "loss = ((out.head.score - y) ** 2).mean() + out.head.pair[0].abs().mean()",
        """
        print(out.head.score.sum().item(), out.others[0].sum().item(), sep="\\n")
        print(float(out.head.pair[1] is None), float(isinstance(out.head, Base)), sep="\\n")
        """,
        id="dataclasses in dataclasses, derived from another, with None in a tuple",
    ),
    pytest.param(
        """
        @dataclass
        class Parts:
            def to_tuple(self):
                return tuple(v for v in vars(self).values() if v is not None)

            def __getitem__(self, key):
                if isinstance(key, str):
                    return getattr(self, key)
                return self.to_tuple()[key]

        @dataclass
        class Out(Parts):
            first: torch.Tensor = None
            second: torch.Tensor = None
            third: torch.Tensor = None

        class Inner(nn.Module):
            def forward(self, x):
                return Out(second=torch.tanh(x), third=x * 0.5)
        """,
        """
        made = Inner()(self.l(x))
        h = made[0] + made["third"] + made[1:][0]
        return Out(self.s(h), third=h)
        """,
        "loss = ((out[0] - y) ** 2).mean()",
        "print(out[1].sum().item(), len(out.to_tuple()), sep='\\n')",
        id="elements of a dataclass by its own rule",
    ),
    pytest.param(
        """
        class Latent(NamedTuple):
            mean: torch.Tensor
            logvar: torch.Tensor

        class Out(NamedTuple):
            scores: torch.Tensor
            latent: Latent
            extra: Optional[torch.Tensor] = None

        def penalty(out):
            return (out.latent.mean ** 2).mean() + out.latent.logvar.exp().mean()
        """,
        """
        h = self.l(x)
        latent = Latent(h, logvar=h * 0.1)
        mean, logvar = latent
        return Out(self.s(mean + latent.logvar), latent)
        """,
        "loss = ((out.scores - y) ** 2).mean() + penalty(out)",
        """
        print(out.latent.mean.sum().item(), out[0].sum().item(), sep="\\n")
        print(float(out.extra is None), len(out), sep="\\n")
        """,
        id="named tuples in named tuples",
    ),
    pytest.param(
        'Out = namedtuple("Out", "scores hidden", defaults=(None,))',
        "h = self.l(x)\nreturn Out(scores=self.s(h))",
        "loss = ((out.scores - y) ** 2).mean()",
        "print(float(out.hidden is None))",
        id="a named tuple that a call makes",
    ),
    pytest.param(
        "",
        """
        s = self.s(self.l(x))
        return {"near": ((s - y) ** 2).mean(), "small": s.abs().mean()}
        """,
        "loss = sum(one for one in out.values())",
        "for key, one in out.items():\n    print(one.item(), len(key), sep='\\n')",
        id="a dictionary of losses",
    ),
    pytest.param(
        "",
        """
        result = OrderedDict()
        result["out"] = self.s(self.l(x))
        result["aux"] = self.s(x)
        return result
        """,
        'loss = ((out["out"] - y) ** 2).mean() + 0.5 * out["aux"].abs().mean()',
        "print(out['aux'].sum().item(), *map(len, out), sep='\\n')",
        id="an OrderedDict that is filled",
    ),
    pytest.param(
        "",
        """
        s = self.s(self.l(x))
        return OrderedDict([("out", s), ("aux", s * 2)], more=s * 3)
        """,
        'loss = ((out["out"] - y) ** 2).mean() + 0.5 * out["more"].abs().mean()',
        "print(out['aux'].sum().item(), *map(len, out), sep='\\n')",
        id="an OrderedDict of pairs",
    ),
]


@pytest.mark.parametrize(("classes", "forward", "loss", "behind"), COMPILED)
def test_a_network_that_returns_it_learns_as_in_torch_by_a_compiled_step(
    classes: str, forward: str, loss: str, behind: str, tmp_path: Path
) -> None:
    converted = assert_follows(program(classes, forward, loss, behind), tmp_path)
    assert "training_step(" in converted.text


EAGER = [
    pytest.param(
        DATACLASS.replace("default=None", "default_factory=list"),
        OPTIONAL,
        "Out is made in a step, and a field has default_factory",
        id="a default that is made anew",
    ),
    pytest.param(
        DATACLASS + "\n    def __post_init__(self):\n        self.hidden = self.scores * 2\n",
        OPTIONAL,
        "Out is made in a step, and it has __post_init__",
        id="fields that are made of others",
    ),
    pytest.param(
        DATACLASS,
        OPTIONAL.replace("return Out(s, loss", "made = Out(s)\nmade.loss = s\nreturn Out(s, loss"),
        "made.loss may change a record in a step",
        id="a field that is set",
    ),
    pytest.param(
        DATACLASS,
        OPTIONAL.replace("return Out(s)", "return copy.copy(Out(s))"),
        "copy.copy(Out(s)) may ask a record in a step",
        id="a copy",
    ),
    pytest.param(
        DATACLASS,
        OPTIONAL.replace("if y", "if hasattr(h, 'scores') or y"),
        "hasattr(h, 'scores') may ask a record in a step",
        id="a question for a field",
    ),
    pytest.param(
        DATACLASS,
        OPTIONAL.replace("if y", "if isinstance(h, Out) or y"),
        "isinstance(h, Out) asks for a record in a step",
        id="a question for the class",
    ),
    pytest.param(
        DATACLASS,
        OPTIONAL.replace("return Out(s)", "given = (s,)\n    return Out(*given)"),
        "what Out is made of is not known",
        id="values that are spread",
    ),
    pytest.param(
        DATACLASS.replace("hidden:", "data:"),
        OPTIONAL,
        "Out is made in a step, and a field is named data",
        id="a field with the name of a tensor's",
    ),
    pytest.param(
        DATACLASS.replace("class Out:", "class Out(OrderedDict):"),
        OPTIONAL,
        "Out is made in a step, and Out is derived from OrderedDict",
        id="a class derived from a dictionary",
    ),
    pytest.param(
        "class Out(NamedTuple):\n    scores: torch.Tensor\n    loss: torch.Tensor\n"
        "    def both(self):\n        return self._asdict()\n",
        OPTIONAL.replace("return Out(s)", "return Out(s, s)"),
        "self._asdict is none of a tuple's",
        id="a named tuple as a dictionary",
    ),
    pytest.param(
        "def last(out):\n    out.move_to_end('loss')\n",
        "s = self.s(self.l(x))\nreturn OrderedDict(loss=((s - y) ** 2).mean())",
        "Net is no part of a static graph (ordered_dict). "
        "An OrderedDict comes out of the static graph as a dictionary. Use a dictionary.",
        id="an OrderedDict whose order changes",
    ),
]


@pytest.mark.parametrize(("classes", "forward", "reason"), EAGER)
def test_what_is_not_known_of_a_record_keeps_the_training_eager(
    classes: str, forward: str, reason: str, tmp_path: Path
) -> None:
    loss = 'loss = out["loss"]' if "OrderedDict(loss" in forward else "loss = out.loss"
    converted = convert(program(classes, forward, loss), tmp_path)
    found = [f for f in converted.report.findings if f.code == "eager-training"]
    assert [f.message.partition(": ")[2] for f in found] == [reason]
    assert "training_step(" not in converted.text
