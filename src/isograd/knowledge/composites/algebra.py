"""Products, decompositions and special functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253

from isograd.knowledge.composites.basics import refuse_gradient, take


def dot(input: Any, tensor: Any) -> Any:
    """The product of two vectors."""
    return (input * tensor).sum()


def kron(input: Any, other: Any) -> Any:
    """The Kronecker product of two matrices."""
    (a, b), (c, d) = input.shape, other.shape
    product = input.reshape(a, 1, b, 1) * other.reshape(1, c, 1, d)
    return product.reshape(a * c, b * d)


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


def solve(A: Any, B: Any) -> Any:  # noqa: N803
    """The solution of A x = B."""
    right = B.expand_dims(-1) if B.ndim == A.ndim - 1 else B
    found = ops.matmul(ops.inverse(A), right)
    return found.squeeze(-1) if B.ndim == A.ndim - 1 else found


def svd(input: Any, some: bool = True) -> tuple[Any, Any, Any]:
    """U, the singular values, and V (not transposed)."""
    s, u, v = ops.svd(input, full_matrices=not some)
    return u, s, v


def linalg_svd(A: Any, full_matrices: bool = True) -> tuple[Any, Any, Any]:  # noqa: N803
    """U, the singular values, and V transposed."""
    s, u, v = ops.svd(A, full_matrices=full_matrices)
    return u, s, ops.swapaxes(v, -1, -2)


def qr(A: Any, mode: str = "reduced") -> tuple[Any, Any]:  # noqa: N803
    """Q and R, by numpy (LAPACK as in torch); without a gradient."""
    refuse_gradient("linalg.qr", A)
    how: Any = mode
    found = np.linalg.qr(A.asnumpy(), how)
    return ms.Tensor(found[0]), ms.Tensor(found[1])


def eigvalsh(A: Any, UPLO: Any = "L") -> Any:  # noqa: N803
    """The eigenvalues of a symmetric matrix, by numpy; without a gradient."""
    refuse_gradient("linalg.eigvalsh", A)
    return ms.Tensor(np.linalg.eigvalsh(A.asnumpy(), UPLO))


def linalg_vander(x: Any, N: int | None = None) -> Any:  # noqa: N803
    """Powers of a vector's elements, rising from 0."""
    count = x.shape[-1] if N is None else N
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


def xlog1py(input: Any, other: Any) -> Any:
    """x log(1 + y), 0 where x is 0."""
    is_nothing = ops.logical_and(input == 0, other <= -1)
    return input * ops.where(is_nothing, ops.zeros_like(other), ops.log1p(other))


def frexp(input: Any) -> tuple[Any, Any]:
    """Mantissa and exponent."""
    mantissa, exponent = np.frexp(input.asnumpy())
    scale = np.ldexp(np.ones_like(mantissa), -exponent)
    return input * ms.Tensor(scale), ms.Tensor(exponent.astype(np.int32))


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
    """By scaling, Taylor's series and squaring."""
    size = float(ops.abs(ops.stop_gradient(A)).sum(-1).max().asnumpy())
    squarings = max(0, math.ceil(math.log2(max(size, 1e-30))) + 2)
    scaled = A / 2.0**squarings
    found = term = ops.zeros_like(A) + ops.eye(A.shape[-1], A.shape[-1], A.dtype)
    for number in range(1, 13):
        term = ops.matmul(term, scaled) / number
        found = found + term
    for _ in range(squarings):
        found = ops.matmul(found, found)
    return found


def hfft(input: Any, n: int | None = None, dim: int = -1) -> Any:
    """The Fourier transform of half of a Hermitian signal."""
    count = 2 * (input.shape[dim] - 1) if n is None else n
    return ops.irfft(ops.conj(input), count, dim) * count


def ihfft(input: Any, n: int | None = None, dim: int = -1) -> Any:
    """The inverse of `hfft`."""
    count = input.shape[dim] if n is None else n
    return ops.conj(ops.rfft(input, count, dim)) / count
