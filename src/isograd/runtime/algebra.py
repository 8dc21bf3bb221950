"""Products, decompositions and special functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253

from isograd.runtime.basics import (
    is_compiled,
    named,
    refuse_gradient,
    take,
    zero_with_gradient,
)
from isograd.runtime.making import of_one_float_dtype
from isograd.runtime.reductions import summand


def dot(input: Any, tensor: Any) -> Any:
    """The product of two vectors, in their own dtype."""
    products = input * tensor
    return products.sum().astype(products.dtype)


def vdot(input: Any, other: Any) -> Any:
    """The product of two vectors, the first one conjugated."""
    return dot(ops.conj(input) if input.is_complex() else input, other)


def kron(input: Any, other: Any) -> Any:
    """The Kronecker product of two tensors of any axes."""
    count = max(input.ndim, other.ndim)
    first = (1,) * (count - input.ndim) + tuple(input.shape)
    second = (1,) * (count - other.ndim) + tuple(other.shape)
    apart: tuple[int, ...] = ()
    between: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    for axis in range(count):
        apart, between = (*apart, first[axis], 1), (*between, 1, second[axis])
        sizes = (*sizes, first[axis] * second[axis])
    return (input.reshape(apart) * other.reshape(between)).reshape(sizes)


def multi_dot(tensors: Sequence[Any]) -> Any:
    """The product of several matrices, from the left."""
    found = tensors[0]
    for matrix in tensors[1:]:
        found = ops.matmul(found, matrix)
    return found


def sparse_coo_tensor(indices: Any, values: Any, size: Any = None, dtype: Any = None) -> Any:
    """The dense tensor with these values at these places, columns of positions, and zeros."""
    places = indices if isinstance(indices, ms.Tensor) else ms.Tensor(np.asarray(indices), ms.int64)
    given = values if isinstance(values, ms.Tensor) else ms.Tensor(np.asarray(values))
    if given.dtype == ms.float64 and not isinstance(values, ms.Tensor):
        given = given.astype(ms.float32)
    given = given if dtype is None else given.astype(dtype)
    if size is None:
        size = (*(int(line.max()) + 1 for line in places), *given.shape[1:])
    found = ops.zeros(tuple(size), dtype=given.dtype)
    return ops.tensor_scatter_add(found, places.swapaxes(0, 1).astype(ms.int64), given)


def cross(input: Any, other: Any, dim: int | None = None) -> Any:
    """The vector product along an axis of three; the first such axis where none is named."""
    axis = input.shape.index(3) if dim is None else dim % input.ndim
    after, before = np.array([1, 2, 0]), np.array([2, 0, 1])
    return take(input, axis, after) * take(other, axis, before) - take(input, axis, before) * take(
        other, axis, after
    )


def inverted(matrix: Any) -> Any:
    """The inverse of square matrices; MindSpore 2.10's refuses those of one row."""
    return 1 / matrix if matrix.shape[-1] == 1 else ops.inverse(matrix)


def solve(A: Any, B: Any, left: bool = True) -> Any:  # noqa: N803
    """The solution of A X = B, or of X A = B; of one vector where B has A's shape but its last."""
    is_vector = B.ndim == 1 or tuple(B.shape) == tuple(A.shape[:-1])
    side = B.expand_dims(-1) if is_vector else B
    inverse = inverted(A)
    found = ops.matmul(inverse, side) if left else ops.matmul(side, inverse)
    return found.squeeze(-1) if is_vector else found


def _moved_symmetric(matrix: Any) -> Any:
    """Zeros with a symmetric matrix's gradient."""
    moved = zero_with_gradient(matrix)
    return 0.5 * (moved + ops.swapaxes(moved, -1, -2))


def _lower_part(matrix: Any, diagonal: float) -> Any:
    """What stands below the diagonal, and a share of the diagonal."""
    count = matrix.shape[-1]
    shares = np.tri(count, k=-1) + diagonal * np.eye(count)
    return matrix * ms.Tensor(shares.astype(np.float32)).astype(matrix.dtype)


def cholesky(A: Any, upper: bool = False) -> Any:  # noqa: N803
    """The lower or upper triangular root of a symmetric matrix.

    MindSpore has no kernel for its gradient on a CPU.
    """
    found = with_cholesky_gradient(ops.cholesky(ops.stop_gradient(A)), A)
    return ops.swapaxes(found, -1, -2) if upper else found


