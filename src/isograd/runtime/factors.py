"""Factors of matrices as LAPACK gives them, with torch's names, pivots and error codes.

MindSpore 2.10's `mindspore.scipy.linalg.lu_factor` takes one square matrix and has no codes and no
gradient.  The numbers are those of scipy's LAPACK (scipy is a part of MindSpore's installation),
the gradients are exact to first order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253

from isograd.runtime.algebra import with_cholesky_gradient
from isograd.runtime.basics import Numbers, refuse_gradient, take, zero_with_gradient


class LU(NamedTuple):
    """Both triangles in one matrix, and the rows that were exchanged, from 1."""

    LU: Any
    pivots: Any


class LUWithInfo(NamedTuple):
    """`LU`, and the first column without a pivot, from 1 (0: none)."""

    LU: Any
    pivots: Any
    info: Any


class PLU(NamedTuple):
    """A permutation, a lower and an upper triangle, whose product is the matrix."""

    P: Any
    L: Any
    U: Any


class CholeskyWithInfo(NamedTuple):
    """The root, and the order of the first minor that is not positive (0: none)."""

    L: Any
    info: Any


class LDL(NamedTuple):
    """L and D in one matrix, and the rows that were exchanged."""

    LD: Any
    pivots: Any


class LDLWithInfo(NamedTuple):
    """`LDL`, and the first block of D without an inverse (0: none)."""

    LD: Any
    pivots: Any
    info: Any


def by_lapack(names: str, matrices: Numbers, **options: Any) -> list[Numbers]:
    """A LAPACK function's results of each matrix of a batch, stacked."""
    from scipy.linalg import lapack

    (function,) = lapack.get_lapack_funcs((names,), (matrices,))
    flat = matrices.reshape(-1, *matrices.shape[-2:])
    # A batch of none has the shapes of one matrix.
    given = flat if len(flat) else np.zeros((1, *matrices.shape[-2:]), matrices.dtype)
    rows = [function(matrix, **options) for matrix in given]
    batch = matrices.shape[:-2]
    parts = [np.stack([np.asarray(part) for part in column]) for column in zip(*rows, strict=True)]
    return [part[: len(flat)].reshape((*batch, *part.shape[1:])) for part in parts]


def check_codes(name: str, info: Numbers, what: str) -> None:
    """Raise as torch does where a code says that a matrix has no such factors."""
    if np.any(info > 0):
        raise RuntimeError(f"torch.linalg.{name}: {what} (error code: {int(info[info > 0][0])}).")


def codes(info: Numbers) -> Any:
    """LAPACK's codes as torch returns them."""
    return ms.Tensor(np.asarray(info, np.int32))


def conjugate_transposed(x: Any) -> Any:
    """Transposed, and conjugated if complex."""
    turned = ops.swapaxes(x, -1, -2)
    return ops.conj(turned) if turned.is_complex() else turned


def lower_triangle(x: Any, diagonal: int = 0) -> Any:
    """The part below a diagonal and on it, zeros above, whatever stands there."""
    mask = np.broadcast_to(np.tri(x.shape[-2], x.shape[-1], diagonal) > 0, tuple(x.shape))
    return ops.where(ms.Tensor(np.ascontiguousarray(mask)), x, ops.zeros_like(x))


def upper_triangle(x: Any, diagonal: int = 0) -> Any:
    """The part above a diagonal and on it, zeros below, whatever stands there."""
    mask = np.broadcast_to(np.tri(x.shape[-2], x.shape[-1], diagonal - 1) == 0, tuple(x.shape))
    return ops.where(ms.Tensor(np.ascontiguousarray(mask)), x, ops.zeros_like(x))


def eye_like(rows: int, columns: int, like: Any) -> Any:
    """Ones on the diagonal, in another tensor's dtype."""
    return ms.Tensor(np.eye(rows, columns), ms.float32).astype(like.dtype)


def first_part(x: Any, axis: int, count: int) -> Any:
    """The first elements of an axis."""
    return take(x, axis % x.ndim, np.arange(count))


def rest_part(x: Any, axis: int, count: int) -> Any:
    """What stands behind the first elements of an axis."""
    return take(x, axis % x.ndim, np.arange(count, x.shape[axis]))


# ---- LU


