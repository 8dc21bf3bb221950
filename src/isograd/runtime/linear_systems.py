"""Solutions of linear systems, inverses and ranks, with torch's names, results and error codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253
from mindspore.scipy import linalg  # noqa: TID253

from isograd.runtime.algebra import eigh, inverted, solve, svd
from isograd.runtime.basics import Numbers, is_compiled, zero_with_gradient
from isograd.runtime.factors import (
    by_lapack,
    check_codes,
    codes,
    conjugate_transposed,
    eye_like,
    permutation_of,
)
from isograd.runtime.reductions import matrix_norm


class InverseWithInfo(NamedTuple):
    """The inverse, and the first column without a pivot, from 1 (0: none)."""

    inverse: Any
    info: Any


class SolutionWithInfo(NamedTuple):
    """The solution, and the first column without a pivot, from 1 (0: none)."""

    result: Any
    info: Any


class TriangularSolution(NamedTuple):
    """The solution, and a copy of the triangle."""

    solution: Any
    cloned_coefficient: Any


class LeastSquares(NamedTuple):
    """What torch.linalg.lstsq returns; what a driver does not compute is empty."""

    solution: Any
    residuals: Any
    rank: Any
    singular_values: Any


# ---- triangles


def solve_triangular(
    A: Any,  # noqa: N803
    B: Any,  # noqa: N803
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
) -> Any:
    """The solution of A X = B, or of X A = B, of a triangle; what stands beside it is not read.

    MindSpore's wants equal batches, and has no right-hand form.
    """
    if not left:
        sides = ops.swapaxes(A, -1, -2), ops.swapaxes(B, -1, -2)
        found = solve_triangular(*sides, upper=not upper, unitriangular=unitriangular)
        return ops.swapaxes(found, -1, -2)
    batch = np.broadcast_shapes(tuple(A.shape[:-2]), tuple(B.shape[:-2]))
    triangle = ops.broadcast_to(A, (*batch, *A.shape[-2:]))
    side = ops.broadcast_to(B, (*batch, *B.shape[-2:]))
    return linalg.solve_triangular(triangle, side, lower=not upper, unit_diagonal=unitriangular)


def triangular_solve(
    input: Any,
    A: Any,  # noqa: N803
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> TriangularSolution:
    """torch.triangular_solve: the solution of A X = input, or of Aᵀ X = input."""
    matrix = ops.swapaxes(A, -1, -2) if transpose else A
    is_upper = upper != transpose
    found = solve_triangular(matrix, input, upper=is_upper, unitriangular=unitriangular)
    return TriangularSolution(found, A * 1)


def linalg_lu_solve(
    LU: Any,  # noqa: N803
    pivots: Any,
    B: Any,  # noqa: N803
    *,
    left: bool = True,
    adjoint: bool = False,
) -> Any:
    """The solution of A X = B by the factors of A, of X A = B, or of both with Aᴴ."""
    order = permutation_of(pivots, LU.shape[-2], LU)
    if not left:
        turned = linalg_lu_solve(LU, pivots, conjugate_transposed(B), adjoint=not adjoint)
        return conjugate_transposed(turned)
    if adjoint:
        turned = conjugate_transposed(LU)
        found = solve_triangular(turned, B, upper=False)
        found = solve_triangular(turned, found, upper=True, unitriangular=True)
        return ops.matmul(order, found)
    found = ops.matmul(ops.swapaxes(order, -1, -2), B)
    found = solve_triangular(LU, found, upper=False, unitriangular=True)
    return solve_triangular(LU, found, upper=True)


def lu_solve(b: Any, LU_data: Any, LU_pivots: Any) -> Any:  # noqa: N803
    """torch.lu_solve: the same with the right side first."""
    return linalg_lu_solve(LU_data, LU_pivots, b)


# ---- inverses and solutions with codes


def _without_singular(A: Any, name: str, check_errors: bool) -> tuple[Any, Any, Numbers]:  # noqa: N803
    """The matrices with identities for the singular ones, which ones these are, and the codes."""
    info = by_lapack("getrf", ops.stop_gradient(A).asnumpy())[2]
    if check_errors:
        check_codes(name, info, "the input matrix is singular")
    if not np.any(info > 0):
        return A, None, info
    shown = np.broadcast_to((info > 0)[..., None, None], tuple(A.shape))
    is_bad = ms.Tensor(np.ascontiguousarray(shown))
    return ops.where(is_bad, eye_like(A.shape[-2], A.shape[-1], A), A), ms.Tensor(info > 0), info


def inv_ex(A: Any, *, check_errors: bool = False) -> InverseWithInfo:  # noqa: N803
    """The inverse and a code; where that is above 0, nan."""
    usable, is_bad, info = _without_singular(A, "inv_ex", check_errors)
    found = ops.inverse(usable)
    if is_bad is not None:
        found = ops.where(is_bad[..., None, None], ops.full_like(found, float("nan")), found)
    return InverseWithInfo(found, codes(info))


def solve_ex(
    A: Any,  # noqa: N803
    B: Any,  # noqa: N803
    *,
    left: bool = True,
    check_errors: bool = False,
) -> SolutionWithInfo:
    """The solution and a code; where that is above 0, nan."""
    usable, is_bad, info = _without_singular(A, "solve_ex", check_errors)
    found = solve(usable, B, left)
    if is_bad is not None:
        shape = (*is_bad.shape, *(1,) * (found.ndim - is_bad.ndim))
        found = ops.where(is_bad.reshape(shape), ops.full_like(found, float("nan")), found)
    return SolutionWithInfo(found, codes(info))


def _refuse_singular(A: Any, name: str, what: str) -> None:  # noqa: N803
    """Raise as torch does for a singular matrix; MindSpore's inverse is some numbers there."""
    plain = ops.stop_gradient(A).asnumpy()
    if plain.size:
        info = by_lapack("getrf", plain)[2]
        if np.any(info > 0):
            place = int(np.argmax(info.reshape(-1) > 0))
            batch = f"(Batch element {place}): " if info.ndim else ""
            said = batch + what.format(int(info.reshape(-1)[place]))
            raise RuntimeError(f"{name}: {said} because the input matrix is singular.")


