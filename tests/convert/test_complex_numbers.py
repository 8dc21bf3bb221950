"""Complex numbers: a spectral layer and its loss; what MindSpore does not take is told."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.convert.support import converted, port_of, run_both, run_original, run_port

from isograd.convert import Level

pytest.importorskip("torch")
pytest.importorskip("mindspore")

NET = """
import torch
import torch.nn.functional as F
from torch import nn


class Spectral(nn.Module):
    def __init__(self):
        super().__init__()
        weight = torch.linspace(-1, 1, 54).reshape(3, 2, 3, 3)
        self.weight = nn.Parameter(torch.complex(weight, 1 - weight))

    def forward(self, x):
        spectrum = torch.fft.rfft2(x)
        low = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, :3, :3], self.weight)
        made = torch.zeros(x.size(0), 2, x.size(-2), x.size(-1) // 2 + 1, dtype=torch.cfloat)
        made[:, :, :3, :3] = low
        return torch.fft.irfft2(made, s=x.shape[-2:])


def distances(x, y):
    first, second = torch.fft.fft2(x, norm="ortho"), torch.fft.fft2(y, norm="ortho")
    return [
        (first.abs() - second.abs()).abs().mean(),
        F.l1_loss(torch.abs(first), abs(second)),
        F.l1_loss(first, second),
        torch.linalg.norm(first - second),
    ]
"""
#: Each side: its tensors from numpy, and its gradient.
_TORCH = """
import json, numpy, torch, net
x = torch.tensor(numpy.sin(numpy.arange(128.0)).reshape(1, 2, 8, 8), dtype=torch.float32)
x = x.repeat(1, 2, 1, 1)[:, :3].requires_grad_()
out = net.Spectral()(x)
told = net.distances(out, x[:, :2])
sum(told).backward()
print(json.dumps([out.tolist(), [one.item() for one in told], x.grad.tolist()]))
"""
_MINDSPORE = """
import json, numpy, mindspore as ms, net
x = ms.Tensor(numpy.sin(numpy.arange(128.0)).reshape(1, 2, 8, 8), ms.float32)
x = ms.ops.tile(x, (1, 2, 1, 1))[:, :3]
spectral = net.Spectral()
out = spectral(x)
told = net.distances(out, x[:, :2])
grad = ms.grad(lambda x: sum(net.distances(spectral(x), x[:, :2])))(x)
print(json.dumps([a.tolist() for a in (out.asnumpy(), numpy.array([float(t) for t in told]))]
                 + [grad.asnumpy().tolist()]))
"""


def test_a_spectral_layer_and_its_loss_are_the_same(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"net.py": NET})
    assert not [finding for finding in report.findings if finding.level is Level.FINISH]
    theirs = run_original(tmp_path, _TORCH)
    ours = run_port(port, _MINDSPORE)
    for a, b in zip(json.loads(theirs), json.loads(ours.splitlines()[-1]), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("y = torch.exp(x ** 1j)", Level.FINISH),
        ("y = (2 * 1j) ** torch.cos(x)", Level.FINISH),
        ("y = 1j ** x", Level.LOOK),
        ("y = torch.exp(1j * x)", None),
        ("y = 2 * 1j + torch.cos(x)", None),
        ("y = 1j / x", None),
        ("y = 2 * 1j", None),
        ("y = torch.tensor([-0.5 + 0.25j, 2 - 1j])", None),
    ],
)
def test_pythons_complex_numbers_are_told_beside_tensors(line: str, level: Level | None) -> None:
    _, findings = port_of(f"import torch\nx = make()\n{line}\nz = torch.exp(y)\n")
    told = [finding for finding in findings if finding.code == "complex-number"]
    assert [finding.level for finding in told] == ([] if level is None else [level])


NUMBERS = """
import math

import torch


def waves(x, w):
    y = torch.exp(-1j * x * w) + (x - 2j)
    return [torch.real(y), torch.imag(y), torch.abs(y * (1 + 2j) / (2j * math.pi))]


def found_of():
    x, z = torch.arange(4.0).reshape(2, 2), 1 + 2j
    found = [*waves(x, 0.5), (z * x).real, (x / 2j).imag, (1j + x).imag, (x.double() * 1j).imag]
    t = torch.tensor([0.3, 1.0, 2.0], requires_grad=True)
    torch.real(torch.exp(1j * t) * (2 - 1j)).sum().backward()
    numbers = [z * 3, 2 * 1j, z * math.pi - 1j]
    return [part.tolist() for part in (*found, t.grad)], [[one.real, one.imag] for one in numbers]
"""


def test_pythons_complex_numbers_are_tensors_beside_tensors(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"net.py": NUMBERS})
    assert not [finding for finding in report.findings if finding.level is Level.FINISH]
    code = "import json, net\nprint(json.dumps(net.found_of()))"
    (expected, numbers), (found, same) = run_both(tmp_path, port, code)
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(same, numbers)


MAGNITUDES = """
import torch


def period(x):
    spectrum = torch.fft.rfft(x, dim=1)
    return torch.softmax(abs(spectrum).mean(0), 0)


def of(z):
    return abs(z)


def magnitudes(x):
    return period(x).tolist() + of(torch.fft.rfft(x)).flatten().tolist() + [of(-3)]
"""


def test_pythons_abs_of_complex_tensors_is_real(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"magnitudes.py": MAGNITUDES})
    code = "import json, magnitudes; print(json.dumps(magnitudes.magnitudes("
    code += "TENSOR([[1.0, -2.0, 0.5], [3.0, 0.0, 1.5]]))))"
    expected, found = run_both(tmp_path, port, code)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_without_complex_numbers_the_absolute_value_is_mindspores() -> None:
    port, _ = port_of("import torch\ny = torch.abs(torch.ones(2)) + abs(torch.ones(2))\n")
    assert "ops.abs(" in port
    assert "absolute" not in port


PRODUCTS = """
import torch
from torch import nn


class Rope(nn.Module):
    def __init__(self):
        super().__init__()
        self.wq = nn.Linear(4, 4, bias=False)
        nn.init.constant_(self.wq.weight, 0.5)
        t = torch.outer(torch.arange(3.0), torch.tensor([1.0, 0.1]))
        self.freqs_cis = torch.polar(torch.ones_like(t), t)
        self.scale = nn.Parameter(torch.ones(3, 2) * 0.5)

    def forward(self, x):
        q = torch.view_as_complex(self.wq(x).reshape(*x.shape[:-1], -1, 2))
        spectrum = torch.fft.rfft(x.t())
        filtered = torch.fft.irfft(spectrum * 1.5 / (spectrum.conj() + 3), n=3)
        turned = q * self.freqs_cis * self.scale / 2
        return torch.view_as_real(turned / self.freqs_cis.conj()).flatten(1) + filtered.t()


def losses():
    net = Rope()
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    x = torch.arange(12.0).reshape(3, 4).sin()
    found = []
    for _ in range(3):
        opt.zero_grad()
        loss = net(x).pow(2).mean()
        loss.backward()
        opt.step()
        found.append(loss.item())
    return found + net.wq.weight.detach().flatten().tolist() + net.scale.flatten().tolist()
"""


def test_products_of_complex_tensors_have_a_gradient(tmp_path: Path) -> None:
    """MindSpore's own raise: "gradient not support for complex type"; and with a real tensor."""
    port, report = converted(tmp_path, {"rope.py": PRODUCTS})
    assert not [f for f in report.findings if f.level is Level.FINISH]
    expected, found = run_both(
        tmp_path, port, "import json, rope; print(json.dumps(rope.losses()))"
    )
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_a_tensor_of_written_complex_numbers_is_multiplied(tmp_path: Path) -> None:
    code = "import torch\n\n\ndef f():\n    z = torch.tensor([1 + 2j, 3])\n"
    code += "    return [z * torch.ones(2), torch.ones(2) * z, z * 2, z / torch.full((2,), 2j)]\n"
    port, _ = converted(tmp_path, {"net.py": code})
    show = "print(json.dumps([[str(n) for n in part.tolist()] for part in net.f()]))"
    expected, found = run_both(tmp_path, port, f"import json, net; {show}")
    assert found == expected


def test_a_write_into_the_parts_side_by_side_is_told() -> None:
    code = "import torch\n\n\ndef f(z: torch.Tensor):\n"
    code += "    torch.view_as_real(z)[..., 0] = 5\n    return z\n"
    assert [finding.code for finding in port_of(code)[1]] == ["in-place-view"]


_MATRICES = """
import torch

real = torch.arange(9.0).reshape(3, 3) * 0.3 - 1
made = torch.complex(real, real.flip(0) ** 2)
hermitian = made + made.conj().T
definite = made @ made.conj().T + 3 * torch.eye(3)


def whole(u, s, v):
    return (u @ torch.diag(s).to(torch.complex64) @ v).abs()


def run():
    w, v = torch.linalg.eigh(hermitian)
    u, s, vh = torch.linalg.svd(made)
    found = [torch.linalg.eigvalsh(hermitian), w, whole(v, w, v.conj().T), whole(u, s, vh)]
    found += [torch.linalg.svdvals(made), torch.linalg.cond(made + torch.eye(3))]
    found += [torch.linalg.norm(made, 2), torch.linalg.matrix_norm(made, "nuc")]
    found += [torch.linalg.norm(made, 1), torch.linalg.slogdet(definite)[1]]
    found += [torch.linalg.eigvalsh(real @ real.T), torch.linalg.norm(real, 2)]
    roots = [torch.linalg.cholesky(definite), torch.cholesky(definite, upper=True)]
    roots += [torch.triu(made), made.tril(-1), torch.matrix_exp(made), torch.matrix_exp(real)]
    roots += [torch.linalg.solve_triangular(definite.triu(), made, upper=True)]
    kinds = [one.is_complex() for one in (*found, *roots)]
    return [one.tolist() for one in found + [root.abs() for root in roots]], kinds
"""


def test_decompositions_of_matrices(tmp_path: Path) -> None:
    """What is real of a complex matrix in torch is real in the port."""
    port, report = converted(tmp_path, {"net.py": _MATRICES})
    assert [one for one in report.findings if one.level is Level.FINISH] == []
    expected, found = run_both(tmp_path, port, "import json, net\nprint(json.dumps(net.run()))")
    assert found[1] == expected[1]
    for one, other in zip(found[0], expected[0], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)