def lu_factor_ex(
    A: Any,  # noqa: N803
    *,
    pivot: bool = True,
    check_errors: bool = False,
) -> LUWithInfo:
    """LU with exchanged rows.

    Raises NotImplementedError without pivoting, which torch has on CUDA alone, and where a gradient
    of a singular matrix is asked for.
    """
    if not pivot:
        raise NotImplementedError("LU without pivoting: torch has it on CUDA alone, a port nowhere")
    values = ops.stop_gradient(A).asnumpy()
    found, places, info = by_lapack("getrf", values)
    if check_errors:
        check_codes("lu_factor", info, "U has a zero on its diagonal: A is singular")
    pivots = ms.Tensor(places.astype(np.int32) + 1)
    if not found.size or np.any(info > 0):
        refuse_gradient("linalg.lu_factor of a singular matrix", A)
        return LUWithInfo(ms.Tensor(found), pivots, codes(info))
    return LUWithInfo(_with_lu_gradient(found, places, A), pivots, codes(info))


def _with_lu_gradient(found: Numbers, places: Numbers, A: Any) -> Any:  # noqa: N803
    """LU's values with the gradient: dL = L tril(M), dU = triu(M) U of M = L⁻¹ Pᵀ dA U⁻¹."""
    rows, columns = found.shape[-2:]
    count = min(rows, columns)
    order = _row_orders(places, rows)
    moved = ops.matmul(ms.Tensor(np.swapaxes(_permutations(order, found.dtype), -1, -2)),
                       zero_with_gradient(A))  # fmt: skip
    corner = found[..., :count, :count]
    left = np.tril(corner, -1) + np.eye(count, dtype=found.dtype)
    right = np.triu(corner)
    left_inverse, right_inverse = (ms.Tensor(np.linalg.inv(part)) for part in (left, right))
    square = first_part(first_part(moved, -1, count), -2, count)
    inner = ops.matmul(ops.matmul(left_inverse, square), right_inverse)
    below, above = lower_triangle(inner, -1), upper_triangle(inner)
    change = ops.matmul(ms.Tensor(left), below) + ops.matmul(above, ms.Tensor(right))
    if rows < columns:
        beside = ops.matmul(left_inverse, rest_part(moved, -1, count))
        beside = beside - ops.matmul(below, ms.Tensor(found[..., count:].copy()))
        change = ops.cat([change, beside], -1)
    elif rows > columns:
        under = ops.matmul(rest_part(moved, -2, count), right_inverse)
        under = under - ops.matmul(ms.Tensor(found[..., count:, :].copy()), above)
        change = ops.cat([change, under], -2)
    return ms.Tensor(found) + change


def _row_orders(places: Numbers, rows: int) -> Numbers:
    """The rows in the order to which the exchanges (from 0) bring them."""
    flat = places.reshape(-1, places.shape[-1])
    orders = np.tile(np.arange(rows), (len(flat), 1))
    for order, exchanges in zip(orders, flat, strict=True):
        for row, other in enumerate(exchanges):
            order[[row, other]] = order[[other, row]]
    return orders.reshape(*places.shape[:-1], rows)


def _permutations(orders: Numbers, dtype: Any) -> Numbers:
    """P of A = P L U."""
    return np.swapaxes(np.eye(orders.shape[-1], dtype=dtype)[orders], -1, -2)


def lu_factor(A: Any, *, pivot: bool = True) -> LU:  # noqa: N803
    """LU with exchanged rows.  Raises RuntimeError for a singular matrix, as torch does."""
    found = lu_factor_ex(A, pivot=pivot, check_errors=True)
    return LU(found.LU, found.pivots)


def lu_compact(A: Any, pivot: bool = True, get_infos: bool = False) -> tuple[Any, ...]:  # noqa: N803
    """torch.lu: LU, pivots, and the codes where they are asked for."""
    found = lu_factor_ex(A, pivot=pivot, check_errors=not get_infos)
    return tuple(found) if get_infos else tuple(found[:2])


def lu_unpack(
    LU_data: Any,  # noqa: N803
    LU_pivots: Any,  # noqa: N803
    unpack_data: bool = True,
    unpack_pivots: bool = True,
) -> PLU:
    """P, L and U of both triangles in one matrix; what is not asked for is empty."""
    nothing = ops.zeros((0,), dtype=LU_data.dtype)
    rows, columns = LU_data.shape[-2:]
    count = min(rows, columns)
    order, left, right = nothing, nothing, nothing
    if unpack_pivots:
        order = permutation_of(LU_pivots, rows, LU_data)
    if unpack_data:
        eye = eye_like(rows, count, LU_data)
        left = lower_triangle(first_part(LU_data, -1, count), -1) + eye
        right = upper_triangle(first_part(LU_data, -2, count))
    return PLU(order, left, right)


def permutation_of(pivots: Any, rows: int, like: Any) -> Any:
    """P of exchanges that are counted from 1."""
    orders = _row_orders(pivots.asnumpy().astype(np.int64) - 1, rows)
    return ms.Tensor(_permutations(orders, np.float32)).astype(like.dtype)