def inverse(input: Any) -> Any:
    """The inverse of matrices.  Raises RuntimeError for a singular one, but not in a graph."""
    if not is_compiled(input):
        done = "The diagonal element {} is zero, the inversion could not be completed"
        _refuse_singular(input, "linalg.inv", done)
    return inverted(input)


def linalg_solve(A: Any, B: Any, left: bool = True) -> Any:  # noqa: N803
    """As `solve`.  Raises RuntimeError for a singular matrix, but not in a graph."""
    if not is_compiled(A):
        _refuse_singular(A, "torch.linalg.solve", "The solver failed")
    return solve(A, B, left)


def condition_number(A: Any, p: Any = None) -> Any:  # noqa: N803
    """The condition number: infinite for a singular matrix, except by singular values."""
    rows, columns = A.shape[-2:]
    is_of_values = p is None or p in (2, -2, "nuc")
    if rows == 0 or columns == 0:
        return ops.zeros(tuple(A.shape[:-2]), dtype=A.dtype)
    if is_of_values and (p != "nuc" or rows == columns):
        values = svd(A, True)[1]
        if p == "nuc":
            return values.sum(-1) * (1 / values).sum(-1)
        greatest, least = values[..., 0], values[..., -1]
        return least / greatest if p == -2 else greatest / least
    if rows != columns:
        raise RuntimeError(
            f"linalg.cond(ord={p}): A must be batches of square matrices, but they are "
            f"{rows} by {columns} matrices"
        )
    if is_compiled(A):
        return matrix_norm(A, p) * matrix_norm(inverted(A), p)
    usable, is_bad, _ = _without_singular(A, "cond", False)
    found = matrix_norm(usable, p) * matrix_norm(inverted(usable), p)
    return found if is_bad is None else ops.where(is_bad, ops.full_like(found, np.inf), found)


