"""What Python draws or counts is asked in each round, and not once when a step is compiled."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.running import LAYERS, assert_follows, convert

HEAD = (
    "import functools, itertools, random\nimport numpy as np\n"
    + LAYERS
    + """
rng = np.random.RandomState(0)
random.seed(0)
net = make(0)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""
)
LOOP = """
for x in X:
    opt.zero_grad()
    out = net(x + EXPRESSION)
    loss = (out ** 2).mean()
    loss.backward()
    opt.step()
    print(loss.item())
"""
ARRAY = "torch.from_numpy(rng.randn(4, 4).astype('float32'))"
NETWORK = """
class Noisy(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner, self.rng = inner, random.Random(0)

    def forward(self, x):
        return self.inner(x + NUMBER)


noisy = Noisy(net)
"""
DRAWER = """
class Drawer:
    def NAME(self):
        return rng.randn()


drawer = Drawer()
"""
KEEPER = """
def keeper():
    kept = [0]

    def count():
        kept[0] += 1
        return kept[0] * 0.1

    return count


count = keeper()
"""
TRAINER = """
class Trainer:
    def __init__(self):
        self.rng = np.random.RandomState(1)

    def draw(self):
        return self.rng.rand()

    def step(self, x):
        opt.zero_grad()
        loss = (net(x + self.draw()) ** 2).mean()
        loss.backward()
        opt.step()
        return loss.item()


trainer = Trainer()
for x in X:
    print(trainer.step(x))
"""
#: Definitions and what is added to the input; it is computed before the step.
OUTSIDE = {
    "lambda": (f"noise = lambda: {ARRAY}", "noise()"),
    "function": (f"def drawn():\n    return {ARRAY}\n", "drawn()"),
    "bound method": ("rand = rng.rand", "torch.tensor(rand(4, 4), dtype=torch.float32)"),
    "number": ("", "random.random()"),
    "integer": ("count = itertools.count()", "next(count)"),
    "generator": (
        f"def endless():\n    while True:\n        yield {ARRAY}\n\n\ni = endless()",
        "next(i)",
    ),
    "element": ("numbers = [0.1, 0.2, 0.3]", "numbers.pop(0)"),
    "method": (DRAWER.replace("NAME", "draw"), "drawer.draw()"),
    "twice": ("", f"{ARRAY} * {ARRAY}"),
    "in order": ("", f"{ARRAY} - x * {ARRAY.replace('randn', 'rand')}"),
}
#: The rest of a program that stays eager, with what is said.
EAGER = {
    "object": (
        DRAWER.replace("NAME", "__call__") + LOOP.replace("EXPRESSION", "drawer()"),
        "numpy.random.RandomState runs in Python",
    ),
    "attribute": (
        "holder = type('H', (), {})()\nholder.draw = lambda: rng.rand()\n"
        + LOOP.replace("EXPRESSION", "holder.draw()"),
        "numpy.random.RandomState runs in Python",
    ),
    "partial": (
        "draw = functools.partial(rng.uniform, 0, 1)\n" + LOOP.replace("EXPRESSION", "draw()"),
        "numpy.random.RandomState runs in Python",
    ),
    "closure": (KEEPER + LOOP.replace("EXPRESSION", "count()"), "count changes what it keeps"),
    "network": (
        NETWORK.replace("NUMBER", "rng.rand()") + LOOP.replace("net(x + EXPRESSION)", "noisy(x)"),
        "numpy.random.RandomState runs in Python",
    ),
    "network's own": (
        NETWORK.replace("NUMBER", "self.rng.random()")
        + LOOP.replace("net(x + EXPRESSION)", "noisy(x)"),
        "random.Random runs in Python",
    ),
    "handed on": (
        f"def run(draw):\n{indent(LOOP, '    ').replace('EXPRESSION', 'draw()')}\n\n"
        "run(lambda: rng.rand())",
        "the compiler finds no text of lambda: rng.rand()",
    ),
    "between": (
        LOOP.replace("EXPRESSION", ARRAY).replace(
            "    loss =", "    z = rng.rand()\n    loss = z *"
        ),
        "and more between it and the loss",
    ),
    "method": (TRAINER, "numpy.random.RandomState runs in Python"),
}


def test_what_is_drawn_is_an_input_of_the_step(tmp_path: Path) -> None:
    loops = [f"{made}\n{LOOP.replace('EXPRESSION', drawn)}" for made, drawn in OUTSIDE.values()]
    text = assert_follows(HEAD + "\n".join(loops), tmp_path).text
    assert text.count("@ms.jit") == len(OUTSIDE)


@pytest.mark.parametrize(("text", "said"), EAGER.values(), ids=EAGER)
def test_what_is_drawn_in_the_graph_keeps_a_loop_eager(
    text: str, said: str, tmp_path: Path
) -> None:
    report = convert(HEAD + text, tmp_path).report
    (why,) = [f.message for f in report.findings if f.code == "eager-training"]
    assert said in why


LAMBDA = "lambda out, x: ((out - x) ** 2).mean()"
TWO_LINES = "lambda out, x:\n        ((out - x) ** 2).mean()"
#: Where a lambda is bound, how it is called, and whether the compiler finds its text.
BOUND = {
    "name": ("criterion = LAMBDA", "criterion", True),
    "attribute": ("holder = type('H', (), {})()\nholder.loss = LAMBDA", "holder.loss", True),
    "annotated": ("criterion: object = LAMBDA", "criterion", True),
    "in brackets": ("criterion = (\n    LAMBDA\n)", "criterion", True),
    "bracket behind it": ("criterion = (\n    LAMBDA)", "criterion", False),
    "two lines": (f"criterion = ({TWO_LINES})", "criterion", True),
    "two lines in brackets": (f"criterion = (\n    {TWO_LINES}\n)", "criterion", False),
    "element": ("table = {'loss': LAMBDA}", "table['loss']", False),
    "choice": ("criterion = (LAMBDA) if net else None", "criterion", False),
    "second on its line": ("one = 1; criterion = LAMBDA", "criterion", False),
    "beside its condition": ("if net: criterion = LAMBDA", "criterion", False),
}


@pytest.mark.parametrize(("bound", "called", "is_compiled"), BOUND.values(), ids=BOUND)
def test_lambda_is_compiled_where_its_lines_are_one_statement(
    bound: str, called: str, is_compiled: bool, tmp_path: Path
) -> None:
    loop = LOOP.replace("(out ** 2).mean()", f"{called}(out, x)").replace("EXPRESSION", "0.1")
    ported = assert_follows(f"{HEAD}{bound.replace('LAMBDA', LAMBDA)}\n{loop}", tmp_path)
    assert ("@ms.jit" in ported.text) == is_compiled


def test_lambda_that_draws_nothing_is_compiled(tmp_path: Path) -> None:
    loop = LOOP.replace("(out ** 2).mean()", "criterion(out, x)").replace("EXPRESSION", "0.1")
    text = f"{HEAD}criterion = lambda out, x: ((out - x) ** 2).mean()\n{loop}"
    assert "@ms.jit" in convert(text, tmp_path).text
