"""Draws of Gamma and Dirichlet have torch's gradients; a port holds the classes that it names."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

import mindspore as ms
import torch

from isograd import runtime as composites
from isograd.convert.generated import library
from isograd.knowledge.check.closure import sources_of

_CONCENTRATIONS = (0.1, 0.5, 1.0, 2.5, 7.9, 8.1, 15.0, 60.0)


def test_the_gradient_of_a_gamma_number_is_torchs() -> None:
    shares = (0.05, 0.5, 0.92, 1.0, 1.05, 1.5, 4.0)
    a, x = np.array([(a, a * share) for a in _CONCENTRATIONS for share in shares], "f4").T
    expected = torch._standard_gamma_grad(torch.tensor(a), torch.tensor(x)).numpy()
    found = composites.standard_gamma_slope(ms.Tensor(a), ms.Tensor(x)).asnumpy()
    np.testing.assert_allclose(found, expected, rtol=2e-4)


def test_the_gradient_of_a_share_is_torchs() -> None:
    shares = (0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99)
    rows = [(share, a, a + b) for a in _CONCENTRATIONS for b in _CONCENTRATIONS for share in shares]
    x, a, total = np.array(rows, "f4").T
    expected = torch._dirichlet_grad(*(torch.tensor(part) for part in (x, a, total))).numpy()
    parts = (ms.Tensor(part) for part in (x, a, total))
    found = composites.dirichlet_slope(*parts).asnumpy()
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=1e-5)


def test_a_divergence_brings_no_class() -> None:
    assert "class " not in sources_of("composites.kl_divergence(p, q)")


def test_a_class_brings_what_it_is_made_of() -> None:
    source = sources_of("composites.HalfCauchy(x)")
    assert {"class Cauchy(", "class TransformedDistribution(", "class AbsTransform("} <= {
        line[: line.index("(") + 1] for line in source.split("\n") if line.startswith("class ")
        and "(" in line
    }  # fmt: skip
    assert "class Dirichlet(" not in source


def test_a_draw_through_a_cache_finds_its_own_tensors() -> None:
    """The inverse of a saturated tanh is infinite; the cache remembers where it came from."""
    tanh = composites.TanhTransform(cache_size=1)
    base = composites.Normal(ms.Tensor(np.full(3, 30.0, "f4")), 1.0)
    made = composites.TransformedDistribution(base, [tanh])
    for draw in (made.sample, made.rsample):
        drawn = draw()
        assert np.isfinite(made.log_prob(drawn).asnumpy()).all()


@pytest.mark.parametrize(
    "name", ["Transform", "InverseTransform", "Wishart", "MixtureSameFamily", "biject_to"]
)
def test_a_port_can_import_what_reads_each_other(name: str) -> None:
    """A transform and its inverse read each other: the base class has to be there first."""
    space: dict[str, object] = {}
    exec(library().module_of([name]), space)
    assert name in space