def linalg_lu(A: Any, *, pivot: bool = True) -> PLU:  # noqa: N803
    """P, L and U whose product is the matrix."""
    found = lu_factor_ex(A, pivot=pivot)
    return lu_unpack(found.LU, found.pivots)


# ---- Cholesky and LDL


def cholesky_ex(
    A: Any,  # noqa: N803
    *,
    upper: bool = False,
    check_errors: bool = False,
) -> CholeskyWithInfo:
    """The triangular root and a code; where it is above 0, what LAPACK left in the matrix."""
    values = ops.stop_gradient(A).asnumpy()
    turned = np.conj(np.swapaxes(values, -1, -2)) if upper else values
    roots, info = by_lapack("potrf", np.ascontiguousarray(turned), lower=1)
    if check_errors:
        check_codes("cholesky_ex", info, "the input is not positive-definite")
    is_bad = np.broadcast_to((info > 0)[..., None, None], roots.shape)
    usable = np.where(is_bad, np.eye(roots.shape[-1], dtype=roots.dtype), roots)
    found = with_cholesky_gradient(ms.Tensor(usable), A)
    if is_bad.any():
        found = ops.where(ms.Tensor(np.ascontiguousarray(is_bad)), ms.Tensor(roots), found)
    return CholeskyWithInfo(conjugate_transposed(found) if upper else found, codes(info))


def ldl_factor_ex(
    A: Any,  # noqa: N803
    *,
    hermitian: bool = False,
    check_errors: bool = False,
) -> LDLWithInfo:
    """L D Lᵀ of a symmetric matrix by LAPACK's sytrf; torch has no gradient of it."""
    refuse_gradient("linalg.ldl_factor", A)
    values = A.asnumpy()
    name = "hetrf" if hermitian and np.iscomplexobj(values) else "sytrf"
    found, pivots, info = by_lapack(name, values, lower=1)
    if check_errors:
        check_codes("ldl_factor", info, "D has a zero on its diagonal")
    return LDLWithInfo(ms.Tensor(np.tril(found)), codes(pivots), codes(info))


def ldl_factor(A: Any, *, hermitian: bool = False) -> LDL:  # noqa: N803
    """L D Lᵀ of a symmetric matrix.  Raises RuntimeError for a singular one, as torch does."""
    found = ldl_factor_ex(A, hermitian=hermitian, check_errors=True)
    return LDL(found.LD, found.pivots)


def ldl_solve(
    LD: Any,  # noqa: N803
    pivots: Any,
    B: Any,  # noqa: N803
    *,
    hermitian: bool = False,
) -> Any:
    """The solution of A X = B by the factors of `ldl_factor`; torch has no gradient of it."""
    refuse_gradient("linalg.ldl_solve", LD)
    refuse_gradient("linalg.ldl_solve", B)
    factors, places, right = LD.asnumpy(), pivots.asnumpy(), B.asnumpy()
    batch = np.broadcast_shapes(factors.shape[:-2], right.shape[:-2])
    flat = np.broadcast_to(factors, (*batch, *factors.shape[-2:])).reshape(-1, *factors.shape[-2:])
    rows = np.broadcast_to(places, (*batch, places.shape[-1])).reshape(-1, places.shape[-1])
    found = np.array(np.broadcast_to(right, (*batch, *right.shape[-2:])))
    each = found.reshape(-1, *right.shape[-2:])
    for factor, exchanges, side in zip(flat, rows, each, strict=True):
        _solve_by_ldl(factor, exchanges, side, hermitian)
    return ms.Tensor(each.reshape(found.shape))


def _solve_by_ldl(factor: Numbers, exchanges: Numbers, side: Numbers, hermitian: bool) -> None:
    """LAPACK's sytrs for a lower triangle, in place: L and D downwards, Lᵀ upwards."""
    turn = np.conj if hermitian else np.asarray
    steps = _ldl_steps(exchanges)
    for start, end in steps:
        other, row = abs(int(exchanges[end - 1])) - 1, end - 1
        side[[row, other]] = side[[other, row]]
        side[end:] -= factor[end:, start:end] @ side[start:end]
        block = np.tril(factor[start:end, start:end])
        side[start:end] = np.linalg.solve(block + turn(np.tril(block, -1)).T, side[start:end])
    for start, end in reversed(steps):
        side[start:end] -= turn(factor[end:, start:end]).T @ side[end:]
        other, row = abs(int(exchanges[end - 1])) - 1, end - 1
        side[[row, other]] = side[[other, row]]


def _ldl_steps(exchanges: Numbers) -> list[tuple[int, int]]:
    """The blocks of D: of one row, or of two where an exchange is written as negative."""
    steps, start = [], 0
    while start < len(exchanges):
        end = start + (1 if exchanges[start] > 0 else 2)
        steps.append((start, end))
        start = end
    return steps