def tensorinv(A: Any, ind: int = 2) -> Any:  # noqa: N803
    """The inverse of `tensordot(A, X, ind)`.  Raises ValueError unless A is square so."""
    if ind <= 0:
        raise ValueError(f"torch.linalg.tensorinv: ind is {ind}, not a positive number")
    before, after = tuple(A.shape[:ind]), tuple(A.shape[ind:])
    size = int(np.prod(before))
    if size != int(np.prod(after)):
        raise ValueError(f"torch.linalg.tensorinv: {before} and {after} have other sizes")
    return ops.inverse(A.reshape(size, size)).reshape(after + before)


def tensorsolve(
    A: Any,  # noqa: N803
    B: Any,  # noqa: N803
    dims: Sequence[int] | int | None = None,
) -> Any:
    """The solution of `tensordot(A, X, X.ndim) = B`, the named axes of A moved to its end."""
    given = () if dims is None else (dims,) if isinstance(dims, int) else tuple(dims)
    last = [axis % A.ndim for axis in given]
    moved = ops.transpose(A, (*(k for k in range(A.ndim) if k not in last), *last))
    shape = tuple(moved.shape[B.ndim :])
    size = int(np.prod(shape))
    return solve(moved.reshape(size, size), B.reshape(size)).reshape(shape)


# ---- singular values: ranks, pseudo-inverses, least squares


def _least(plain: Numbers, atol: Any, rtol: Any, greatest: Numbers) -> Numbers:
    """Below which a singular value counts as 0: the greater of atol and rtol times the greatest."""
    usual = max(plain.shape[-2:]) * np.finfo(plain.dtype).eps
    absolute = np.asarray(0.0 if atol is None else _values(atol), np.float64)
    relative = np.where(absolute > 0, 0.0, usual) if rtol is None else _values(rtol)
    found: Numbers = np.maximum(absolute, np.asarray(relative) * greatest)
    return found


def _values(number: Any) -> Any:
    return number.asnumpy() if isinstance(number, ms.Tensor) else number


def matrix_rank(
    A: Any,  # noqa: N803
    tol: Any = None,
    hermitian: bool = False,
    *,
    atol: Any = None,
    rtol: Any = None,
) -> Any:
    """The number of singular values above a tolerance, by numpy (LAPACK as in torch)."""
    plain = ops.stop_gradient(A).asnumpy()
    if tol is not None:
        atol, rtol = tol, 0.0
    if hermitian:
        values = np.abs(np.linalg.eigvalsh(plain))
    else:
        values = np.linalg.svd(plain, compute_uv=False)
    greatest = values.max(-1, initial=0.0)
    least = _least(plain, atol, rtol, greatest)
    return ms.Tensor(np.asarray((values > least[..., None]).sum(-1), np.int64))