def with_cholesky_gradient(root: Any, A: Any) -> Any:  # noqa: N803
    """The lower triangular root of a matrix with its gradient.

    L Φ(L⁻¹ dA L⁻ᵀ), Φ the lower half (Murray 2016, arXiv 1602.07527).
    """
    inverse = inverted(root)
    inner = ops.matmul(ops.matmul(inverse, _moved_symmetric(A)), ops.swapaxes(inverse, -1, -2))
    return root + ops.matmul(root, _lower_part(inner, 0.5))


def cholesky_inverse(input: Any, upper: bool = False) -> Any:
    """The inverse of what a triangular root is of; MindSpore's has another gradient."""
    lower = ops.swapaxes(input, -1, -2) if upper else input
    back = inverted(_lower_part(lower, 1.0))
    return ops.matmul(ops.swapaxes(back, -1, -2), back)


class SVD(NamedTuple):
    """What `torch.svd` returns."""

    U: Any
    S: Any
    V: Any


class LinalgSVD(NamedTuple):
    """What `torch.linalg.svd` returns."""

    U: Any
    S: Any
    Vh: Any


class QR(NamedTuple):
    """What `torch.linalg.qr` returns."""

    Q: Any
    R: Any


def svd(input: Any, some: bool = True) -> Any:
    """U, the singular values, and V (not transposed).

    MindSpore's gradient of singular values is off where one is 0; dS = diag(Uᵀ dA V).
    """
    s, u, v = ops.svd(input, full_matrices=not some)
    count = s.shape[-1]
    left, right = ops.stop_gradient(u)[..., :count], ops.stop_gradient(v)[..., :count]
    moved = (left * ops.matmul(zero_with_gradient(input), right)).sum(-2)
    return named(SVD, u, ops.stop_gradient(s) + moved, v)


def linalg_svd(A: Any, full_matrices: bool = True) -> Any:  # noqa: N803
    """U, the singular values, and V transposed."""
    u, s, v = svd(A, not full_matrices)
    return named(LinalgSVD, u, s, ops.swapaxes(v, -1, -2))


def qr(A: Any, mode: str = "reduced") -> Any:  # noqa: N803
    """Q and R, by numpy (LAPACK as in torch), with a gradient where torch has one.

    Of a wide matrix Q is that of its square part.  Where R alone is asked for, torch's Q is an
    empty tensor, and numpy gives no pair.
    """
    rows, columns = A.shape[-2:]
    if mode == "r" or (mode == "complete" and rows > columns):
        refuse_gradient("linalg.qr of a tall matrix (complete) or of R alone", A)
        how: Any = mode
        found: Any = np.linalg.qr(A.asnumpy(), how)
        if mode == "r":
            return QR(ms.Tensor(np.zeros(0, found.dtype)), ms.Tensor(found))
        return QR(ms.Tensor(found[0]), ms.Tensor(found[1]))
    if rows < columns:
        q, r = _reduced_qr(A[..., :rows])
        r = ops.cat([r, ops.matmul(ops.swapaxes(q, -1, -2), A[..., rows:])], -1)
        return named(QR, q, r)
    return named(QR, *_reduced_qr(A))


def _reduced_qr(A: Any) -> tuple[Any, Any]:  # noqa: N803
    """Q and R of a square or tall matrix, with a gradient."""
    found = np.linalg.qr(ops.stop_gradient(A).asnumpy())
    q, r, moved = ms.Tensor(found[0]), ms.Tensor(found[1]), zero_with_gradient(A)
    inverse = ops.inverse(r)
    inner = ops.matmul(ops.matmul(ops.swapaxes(q, -1, -2), moved), inverse)
    below = _lower_part(inner, 0.0)
    moved_r = ops.matmul(inner - below + ops.swapaxes(below, -1, -2), r)
    return q + ops.matmul(moved - ops.matmul(q, moved_r), inverse), r + moved_r


class Eigen(NamedTuple):
    """Eigenvalues and eigenvectors, as torch returns them."""

    eigenvalues: Any
    eigenvectors: Any


def eigh(A: Any, UPLO: Any = "L") -> Eigen:  # noqa: N803
    """Eigenvalues and eigenvectors of a symmetric matrix, by numpy (LAPACK as in torch)."""
    values, vectors = np.linalg.eigh(ops.stop_gradient(A).asnumpy(), UPLO)
    gaps = values[..., None, :] - values[..., :, None]
    inverse = np.divide(1, gaps, out=np.zeros_like(gaps), where=gaps != 0)
    found = ms.Tensor(vectors)
    inner = ops.matmul(ops.matmul(ops.swapaxes(found, -1, -2), _moved_symmetric(A)), found)
    eye = ms.Tensor(np.eye(values.shape[-1], dtype=values.dtype))
    moved = ops.matmul(found, inner * ms.Tensor(inverse))
    return Eigen(ms.Tensor(values) + (inner * eye).sum(-1), found + moved)


