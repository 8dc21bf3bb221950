"""Products of Householder's reflections, of which torch.geqrf gives the vectors.

H₁ H₂ … = 1 - V T Vᴴ with T = D (1 + S D)⁻¹, D the scalars on a diagonal and S the part of Vᴴ V
above its diagonal (Schreiber and Van Loan 1989).  `ops.orgqr` has no gradient, `ops.ormqr`
no kernel on a CPU.
"""

from __future__ import annotations

from typing import Any

from mindspore import ops  # noqa: TID253

from isograd.runtime.factors import (
    conjugate_transposed,
    eye_like,
    first_part,
    lower_triangle,
    upper_triangle,
)


def _vectors_and_middle(input: Any, tau: Any) -> tuple[Any, Any]:
    """V and T."""
    rows, count = input.shape[-2], tau.shape[-1]
    vectors = lower_triangle(first_part(input, -1, count), -1) + eye_like(rows, count, input)
    eye = eye_like(count, count, input)
    scalars = tau.expand_dims(-2) * eye
    above = upper_triangle(ops.matmul(conjugate_transposed(vectors), vectors), 1)
    return vectors, ops.matmul(scalars, ops.inverse(eye + ops.matmul(above, scalars)))


def householder_product(A: Any, tau: Any) -> Any:  # noqa: N803
    """The first columns of the product, as many as the matrix has."""
    rows, columns = A.shape[-2:]
    vectors, middle = _vectors_and_middle(A, tau)
    right = first_part(conjugate_transposed(vectors), -1, columns)
    return eye_like(rows, columns, A) - ops.matmul(vectors, ops.matmul(middle, right))


def ormqr(input: Any, tau: Any, other: Any, left: bool = True, transpose: bool = False) -> Any:
    """The product, or its adjoint, times a matrix, on its left or its right."""
    vectors, middle = _vectors_and_middle(input, tau)
    middle = conjugate_transposed(middle) if transpose else middle
    turned = conjugate_transposed(vectors)
    if left:
        return other - ops.matmul(vectors, ops.matmul(middle, ops.matmul(turned, other)))
    return other - ops.matmul(ops.matmul(ops.matmul(other, vectors), middle), turned)
