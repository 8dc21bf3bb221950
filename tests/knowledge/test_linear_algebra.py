"""What examples of the knowledge cannot show of factors and windows: errors, codes, complex."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

import mindspore as ms
import torch
from tests.warm_python import run_python

from isograd import runtime

SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]], np.float32)


def complex_matrix() -> np.ndarray:
    parts = np.random.default_rng(0).standard_normal((2, 4, 4))
    return (parts[0] + 1j * parts[1]).astype(np.complex64)


def test_a_matrix_without_a_factor_raises_where_torch_does() -> None:
    matrix = ms.Tensor(SINGULAR)
    with pytest.raises(RuntimeError, match=r"lu_factor: .* singular \(error code: 2\)"):
        runtime.lu_factor(matrix)
    with pytest.raises(RuntimeError, match="not positive-definite"):
        runtime.cholesky_ex(-matrix, check_errors=True)
    for name in ("inv_ex", "lu_factor_ex", "cholesky_ex"):
        codes = getattr(torch.linalg, name)(torch.tensor(SINGULAR)).info
        assert int(getattr(runtime, name)(matrix).info) == int(codes), name


#: In a process of its own: MindSpore's recorder is of no use after an error within a gradient.
GRADIENT = """
import mindspore as ms
from isograd import runtime
ms.grad(lambda a: runtime.lu_factor_ex(a).LU.sum())(ms.Tensor([[1.0, 2.0], [2.0, 4.0]]))
"""


def test_what_a_port_cannot_do_raises(tmp_path: Path) -> None:
    with pytest.raises(NotImplementedError, match="without pivoting"):
        runtime.lu_factor_ex(ms.Tensor(SINGULAR), pivot=False)
    done = run_python(GRADIENT, cwd=tmp_path, imported=["mindspore"])
    assert done.returncode != 0
    assert re.search("NotImplementedError: .*singular", done.stderr)


def test_batches_of_none_have_the_shapes_of_one() -> None:
    found = runtime.lu_factor_ex(ms.Tensor(np.zeros((0, 3, 2), np.float32)))
    assert [part.shape for part in found] == [(0, 3, 2), (0, 2), (0,)]


def test_complex_matrices_have_torch_s_factors() -> None:
    mine, theirs = ms.Tensor(complex_matrix()), torch.tensor(complex_matrix())
    hermitian = theirs + theirs.mH
    own = ms.Tensor(hermitian.numpy())
    factors = torch.linalg.ldl_factor(hermitian, hermitian=True)
    ldl = runtime.ldl_factor(own, hermitian=True)
    pairs = [
        (runtime.linalg_lu(mine).L, torch.linalg.lu(theirs).L),
        (runtime.pinv(mine), torch.linalg.pinv(theirs)),
        (runtime.inv_ex(mine).inverse, torch.linalg.inv_ex(theirs).inverse),
        (
            runtime.ldl_solve(ldl.LD, ldl.pivots, mine, hermitian=True),
            torch.linalg.ldl_solve(factors.LD, factors.pivots, theirs, hermitian=True),
        ),
        (
            runtime.solve_triangular(mine, mine, upper=False, left=False),
            torch.linalg.solve_triangular(theirs, theirs, upper=False, left=False),
        ),
    ]
    for first, second in pairs:
        np.testing.assert_allclose(first.asnumpy(), second.numpy(), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("how", [{"M": -1}, {"M": 3, "dtype": "int32"}])
def test_a_window_refuses_what_torch_refuses(how: dict[str, object]) -> None:
    given = {key: getattr(ms, value) if key == "dtype" else value for key, value in how.items()}
    with pytest.raises(ValueError, match="general_cosine"):
        runtime.signal_hamming(**given)


def raised(function: Callable[..., Any], *given: Any) -> str:
    with pytest.raises(RuntimeError) as told:
        function(*given)
    return str(told.value)


def test_an_inverse_and_a_solution_of_a_singular_matrix_raise_as_in_torch() -> None:
    for values in (SINGULAR, np.stack([np.eye(2, dtype=np.float32), SINGULAR])):
        matrix, plain = ms.Tensor(values), torch.tensor(values)
        assert raised(runtime.inverse, matrix) == raised(torch.inverse, plain)
        ones = np.ones((2, 1), np.float32)
        said = raised(runtime.linalg_solve, matrix, ms.Tensor(ones))
        assert said == raised(torch.linalg.solve, plain, torch.tensor(ones))


@pytest.mark.parametrize("order", [None, 1, -1, 2, -2, "fro", "nuc", float("inf"), -float("inf")])
def test_condition_numbers_are_torch_s(order: Any) -> None:
    whole = np.array([[2.0, 1.0], [1.0, 3.0]], np.float32)
    expected = torch.linalg.cond(torch.tensor(whole), order).item()
    found = runtime.condition_number(ms.Tensor(whole), order)
    assert float(found.asnumpy()) == pytest.approx(expected, rel=1e-5)
    expected = torch.linalg.cond(torch.tensor(SINGULAR), order).item()
    found = float(runtime.condition_number(ms.Tensor(SINGULAR), order).asnumpy())
    # By singular values the least one is a rounding error.
    assert found == expected or (order in (None, 2, "nuc") and found > 1e6) or found < 1e-6
    wide = np.arange(6, dtype=np.float32).reshape(2, 3)
    if order in (None, 2, -2):
        expected = torch.linalg.cond(torch.tensor(wide), order).item()
        found = float(runtime.condition_number(ms.Tensor(wide), order).asnumpy())
        assert found == pytest.approx(expected, rel=1e-5)
    elif order != "nuc":
        assert "2 by 3 matrices" in raised(runtime.condition_number, ms.Tensor(wide), order)