def eigvalsh(A: Any, UPLO: Any = "L") -> Any:  # noqa: N803
    """The eigenvalues of a symmetric matrix."""
    return eigh(A, UPLO).eigenvalues


def linalg_vander(x: Any, N: int | None = None) -> Any:  # noqa: N803
    """Powers of a vector's elements, rising from 0."""
    count, x = x.shape[-1] if N is None else N, summand(x)
    columns = [ops.ones_like(x)]
    for _ in range(count - 1):
        columns.append(columns[-1] * x)
    return ops.stack(columns, -1)


def entr(input: Any) -> Any:
    """-x log x, 0 at 0, minus infinity below."""
    safe = ops.where(input > 0, input, ops.ones_like(input))
    low = ops.where(input < 0, ops.full_like(input, -math.inf), ops.zeros_like(input))
    return ops.where(input > 0, -safe * ops.log(safe), low)


def ndtr(input: Any) -> Any:
    """The normal distribution's function."""
    return 0.5 * (1 + ops.erf(input * math.sqrt(0.5)))


def lerp(input: Any, end: Any, weight: Any) -> Any:
    """input + weight * (end - input); MindSpore's refuses an integer."""
    return ops.lerp(input, end, weight if isinstance(weight, ms.Tensor) else float(weight))


def xlogy(input: Any, other: Any) -> Any:
    """x log(y), 0 where x is 0; MindSpore's is NaN where y is 0 or infinite, too."""
    input, other = of_one_float_dtype(input, other)
    is_nothing = ops.logical_and(input == 0, ops.logical_or(other <= 0, other == math.inf))
    return input * ops.log(ops.where(is_nothing, ops.ones_like(other), other))


def xlog1py(input: Any, other: Any) -> Any:
    """x log(1 + y), 0 where x is 0."""
    input, other = of_one_float_dtype(input, other)
    is_endless = ops.logical_or(other <= -1, other == math.inf)
    is_nothing = ops.logical_and(input == 0, is_endless)
    return input * ops.where(is_nothing, ops.zeros_like(other), ops.log1p(other))


class Frexp(NamedTuple):
    """What `torch.frexp` returns."""

    mantissa: Any
    exponent: Any


def frexp(input: Any) -> Any:
    """Mantissa and exponent."""
    if is_compiled(input):
        plain = ops.stop_gradient(input)
        size = ops.abs(plain)
        safe = ops.where(size > 0, size, ops.ones_like(size))
        power = ops.floor(ops.log2(safe)) + 1
        # The logarithm is rounded: a mantissa lies in [0.5, 1).
        power = ops.where(safe * ops.pow(2.0, -power) >= 1, power + 1, power)
        power = ops.where(safe * ops.pow(2.0, -power) < 0.5, power - 1, power)
        power = ops.where(size > 0, power, ops.zeros_like(power))
        return input * ops.pow(2.0, -power), power.astype(ms.int32)
    mantissa, exponent = np.frexp(input.asnumpy())
    scale = np.ldexp(np.ones_like(mantissa), -exponent)
    return Frexp(input * ms.Tensor(scale), ms.Tensor(exponent.astype(np.int32)))


def local_response_norm(
    input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Any:
    """Divided by a power of the mean square over neighbouring channels."""
    count = input.shape[1]
    rows = np.arange(count)[:, None] - size // 2 + np.arange(size)
    matrix = (rows[:, :, None] == np.arange(count)).sum(1) / size
    squares = ops.movedim(input * input, 1, -1)
    mean = ops.movedim(ops.matmul(squares, ms.Tensor(matrix.T.astype(np.float32))), -1, 1)
    return input / ops.pow(k + alpha * mean, beta)


def matrix_exp(A: Any) -> Any:  # noqa: N803
    """By scaling, Taylor's series of degree 18 and squaring.

    Its error in rounding doubles with each squaring, so there are no more than the series needs.
    """
    size = float(ops.abs(ops.stop_gradient(A)).sum(-1).max().asnumpy())
    # Up to these sizes the series is exact to the dtype's rounding (Bader, Blanes, Casas 2019).
    enough = 1.09 if A.dtype == ms.float64 else 3.01
    squarings = max(0, math.ceil(math.log2(max(size / enough, 1e-30))))
    scaled = A / 2.0**squarings
    found = term = ops.zeros_like(A) + ops.eye(A.shape[-1], A.shape[-1], A.dtype)
    for number in range(1, 19):
        term = ops.matmul(term, scaled) / number
        found = found + term
    for _ in range(squarings):
        found = ops.matmul(found, found)
    return found
