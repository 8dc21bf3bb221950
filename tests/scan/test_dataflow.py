"""Which calls are methods of tensors, and which stay unknown."""

from __future__ import annotations

import pytest
from tests.scan.support import Scanner

HEAD = "import torch\nimport torch.nn as nn\nfrom typing import *\n"
CLASS = HEAD + "class Net(nn.Module):\n"


def _net(*lines: str) -> str:
    return CLASS + "\n".join(f"    {line}" for line in lines)


TABLE = {
    "annotated parameter": (HEAD + "def f(x: torch.Tensor):\n    x.add(1)", {"Tensor.add"}),
    "optional": (HEAD + "def f(x: Optional[torch.Tensor] = None):\n    x.add(1)", {"Tensor.add"}),
    "new union": (HEAD + "def f(x: torch.Tensor | None):\n    x.add(1)", {"Tensor.add"}),
    "list element": (HEAD + "def f(x: List[torch.Tensor]):\n    x[0].add(1)\n    x.index(2)",
                     {"Tensor.add"}),
    "tuple parts": (HEAD + "def f(p: Tuple[int, torch.Tensor]):\n    a, b = p\n    b.add(a.add)",
                    {"Tensor.add"}),
    "dictionary": (HEAD + "def f(d: Dict[str, torch.Tensor]):\n"
                   "    for k, v in d.items():\n        v.add(k.index(1))", {"Tensor.add"}),
    "constructor": (HEAD + "x = torch.zeros(3)\nx.add(1)", {"Tensor.add"}),
    "result of a function": (HEAD + "x = torch.relu(y).add(1)", {"Tensor.add"}),
    "gradients": (HEAD + "g, = torch.autograd.grad(l, w)\ng.add(1)", {"Tensor.add"}),
    "padded sequences": (
        HEAD + "x, n = nn.utils.rnn.pad_packed_sequence(p)\nx.add(n)", {"Tensor.add"}
    ),
    "parameters of a list": (
        _net("def __init__(self):", "    self.w = nn.ParameterList(make())",
             "def f(self):", "    return [w.add(1) for w in self.w]"),
        {"Tensor.add"},
    ),
    "parameters by their names": (
        _net("def __init__(self):", "    self.w = nn.ParameterDict(make())",
             "def f(self):", "    return [self.w[k].add(k.index(1)) for k in self.w]"),
        {"Tensor.add"},
    ),
    "parts by their names": (
        HEAD + "v = torch.topk(x, 3).values\nv.add(1)\ntorch.linalg.svd(x).S.add(1)\n"
        "m = torch.ones(3, 3).max(1)\nm[0].add(m.indices.add(1))", {"Tensor.add", "Tensor.max"}),
    "parts of what has no such part": (
        HEAD + "torch.sort(x).solution.add(1)\n{1: x}.values.add(1)\nbag.values.add(1)", set()),
    "several results": (HEAD + "a, b = torch.topk(x, 3)\na.add(b)", {"Tensor.add"}),
    "shape is no tensor": (HEAD + "def f(x: torch.Tensor):\n    x.shape.index(1)",
                           {"Tensor.shape"}),
    "arithmetic": (HEAD + "x = 1 + torch.ones(2)\nx.add(1)", {"Tensor.add"}),
    "forward argument": (_net("def forward(self, x):", "    return x.add(1)"), {"Tensor.add"}),
    "forward argument by a string": (
        _net("def forward(self, d):", "    d['x'].add(1)",
             "    return [v.add(1) for v in d.values()]"),
        {"Tensor.add"},
    ),
    "forward argument with items": (
        _net("def forward(self, d):", "    e = {k: v.add(k.index(1)) for k, v in d.items()}",
             "    return next(iter(d.values())).add(d.get('y'))"),
        {"Tensor.add"},
    ),
    "result of a layer": (
        _net("def __init__(self, n):", "    self.l = nn.Linear(1, n)",
             "def forward(self, d: dict):", "    return self.l(d).add(1)"),
        {"Tensor.add"},
    ),
    "layer made after use": (
        _net("def forward(self, d: dict):", "    return self.l(d).add(1)",
             "def __init__(self):", "    self.l = nn.Linear(1, 2)"),
        {"Tensor.add"},
    ),
    "buffer": (
        _net("def __init__(self):", "    self.register_buffer('b', make())",
             "def forward(self, d: dict):", "    return self.b.add(1)"),
        {"Tensor.add"},
    ),
    "named child": (
        _net("def __init__(self):", "    self.add_module('l', nn.Linear(1, 2))",
             "def forward(self, d: dict):", "    return self.l(d).add(1)"),
        {"Tensor.add"},
    ),
    "layers in a list": (
        _net("def __init__(self):", "    self.ls = nn.ModuleList()",
             "def forward(self, d: dict):", "    for l in self.ls:", "        d = l(d)",
             "    return d.add(1)"),
        {"Tensor.add"},
    ),
    "recurrent layer": (
        _net("def __init__(self):", "    self.l = nn.LSTM(1, 2)",
             "def forward(self, d: dict):", "    y, s = self.l(d)", "    return y.add(1)"),
        {"Tensor.add"},
    ),
    "helper with its caller's argument": (
        HEAD + "def h(z):\n    return z.add(1)\ndef f(x: torch.Tensor):\n    h(x).mul(2)",
        {"Tensor.add", "Tensor.mul"},
    ),
    "method of the same class": (
        _net("def forward(self, x):", "    return self.h(x)", "def h(self, z):",
             "    return z.add(1)"),
        {"Tensor.add"},
    ),
    "method before the one that calls it": (
        HEAD + "class A:\n    def h(self, z):\n        return z.add(1)\n"
        "    def f(self, x: torch.Tensor):\n        return self.h(x)",
        {"Tensor.add"},
    ),
    "attribute of a new object": (
        HEAD + "class A:\n    def __init__(self):\n        self.t = torch.ones(2)\n"
        "def f(z):\n    return z.add(1)\nf(A().t)",
        {"Tensor.add"},
    ),
    "positions as rows": (
        HEAD + "def f(x: torch.Tensor):\n    return torch.nonzero(x, as_tuple=False).add(1)",
        {"Tensor.add"},
    ),
    "positions by axes": (
        HEAD + "def f(x: torch.Tensor):\n    return torch.nonzero(x, as_tuple=True)[0].add(1)",
        {"Tensor.add"},
    ),
    "property": (
        _net("@property", "def w(self) -> torch.Tensor:", "    return self.v",
             "def f(self):", "    return self.w.add(1)"),
        {"Tensor.add"},
    ),
    "list that grows": (
        _net("def forward(self, x):", "    ys = []", "    ys.append(x)",
             "    return ys[-1].add(1)"),
        {"Tensor.add"},
    ),
    "either branch": (
        _net("def forward(self, x, d: dict):", "    y = d if d else x", "    if d:",
             "        y = x", "    return y.add(1)"),
        {"Tensor.add"},
    ),
    "isinstance": (HEAD + "def f(x):\n    if isinstance(x, torch.Tensor):\n        x.add(1)",
                   {"Tensor.add"}),
    "no list": (
        HEAD + "def f(nets):\n    if not isinstance(nets, list):\n        nets = [nets]\n"
        "    for net in nets:\n        net.add(1)\nf([torch.ones(2)])", {"Tensor.add"}),
    "tensor's own name": (HEAD + "def f(x):\n    x.unsqueeze(1)", {"Tensor.unsqueeze"}),
    "torch's own keyword": (HEAD + "import numpy\ndef f(x):\n    x.sum(dim=1)", {"Tensor.sum"}),
    "method of a class of the file": (
        HEAD + "class Memory:\n    def size(self): return 3\n"
        "def f(m):\n    m.size()\n    m.view(2)", {"Tensor.view"}),
    "text is no tensor": (HEAD + "'a b'.split()\nopen('f').read().index('x')", set()),
    "path is no tensor": (HEAD + "from pathlib import Path\nPath('a').add(1)", set()),
    "array is no tensor": (HEAD + "import numpy as np\nnp.ones(3).add(1).view(2)", set()),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_methods(scanner: Scanner, name: str) -> None:
    code, expected = TABLE[name]
    scanner.write(main=code)
    found = {api for api in scanner.apis() if api.startswith("Tensor.")}
    assert found == expected


@pytest.mark.parametrize(
    "line", ["x.reshape(2)", "x.transpose(0, 1)", "x.to(d)", "x.shape", "x.split(n)"]
)
def test_what_is_unsure_is_unknown(scanner: Scanner, line: str) -> None:
    scanner.write(main=f"{HEAD}import numpy as np\ndef f(x, d, n):\n    {line}\n")
    (use,) = scanner.scan().files[0].uses
    assert (use.how, use.answer.status) == ("unsure", "unknown")
    assert use.answer.note == "the type of the receiver is not known"


def test_deep_calls_and_recursion_end(scanner: Scanner) -> None:
    chain = "\n".join(f"def f{i}(x):\n    return f{i + 1}(x)" for i in range(200))
    scanner.write(main=f"{HEAD}{chain}\ndef f200(x):\n    return f0(x)\nf0(torch.ones(2)).add(1)\n")
    assert "ones" in scanner.apis()


def test_methods_of_the_files_classes_are_not_surely_a_tensors(scanner: Scanner) -> None:
    code = "class Memory:\n    def size(self): return 3\ndef f(m):\n    return m.size()"
    scanner.write(main=HEAD + code)
    assert scanner.apis() == set()
    assert scanner.apis(unsure=True) == {"Tensor.size"}


@pytest.mark.parametrize(
    "imported",
    ["from data import Graph", "import data", "from data import *", "from data import other"],
)
def test_methods_of_imported_classes_are_not_surely_a_tensors(
    scanner: Scanner, imported: str
) -> None:
    data = "class Graph:\n    def clone(self): return self\ndef other(): return 1\n"
    scanner.write(data=data, main=f"{HEAD}{imported}\ndef f(items):\n    return items[1].clone()")
    assert "Tensor.clone" not in scanner.apis()
    assert "Tensor.clone" in scanner.apis(unsure=True)


@pytest.mark.parametrize(
    "imported",
    [
        "from tools import graph_of",
        "import tools",
        "from tools.parts import graph_of",
        "from tools import parts",
        "from tools.deep import graph_of",
    ],
)
def test_packages_have_the_classes_that_they_import(scanner: Scanner, imported: str) -> None:
    graphs = "class Graph:\n    @kept\n    def clone(self): return self\ndef graph_of(*x): ...\n"
    scanner.write(
        tools_init="from .parts import graph_of\nfrom . import rest\n",
        tools__parts_init="from tools.parts.graphs import *\n",
        tools__parts__graphs=graphs,
        tools__deep_init="from tools.parts import *\n",
        tools__rest=f"{HEAD}import tools\ndef f(items):\n    return items[1].clone()\n",
        main=f"{HEAD}{imported}\ndef f(items):\n    return items[1].clone()\n",
    )
    for file in ("main.py", "tools/rest.py"):
        assert "Tensor.clone" not in scanner.apis(file)
        assert "Tensor.clone" in scanner.apis(file, unsure=True)


@pytest.mark.parametrize("method", ["", "    def clone(self): return self\n"])
def test_an_object_in_one_call_may_be_a_tensor_in_another(scanner: Scanner, method: str) -> None:
    graph = f"class Graph:\n    def __init__(self): ...\n{method}"
    scanner.write(main=f"{HEAD}{graph}def f(held):\n    return held.clone()\nf(Graph())\n")
    assert "Tensor.clone" not in scanner.apis()
    assert "Tensor.clone" in scanner.apis(unsure=True)


def test_what_is_annotated_as_an_object_is_no_tensor(scanner: Scanner) -> None:
    graph = "class Graph:\n    def clone(self): return self\n"
    scanner.write(main=f"{HEAD}{graph}def f(held: Graph):\n    return held.clone()\nf(Graph())\n")
    assert "Tensor.clone" not in scanner.apis(unsure=True)
