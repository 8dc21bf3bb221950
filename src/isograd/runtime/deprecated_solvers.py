"""Solvers that torch keeps beside those of torch.linalg."""

from __future__ import annotations

from typing import Any, NamedTuple

from mindspore import ops  # noqa: TID253

from isograd.runtime.algebra import Eigen, cholesky, eigh, solve


class TriangularSolution(NamedTuple):
    """What `torch.triangular_solve` returns."""

    solution: Any
    cloned_coefficient: Any


def triangular_solve(
    b: Any,
    A: Any,  # noqa: N803
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> TriangularSolution:
    """The solution of A x = b by one triangle of A, and A; by an inverse, as `solve` does."""
    part = ops.triu(A, int(unitriangular)) if upper else ops.tril(A, -int(unitriangular))
    if unitriangular:
        part = part + ops.eye(A.shape[-1], A.shape[-1], A.dtype)
    matrix = ops.swapaxes(part, -1, -2) if transpose else part
    return TriangularSolution(solve(matrix, b), ops.deepcopy(A))


def lobpcg(
    A: Any,  # noqa: N803
    k: int | None = None,
    B: Any = None,  # noqa: N803
    X: Any = None,  # noqa: N803
    largest: bool | None = None,
) -> Eigen:
    """The k greatest eigenvalues and their vectors, or the least; all of them are computed here.

    torch approaches them step by step.  A vector's sign is as open as torch's.
    """
    count = k if k is not None else 1 if X is None else X.shape[-1]
    back = None
    if B is not None:
        back = ops.inverse(cholesky(B))
        A = ops.matmul(ops.matmul(back, A), ops.swapaxes(back, -1, -2))  # noqa: N806
    values, vectors = eigh(A)
    if largest is None or largest:
        values, vectors = ops.flip(values, (-1,)), ops.flip(vectors, (-1,))
    vectors = vectors if back is None else ops.matmul(ops.swapaxes(back, -1, -2), vectors)
    return Eigen(values[..., :count], vectors[..., :count])
