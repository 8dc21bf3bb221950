"""Eigenvalues and eigenvectors of matrices that need not be symmetric."""

from __future__ import annotations

from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253

from isograd.runtime.algebra import Eigen
from isograd.runtime.basics import Numbers, refuse_gradient, zero_with_gradient


def eig(A: Any) -> Eigen:  # noqa: N803
    """Eigenvalues and eigenvectors of any matrix, complex, by scipy (LAPACK as in torch).

    Of a real matrix with its gradient; `ops.eig` has none.  Of a complex one it is refused, and
    where the eigenvectors are no basis.
    """
    plain = ops.stop_gradient(A).asnumpy()
    kind = np.result_type(plain.dtype, np.complex64)
    values, vectors = _by_scipy(plain, kind)
    eps = np.finfo(kind).eps
    is_basis = plain.size and np.all(np.linalg.cond(vectors) * eps < 1)
    if np.iscomplexobj(plain) or not is_basis:
        refuse_gradient("linalg.eig of a complex or a defective matrix", A)
        return Eigen(ms.Tensor(values), ms.Tensor(vectors))
    inner = _times(vectors, _times(np.linalg.inv(vectors), (zero_with_gradient(A), None)), True)
    gaps = values[..., None, :] - values[..., :, None]
    shares = np.divide(1, gaps, out=np.zeros_like(gaps), where=gaps != 0)
    real, imaginary = (ms.Tensor(np.ascontiguousarray(p)) for p in (shares.real, shares.imag))
    parts = inner[0] * real - inner[1] * imaginary, inner[0] * imaginary + inner[1] * real
    left, right = _times(vectors, parts)
    own, own_imaginary = (ms.Tensor(np.ascontiguousarray(p)) for p in (vectors.real, vectors.imag))
    along = (own * left + own_imaginary * right).sum(-2, keepdims=True)
    found = own + left - own * along, own_imaginary + right - own_imaginary * along
    eye = ms.Tensor(np.eye(plain.shape[-1], dtype=plain.dtype))
    diagonals = [(part * eye).sum(-1) for part in inner]
    moved = [ms.Tensor(np.ascontiguousarray(p)) for p in (values.real, values.imag)]
    return Eigen(
        ops.Complex()(moved[0] + diagonals[0], moved[1] + diagonals[1]), ops.Complex()(*found)
    )


def _by_scipy(plain: Numbers, kind: Any) -> tuple[Numbers, Numbers]:
    """In the matrix's own precision: numpy's are of float64, with other signs of vectors."""
    from scipy import linalg

    values, vectors = np.empty(plain.shape[:-1], kind), np.empty(plain.shape, kind)
    for place in np.ndindex(*plain.shape[:-2]):
        values[place], vectors[place] = linalg.eig(plain[place])
    return values, vectors


def _times(constant: Any, parts: tuple[Any, Any], is_right: bool = False) -> tuple[Any, Any]:
    """A complex constant times a tensor in its two parts; the constant on the right if said so."""
    real, imaginary = (
        ms.Tensor(np.ascontiguousarray(part)) for part in (constant.real, constant.imag)
    )

    def product(one: Any, other: Any) -> Any:
        return ops.matmul(other, one) if is_right else ops.matmul(one, other)

    first, second = parts
    if second is None:
        return product(real, first), product(imaginary, first)
    return (
        product(real, first) - product(imaginary, second),
        product(real, second) + product(imaginary, first),
    )
