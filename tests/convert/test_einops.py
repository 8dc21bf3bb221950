"""einops in a port: axes by name without einops, and with nothing of torch."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.convert.support import converted, port_of, run_port

pytest.importorskip("torch")
pytest.importorskip("mindspore")

NET = """
import einops
import torch
import torch.nn as nn
from einops import einsum, pack, rearrange, reduce, repeat, unpack
from einops.layers.torch import Rearrange, Reduce


class Net(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.patches = nn.Sequential(
            Rearrange("b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4), nn.Linear(48, dim)
        )
        self.cls = nn.Parameter(torch.ones(1, 1, dim))
        self.pool = Reduce("b n d -> b d", "mean")

    def forward(self, image):
        x = self.patches(image)
        cls = repeat(self.cls, "() n d -> b n d", b=x.shape[0])
        x, sizes = pack([cls, x], "b * d")
        query, key = (rearrange(x, "b n (h d) -> b h n d", h=2) for _ in range(2))
        scores = einsum(query, key, "b h i d, b h j d -> b h i j").softmax(dim=-1)
        x = einops.rearrange(scores @ query, "b h n d -> b n (h d)")
        cls, x = unpack(x, sizes, "b * d")
        options = {"h": 2}
        return self.pool(x) + reduce(x, "b n (d h) -> b d", "max", **options).sum()
"""
CHILD = """
import json, sys
import numpy as np
from net import Net
import {framework} as framework
net = Net(8)
values = np.random.default_rng(0).standard_normal((2, 3, 8, 8)).astype("f4")
for parameter in {parameters}:
    numbers = np.cos(np.arange(parameter.{size}())).reshape(parameter.shape).astype("f4")
    parameter.{write}
print(json.dumps({result}.tolist()))
"""


def test_a_network_with_einops_computes_the_same(tmp_path: Path) -> None:
    folder, report = converted(tmp_path, {"net.py": NET})
    assert report.findings == ()
    assert "einops" not in (folder / "net.py").read_text()
    port = CHILD.format(
        framework="mindspore",
        parameters="net.trainable_params()",
        size="numel",
        write="set_data(framework.Tensor(numbers))",
        result="net(framework.Tensor(values)).asnumpy()",
    )
    ours = json.loads(run_port(folder, port))
    import torch

    space: dict[str, object] = {}
    exec(NET, space)
    net = space["Net"](8)
    values = np.random.default_rng(0).standard_normal((2, 3, 8, 8)).astype("f4")
    order = {"patches.1.weight": 0, "patches.1.bias": 1, "cls": 2}
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            assert name in order
            numbers = np.cos(np.arange(parameter.numel())).reshape(parameter.shape).astype("f4")
            parameter.copy_(torch.from_numpy(numbers))
    np.testing.assert_allclose(ours, net(torch.from_numpy(values)).detach(), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("rearrange(x, 'a b -> b a')", "compat.rearrange(x, 'a b -> b a')"),
        ("rearrange(x, 'a b -> b a', **sizes)", "compat.rearrange(x, 'a b -> b a', **sizes)"),
        ("reduce(x, 'a b -> a', 'sum')", "compat.reduce(x, 'a b -> a', 'sum')"),
        ("[rearrange][0](x, 'a b -> b a')", "[compat.rearrange][0](x, 'a b -> b a')"),
    ],
)
def test_a_call_keeps_its_arguments(line: str, expected: str) -> None:
    text, findings = port_of(
        f"import torch\nfrom einops import rearrange, reduce\n\ndef f(x: torch.Tensor, sizes):\n"
        f"    return {line}\n"
    )
    assert not findings
    assert f"return {expected}" in text


def test_what_a_pattern_gives_of_a_tensor_is_a_tensor() -> None:
    text, findings = port_of("""
    import torch
    from einops import parse_shape, rearrange, unpack
    from einops.layers.torch import Rearrange

    def f(x: torch.Tensor, layer: Rearrange):
        y = rearrange(x, "a b -> b a")
        first, second = unpack(x, [(1,), (2,)], "a *")
        return y.max(1), first.mean(0), layer(x).mean(0), parse_shape(x, "a b").values()
    """)
    assert not findings
    assert "compat.max(y, 1, False, None), ops.mean(first, axis=0)" in text
    assert 'ops.mean(layer(x), axis=0), compat.parse_shape(x, "a b").values()' in text


MISTAKES = {
    "2 axes do not fit": "compat.rearrange(x, 'a b c -> c b a')",
    "does not fit": "compat.rearrange(x, '(a k) b -> a k b', k=4)",
    "are not given": "compat.repeat(x, 'a b -> a b k')",
    "on one side alone": "compat.rearrange(x, 'a b -> a')",
    "unknown reduction": "compat.reduce(x, 'a b -> a', 'median')",
    "do not make": "compat.unpack(x, [(1,), (1,)], 'a *')",
}


def test_a_pattern_that_does_not_fit_says_so(tmp_path: Path) -> None:
    text = "import torch\nfrom einops import rearrange, reduce, repeat, unpack\n"
    folder, _ = converted(tmp_path, {"net.py": text + "USED = (rearrange, reduce, repeat, unpack)"})
    lines = "\n".join(
        f"try:\n    {code}\nexcept RuntimeError as error:\n    said.append(str(error))"
        for code in MISTAKES.values()
    )
    code = "import json\nimport mindspore as ms\nimport numpy as np\nfrom net import compat\n"
    code += (
        'x = ms.Tensor(np.zeros((2, 3), "f4"))\nsaid = []\n' + lines + "\nprint(json.dumps(said))"
    )
    said = json.loads(run_port(folder, code))
    for words, found in zip(MISTAKES, said, strict=True):
        assert words in found
