"""A step is not given what a network has computed: its gradients would end where that comes in."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.running import LAYERS, assert_follows, convert

HEAD = (
    LAYERS
    + """body, head = make(0), make(1)
opt = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=1.0)


def fit(features, head, y, opt):
    out = head(features)
    loss = nn.functional.cross_entropy(out, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.item()
"""
)
OBJECT = """
class Fit:
    def __init__(self, head, opt):
        self.head, self.opt = head, opt

    def METHOD(self, x, y):
        x = self.head(x)
        loss = nn.functional.cross_entropy(x, y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()


made = Fit(head, opt)
"""
#: What calls the round, with what comes from a network.
GRAPHS = {
    "call": "for x, y in zip(X, Y):\n    print(fit(body(x), head, y, opt))",
    "name": "for x, y in zip(X, Y):\n    h = body(x) * 2\n    print(fit(h, head, y, opt))",
    "keyword": "for x, y in zip(X, Y):\n    print(fit(head=head, y=y, opt=opt, features=body(x)))",
    "star": "for x, y in zip(X, Y):\n    all = (body(x), head, y, opt)\n    print(fit(*all))",
    "list": (
        "hs = [body(x) for x in X]\nfor h, y in zip(hs[:1], Y):\n    print(fit(h, head, y, opt))"
    ),
    "function": (
        "def encode(x):\n    return body(x).relu()\n\n\n"
        "for x, y in zip(X, Y):\n    print(fit(encode(x), head, y, opt))"
    ),
    "passed on": (
        "def outer(x, y):\n    return fit(x, head, y, opt)\n\n\n"
        "for x, y in zip(X, Y):\n    print(outer(body(x), y))"
    ),
    "network given": (
        "def run(net):\n    for x, y in zip(X, Y):\n        print(fit(net(x), head, y, opt))\n\n\n"
        "run(body)"
    ),
    "handed on": (
        "def run(step):\n    for x, y in zip(X, Y):\n        "
        "print(step(body(x), head, y, opt))\n\n\nrun(fit)"
    ),
    "put": (
        "for x, y in zip(X, Y):\n    hs = []\n    hs.append(body(x))\n"
        "    print(fit(hs[0], head, y, opt))"
    ),
}
#: What calls it with data alone.
DATA = {
    "loop": "for x, y in zip(X, Y):\n    print(fit(x, head, y, opt))",
    "moved": "for x, y in zip(X, Y):\n    x = x.to('cpu')\n    print(fit(x, head, y, opt))",
    "loader": (
        "from torch.utils.data import DataLoader, TensorDataset\n"
        "for x, y in DataLoader(TensorDataset(X, Y)):\n    print(fit(x[0], head, y[0], opt))"
    ),
    "detached": "for x, y in zip(X, Y):\n    print(fit(body(x).detach(), head, y, opt))",
    "again": (
        "for x, y in zip(X, Y):\n    h = body(x)\n    h = h.detach()\n    "
        "print(fit(h, head, y, opt))"
    ),
    "without": (
        "for x, y in zip(X, Y):\n    with torch.no_grad():\n        h = body(x)\n"
        "    print(fit(h, head, y, opt))"
    ),
    "function": (
        "def moved(x, where):\n    return x.to(where)\n\n\n"
        "for x, y in zip(X, Y):\n    print(fit(moved(x, 'cpu'), head, y, opt))\n"
        "print(moved(body(x), 'cpu').sum().item())"
    ),
    "epoch": (
        "def epoch(net, data, opt):\n    for x, y in data:\n        "
        "print(fit(x, net, y, opt))\n\n\nepoch(head, zip(X, Y), opt)"
    ),
    "class": (
        "class Data:\n    def __getitem__(self, i):\n        return X[i], Y[i]\n\n\n"
        "data = Data()\nfor i in range(3):\n    x, y = data[i]\n    print(fit(x, head, y, opt))"
    ),
}


@pytest.mark.parametrize("calls", GRAPHS.values(), ids=GRAPHS)
def test_round_that_a_network_gives_to_stays_eager(calls: str, tmp_path: Path) -> None:
    text = f"{HEAD}\n\n{calls}\n"
    report = convert(text, tmp_path).report
    said = [f for f in report.findings if f.code == "eager-training"]
    assert len(said) == 1
    assert said[0].line == text.split("\n").index("    out = head(features)") + 1
    assert "computed by a network before the step: line" in said[0].message


@pytest.mark.parametrize("calls", DATA.values(), ids=DATA)
def test_round_that_is_given_data_compiles(calls: str, tmp_path: Path) -> None:
    assert "@ms.jit" in convert(f"{HEAD}\n\n{calls}\n", tmp_path).text


@pytest.mark.parametrize("name", ["call", "list"])
def test_gradients_reach_what_was_before(name: str, tmp_path: Path) -> None:
    shown = "print(body.weight.norm().item())"
    assert_follows(f"{HEAD}\n\n{GRAPHS[name]}\n{shown}\n", tmp_path)


@pytest.mark.parametrize(("method", "call"), [("__call__", "made"), ("run", "made.run")])
@pytest.mark.parametrize(("value", "is_compiled"), [("body(x)", False), ("x", True)])
def test_method_is_a_round(
    method: str, call: str, value: str, *, is_compiled: bool, tmp_path: Path
) -> None:
    calls = f"for x, y in zip(X, Y):\n    print({call}({value}, y))\n"
    text = f"{HEAD}\n{OBJECT.replace('METHOD', method)}\n{calls}"
    assert ("@ms.jit" in convert(text, tmp_path).text) is is_compiled


def test_round_that_nothing_calls_compiles(tmp_path: Path) -> None:
    assert "@ms.jit" in convert(HEAD, tmp_path).text


def test_what_is_not_known_stays_eager(tmp_path: Path) -> None:
    calls = "def run(data):\n    for y in data:\n        fit(data.next_batch(), head, y, opt)\n"
    report = convert(f"{HEAD}\n\n{calls}", tmp_path).report
    (said,) = [f for f in report.findings if f.code == "eager-training"]
    assert "features may be computed by a network before the step: line" in said.message


def test_attribute_that_a_network_has_given_stays_eager(tmp_path: Path) -> None:
    text = OBJECT.replace("METHOD", "run").replace("self, x, y", "self, y")
    text = text.replace("x = self.head(x)", "x = self.head(self.given)")
    text += "for x, y in zip(X, Y):\n    made.given = body(x)\n    print(made.run(y))\n"
    follows = assert_follows(f"{HEAD}\n{text}", tmp_path)
    assert "@ms.jit" not in follows.text


WRAPPER = """
class Warm:
    def __init__(self, inner):
        self.inner, self.n = inner, 0

    def step(self):
        self.n += 1
        for group in self.inner.param_groups:
            group["lr"] = 0.1 * self.n
        self.inner.step()

    def zero_grad(self):
        self.inner.zero_grad()


warm = Warm(opt)
for x, y in zip(X, Y):
    print(fit(x, head, y, warm))
"""


def test_wrapper_of_an_optimizer_is_none(tmp_path: Path) -> None:
    follows = assert_follows(HEAD + WRAPPER, tmp_path)
    (said,) = [f for f in follows.report.findings if f.code == "eager-training"]
    assert "opt is a Warm, no optimizer of torch's: script.py, line" in said.message
