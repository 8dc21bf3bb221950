"""Functions of complex matrices, which MindSpore's kernels do not take or make otherwise.

Decompositions are computed by numpy (LAPACK as in torch) and have no gradient; of a real matrix
each is the function beside which it stands.
"""

from __future__ import annotations

from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253

from isograd.runtime.algebra import (
    SVD,
    Eigen,
    LinalgSVD,
    cholesky,
    eigh,
    eigvalsh,
    linalg_svd,
    matrix_exp,
    svd,
)
from isograd.runtime.basics import named, refuse_gradient
from isograd.runtime.linear_systems import condition_number
from isograd.runtime.reductions import linalg_norm, matrix_norm


def hermitian_eigh(A: Any, UPLO: Any = "L") -> Eigen:  # noqa: N803
    """Eigenvalues, which are real, and eigenvectors of a Hermitian matrix."""
    if not ops.is_complex(A):
        return eigh(A, UPLO)
    values, vectors = np.linalg.eigh(_plain(A, "linalg.eigh"), UPLO)
    return Eigen(ms.Tensor(values), ms.Tensor(vectors))


def hermitian_eigvalsh(A: Any, UPLO: Any = "L") -> Any:  # noqa: N803
    """The eigenvalues of a Hermitian matrix."""
    return hermitian_eigh(A, UPLO).eigenvalues if ops.is_complex(A) else eigvalsh(A, UPLO)


def hermitian_cholesky(A: Any, upper: bool = False) -> Any:  # noqa: N803
    """The lower or upper triangular root of a Hermitian matrix."""
    if not ops.is_complex(A):
        return cholesky(A, upper)
    root = np.linalg.cholesky(_plain(A, "linalg.cholesky"))
    return ms.Tensor(np.ascontiguousarray(np.conj(np.swapaxes(root, -1, -2))) if upper else root)


def complex_linalg_svd(A: Any, full_matrices: bool = True) -> Any:  # noqa: N803
    """U, the singular values, which are real, and V transposed and conjugate."""
    if not ops.is_complex(A):
        return linalg_svd(A, full_matrices)
    found = np.linalg.svd(_plain(A, "linalg.svd"), full_matrices)
    return named(LinalgSVD, *map(ms.Tensor, found))


def complex_svd(input: Any, some: bool = True) -> Any:
    """U, the singular values and V."""
    if not ops.is_complex(input):
        return svd(input, some)
    u, s, vh = complex_linalg_svd(input, not some)
    return named(SVD, u, s, ops.conj(ops.swapaxes(vh, -1, -2)))


def singular_values(A: Any, compute_uv: bool = False) -> Any:  # noqa: N803
    """The singular values, which are real, in the place of `ops.svd(A, compute_uv=False)`."""
    if not ops.is_complex(A):
        return ops.svd(A, compute_uv=compute_uv)
    return ms.Tensor(np.linalg.svd(_plain(A, "linalg.svdvals"), compute_uv=False))


def _plain(A: Any, name: str) -> Any:  # noqa: N803
    refuse_gradient(f"{name} of a complex matrix", A)
    return ops.stop_gradient(A).asnumpy()


def complex_slogdet(input: Any) -> Any:
    """The sign of a determinant and the logarithm of its absolute value, which is real."""
    sign, size = ops.slogdet(input)
    return sign, ops.real(size) if ops.is_complex(size) else size


def complex_matrix_exp(A: Any) -> Any:  # noqa: N803
    """The exponential, by that of the real matrix [[re, -im], [im, re]], which has a gradient."""
    if not ops.is_complex(A):
        return matrix_exp(A)
    size, real, imaginary = A.shape[-1], ops.real(A), ops.imag(A)
    rows = ops.cat([real, -imaginary], -1), ops.cat([imaginary, real], -1)
    columns = matrix_exp(ops.cat(rows, -2))[..., :size]
    return ops.Complex()(columns[..., :size, :], columns[..., size:, :])


def complex_triu(input: Any, diagonal: int = 0) -> Any:
    """The upper triangle."""
    return _triangle(ops.triu, input, diagonal)


def complex_tril(input: Any, diagonal: int = 0) -> Any:
    """The lower triangle."""
    return _triangle(ops.tril, input, diagonal)


def _triangle(of: Any, input: Any, diagonal: int) -> Any:
    """MindSpore's own takes no complex numbers on a CPU (2.10)."""
    if not ops.is_complex(input):
        return of(input, diagonal)
    return ops.Complex()(of(ops.real(input), diagonal), of(ops.imag(input), diagonal))


def complex_matrix_norm(
    A: Any,  # noqa: N803
    ord: Any = "fro",
    dim: Any = (-2, -1),
    keepdim: bool = False,
) -> Any:
    """A norm of a matrix, which is real."""
    if ord == "fro" or not ops.is_complex(A):
        return matrix_norm(A, ord, dim, keepdim)
    plain = _plain(A, "linalg.matrix_norm")
    return ms.Tensor(np.linalg.norm(plain, ord, tuple(dim), keepdim))


def complex_linalg_norm(input: Any, ord: Any = None, dim: Any = None, keepdim: bool = False) -> Any:
    """`torch.linalg.norm`: of a complex matrix where two axes are meant and an order is given."""
    is_matrix = isinstance(dim, (tuple, list)) or (dim is None and input.ndim == 2)
    if ord is None or not is_matrix:
        return linalg_norm(input, ord, dim, keepdim)
    return complex_matrix_norm(input, ord, (-2, -1) if dim is None else dim, keepdim)


def complex_condition_number(A: Any, p: Any = None) -> Any:  # noqa: N803
    """The condition number of a matrix, which is real."""
    if not ops.is_complex(A):
        return condition_number(A, p)
    return ms.Tensor(np.real(np.linalg.cond(_plain(A, "linalg.cond"), p)))