def pinv(A: Any, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Any:  # noqa: N803
    """The pseudo-inverse, with torch's gradient where small singular values count as 0 too.

    P - P dA P + P Pᴴ dAᴴ (1 - A P) + (1 - P A) dAᴴ Pᴴ P (Golub and Pereyra 1973).
    """
    plain, moved = ops.stop_gradient(A), zero_with_gradient(A)
    if A.is_complex():
        inverse = _complex_pinv(plain.asnumpy(), atol, rtol, hermitian)
    else:
        inverse = ops.stop_gradient(ops.pinv(plain, atol=atol, rtol=rtol, hermitian=hermitian))
    turned, moved_turned = conjugate_transposed(inverse), conjugate_transposed(moved)
    rows, columns = A.shape[-2:]
    beyond = eye_like(rows, rows, A) - ops.matmul(plain, inverse)
    beside = eye_like(columns, columns, A) - ops.matmul(inverse, plain)
    change = ops.matmul(ops.matmul(ops.matmul(inverse, turned), moved_turned), beyond)
    change = change + ops.matmul(ops.matmul(ops.matmul(beside, moved_turned), turned), inverse)
    return inverse - ops.matmul(ops.matmul(inverse, moved), inverse) + change


def _complex_pinv(plain: Numbers, atol: Any, rtol: Any, hermitian: bool) -> Any:
    """By numpy: `ops.pinv` takes real matrices only."""
    if atol is not None:
        raise NotImplementedError("pinv of a complex matrix takes no atol in a port: give rtol")
    share = max(plain.shape[-2:]) * np.finfo(plain.dtype).eps if rtol is None else _values(rtol)
    return ms.Tensor(np.linalg.pinv(plain, share, hermitian))


def lstsq(
    A: Any,  # noqa: N803
    B: Any,  # noqa: N803
    rcond: float | None = None,
    *,
    driver: str | None = None,
) -> LeastSquares:
    """The X with the least ||A X - B||, and the least X of these, by singular values.

    The drivers differ in what they return beside it, as in torch on a CPU: gels has neither rank
    nor singular values, gelsy (the default) neither residuals nor singular values.
    """
    plain = ops.stop_gradient(A).asnumpy()
    is_vector = B.ndim == 1 or tuple(B.shape) == tuple(A.shape[:-1])
    side = B.expand_dims(-1) if is_vector else B
    share = max(plain.shape[-2:]) * np.finfo(plain.dtype).eps if rcond is None else rcond
    found = ops.matmul(pinv(A, rtol=float(share)), side)
    values = np.linalg.svd(plain, compute_uv=False)
    least = _least(plain, None, rcond, values.max(-1, initial=0.0))
    rank = np.asarray((values > least[..., None]).sum(-1), np.int64)
    rows, columns = A.shape[-2:]
    residuals = ops.zeros((0,), dtype=ms.Tensor(values).dtype)
    name = driver or "gelsy"
    if rows > columns and (name == "gels" or (name != "gelsy" and np.all(rank == columns))):
        gap = ops.matmul(A, found) - side
        residuals = (gap * ops.conj(gap) if gap.is_complex() else gap * gap).sum(-2)
    ranks = np.zeros(0, np.int64) if name == "gels" else rank
    shown = values if name in ("gelsd", "gelss") else np.zeros(0, values.dtype)
    solution = found.squeeze(-1) if is_vector else found
    return LeastSquares(solution, residuals, ms.Tensor(ranks), ms.Tensor(shown))


# ---- parts of decompositions


def svd_lowrank(
    A: Any,  # noqa: N803
    q: int | None = 6,
    niter: int = 2,
    M: Any = None,  # noqa: N803
) -> tuple[Any, Any, Any]:
    """The q greatest singular values with their vectors, exactly: torch's are an estimate."""
    count = 6 if q is None else q
    if not 0 <= count <= min(A.shape[-2:]):
        raise ValueError(f"q(={count}) must be at least 0 and at most {min(A.shape[-2:])}")
    u, s, v = svd(A if M is None else A - M, True)
    return u[..., :count], s[..., :count], v[..., :count]


def pca_lowrank(
    A: Any,  # noqa: N803
    q: int | None = None,
    center: bool = True,
    niter: int = 2,
) -> tuple[Any, Any, Any]:
    """The q principal components of rows, exactly: torch's are an estimate."""
    count = min(6, *A.shape[-2:]) if q is None else q
    return svd_lowrank(A - A.mean(-2, keep_dims=True) if center else A, count)


def lobpcg(
    A: Any,  # noqa: N803
    k: int | None = None,
    B: Any = None,  # noqa: N803
    X: Any = None,  # noqa: N803
    n: int | None = None,
    iK: Any = None,  # noqa: N803
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
) -> tuple[Any, Any]:
    """The k greatest (or least) eigenvalues of a symmetric matrix, with their vectors.

    By all of them, where torch's come from guesses that it improves until they are exact to `tol`.
    """
    count = k if k is not None else (1 if X is None else X.shape[-1])
    matrix, inverse = A, None
    if B is not None:
        inverse = ops.inverse(ops.cholesky(B))
        matrix = ops.matmul(ops.matmul(inverse, A), ops.swapaxes(inverse, -1, -2))
    values, vectors = eigh(matrix)
    if inverse is not None:
        vectors = ops.matmul(ops.swapaxes(inverse, -1, -2), vectors)
    size = A.shape[-1]
    is_largest = largest is None or largest
    places = np.arange(size - 1, size - 1 - count, -1) if is_largest else np.arange(count)
    chosen = ms.Tensor(places.astype(np.int32))
    values = ops.gather(values, chosen, values.ndim - 1)
    return values, ops.gather(vectors, chosen, vectors.ndim - 1)
