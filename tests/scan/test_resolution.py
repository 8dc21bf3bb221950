"""Which name of torch a piece of code stands for, without importing anything."""

from __future__ import annotations

import pytest
from tests.scan.support import Scanner

TABLE = {
    "alias of the package": ("import torch as t\nt.cat([])", {"cat"}),
    "alias of a part": ("import torch.nn as nn\nnn.init.normal_(w)", {"nn.init.normal_"}),
    "dotted import": ("import torch.nn.functional\ntorch.nn.functional.relu(x)",
                      {"nn.functional.relu"}),
    "from import": ("from torch.nn import Conv2d as C\nC(1, 2, 3)", {"nn.Conv2d"}),
    "from import of a part": ("from torch import nn\nnn.Linear(1, 2)", {"nn.Linear"}),
    "star import": ("from torch.nn import *\nLinear(1, 2)", {"nn.Linear"}),
    "assigned part": ("import torch\nnn = torch.nn\nnn.Linear(1, 2)", {"nn.Linear"}),
    "assigned function": ("import torch\nf = torch.cat\nf([])", {"cat"}),
    "private home": ("from torch.nn.modules.conv import Conv2d\nConv2d(1, 2, 3)", {"nn.Conv2d"}),
    "alias by knowledge": ("import torch\ntorch.concat([])", {"cat"}),
    "base class": ("import torch.nn as nn\nclass A(nn.Conv2d):\n    pass", {"nn.Conv2d"}),
    "decorator": ("import torch\n@torch.no_grad()\ndef f():\n    pass", {"no_grad"}),
    "default": ("import torch.nn as nn\ndef f(act=nn.ReLU):\n    pass", {"nn.ReLU"}),
    "annotation": ("import torch\ndef f(x: torch.Tensor) -> 'torch.Tensor':\n    pass", {"Tensor"}),
    "text annotation": ("import torch\ndef f(x: 'torch.Tensor'):\n    return x.cos()",
                        {"Tensor", "Tensor.cos"}),
    "dtype": ("import torch\nf(torch.float16)", {"float16"}),
    "getattr": ("import torch\ngetattr(torch, 'cat')([])", {"cat"}),
    "getattr with a variable": ("import torch\ngetattr(torch, name)([])", set()),
    "nested scope": (
        "import torch\ndef f():\n    def g():\n        return torch.cat([])\n    return g", {"cat"}
    ),
    "local import": ("def f():\n    import torch as t\n    return t.cat([])", {"cat"}),
    "shadowed by a parameter": ("import torch\ndef f(torch):\n    return torch.cat([])", set()),
    "shadowed by a local": ("import torch\ndef f():\n    torch = 3\n    return torch.cat", set()),
    "comprehension": ("import torch\n[torch for torch in []]\ntorch.cat([])", {"cat"}),
    "guarded import": (
        "try:\n    import torch\nexcept ImportError:\n    torch = None\ntorch.cat([])", {"cat"}
    ),
    "lambda": ("import torch\nf = lambda x: torch.cat(x)", {"cat"}),
    "partial": ("import functools, torch.nn as nn\nf = functools.partial(nn.ReLU, True)",
                {"nn.ReLU"}),
    "another library": ("import numpy as np\nnp.cat([])", set()),
    "same word elsewhere": ("class torchy:\n    pass\ntorchy.cat([])", set()),
    "attribute of a class": ("import torch.nn as nn\nnn.Conv2d.__name__", {"nn.Conv2d"}),
    "subclass of subclass": (
        "import torch.nn as nn\nclass A(nn.Module):\n    pass\n"
        "class B(A):\n    def f(self):\n        return self.parameters()",
        {"nn.Module", "nn.Module.parameters"},
    ),
    "in an f-string": ("import torch\nf'{torch.cat([])}'", {"cat"}),
    "in a match": ("import torch\nmatch 1:\n    case 1:\n        torch.cat([])", {"cat"}),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_names(scanner: Scanner, name: str) -> None:
    code, expected = TABLE[name]
    scanner.write(main=code)
    assert scanner.apis() == expected


def test_names_across_files(scanner: Scanner) -> None:
    scanner.write(
        pkg_init="from .layers import Block, F as functional\n",
        pkg__layers="import torch.nn as nn\nimport torch.nn.functional as F\n"
        "class Block(nn.Module):\n    def forward(self, x):\n        return F.relu(x)\n",
        pkg__sub_init="",
        pkg__sub__net="from ..layers import *\nfrom .. import functional as g\n"
        "class Net(Block):\n    def forward(self, x):\n"
        "        self.register_buffer('b', x)\n        return g.gelu(nn.Identity()(x)).cos()\n",
        main="import pkg\nfrom pkg import Block as B\nnet = B()\nnet.eval()\n"
        "pkg.functional.silu(net(1))\n",
    )
    assert scanner.apis("pkg/sub/net.py") == {
        "nn.Module.register_buffer", "nn.functional.gelu", "nn.Identity", "Tensor.cos",
    }  # fmt: skip
    assert scanner.apis() == {"nn.Module.eval", "nn.functional.silu"}


def test_all_limits_a_star_import(scanner: Scanner) -> None:
    scanner.write(
        a="import torch\nfrom torch import cat, stack\n__all__ = ['cat']\n",
        main="from a import *\ncat([])\nstack([])\n",
    )
    assert scanner.apis() == {"cat"}


def test_a_circle_of_imports_ends(scanner: Scanner) -> None:
    scanner.write(
        a="from b import g\nimport torch\ndef f():\n    return torch.cat([])\n",
        b="from a import f\nimport torch\ndef g():\n    return torch.cat([f()])\n",
    )
    assert scanner.apis("a.py") == scanner.apis("b.py") == {"cat"}


def test_places_count_lines_and_characters(scanner: Scanner) -> None:
    scanner.write(
        main="import torch\nα = 'αβ'; torch.cat([])\nx = (torch.ones(2)\n     .view(2))\n"
    )
    places = {
        (use.answer.api, use.line, use.column) for scan in scanner.scan().files for use in scan.uses
    }
    assert places == {
        ("torch.cat", 2, 11), ("torch.ones", 3, 6), ("torch.Tensor.view", 4, 7),
    }  # fmt: skip


def test_the_project_may_not_be_run(scanner: Scanner) -> None:
    scanner.write(main="import torch\nraise SystemExit(torch.cat([]))\n")
    assert scanner.apis() == {"cat"}
