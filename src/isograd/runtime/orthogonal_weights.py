"""Weights with columns at right angles, as torch.nn.utils.parametrizations.orthogonal has them."""

from __future__ import annotations

from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253

from isograd.runtime.algebra import matrix_exp, solve
from isograd.runtime.basics import take
from isograd.runtime.reparametrized import register_parametrization
from isograd.runtime.torch_module import Module

_MAPS = ("matrix_exp", "cayley", "householder")


def _turned(x: Any) -> Any:
    return ops.swapaxes(x, -1, -2)


def _is_orthogonal(q: Any) -> bool:
    near = 10 * q.shape[-2] * np.finfo(q.dtype).eps
    return np.allclose(np.swapaxes(q, -1, -2) @ q, np.eye(q.shape[-1]), atol=near)


def _made_orthogonal(values: Any) -> Any:
    """The first factor of a decomposition whose second one has a positive diagonal."""
    q, r = np.linalg.qr(values)
    return q * np.sign(np.diagonal(r, axis1=-2, axis2=-1))[..., None, :]


def _reflected(lower: Any) -> Any:
    """The product of the reflections by columns, which have a 1 above what is given of them."""
    rows, columns = lower.shape[-2:]
    found = ops.zeros_like(lower) + ops.eye(rows, columns, lower.dtype)
    factors = 2 / (1 + ops.sum(lower * lower, dim=-2, keepdim=True))
    for number in range(columns - 1, -1, -1):
        at = np.array([number])
        one = ms.Tensor(np.eye(rows, dtype=np.float32)[:, at]).astype(lower.dtype)
        vector = take(lower, lower.ndim - 1, at) + one
        factor = take(factors, lower.ndim - 1, at)
        found = found - factor * ops.matmul(vector, ops.matmul(_turned(vector), found))
    return found


class _Orthogonal(Module):
    def __init__(self, orthogonal_map: str, use_trivialization: bool) -> None:
        super().__init__()
        self.orthogonal_map, self.use_trivialization = orthogonal_map, use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def construct(self, original: Any) -> Any:
        """The orthogonal matrix of a matrix without conditions."""
        is_wide = original.shape[-2] < original.shape[-1]
        x = _turned(original) if is_wide else original
        if self.orthogonal_map == "householder":
            signs = ops.diagonal(ops.stop_gradient(x), 0, -2, -1).astype(ms.int32).astype(x.dtype)
            found = _reflected(ops.tril(x, -1)) * signs.expand_dims(-2)
        else:
            found = self._rotated(ops.tril(x))
        if self.use_trivialization:
            found = ops.matmul(self.base, found)
        return _turned(found) if is_wide else found

    def _rotated(self, x: Any) -> Any:
        rows, columns = x.shape[-2:]
        if rows > columns:
            rest = ops.zeros((*x.shape[:-1], rows - columns), dtype=x.dtype)
            x = ops.cat((x, rest), -1)
        skew = x - _turned(x)
        if self.orthogonal_map == "matrix_exp":
            found = matrix_exp(skew)
        else:
            unit = ops.zeros_like(skew) + ops.eye(rows, rows, skew.dtype)
            found = solve(unit - skew / 2, unit + skew / 2)
        return take(found, found.ndim - 1, np.arange(columns)) if rows > columns else found

    def right_inverse(self, weight: Any) -> Any:
        """What the weight, or the orthogonal matrix near it, is made of; by numpy."""
        is_wide = weight.shape[-2] < weight.shape[-1]
        values = (_turned(weight) if is_wide else weight).asnumpy()
        rows, columns = values.shape[-2:]
        if self.use_trivialization:
            if rows > columns:
                more = ops.randn(*values.shape[:-1], rows - columns).asnumpy()
                values = np.concatenate((values, more.astype(values.dtype)), -1)
            is_done = rows == columns and _is_orthogonal(values)
            self.base = ms.Tensor(values if is_done else _made_orthogonal(values))
            unit = np.zeros(weight.shape, values.dtype)
            places = np.arange(columns)
            unit[..., places, places] = -1
            return ms.Tensor(unit)
        if self.orthogonal_map != "householder":
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley "
                "parametrizations when use_trivialization=False."
            )
        turned, factors = np.linalg.qr(values, mode="raw")
        found, places = np.array(np.swapaxes(turned, -1, -2)), np.arange(columns)
        signs = np.sign(found[..., places, places])
        found[..., places, places] = np.where(factors == 0, -signs, signs)
        found = np.swapaxes(found, -1, -2) if is_wide else found
        return ms.Tensor(np.ascontiguousarray(found))


def orthogonal(
    module: Any,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Any:
    """A weight whose columns, or rows where it is wide, are at right angles, of length 1."""
    weight = getattr(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices, not {weight.ndim} dimensions.")
    is_square = weight.shape[-2] == weight.shape[-1]
    chosen = orthogonal_map or ("matrix_exp" if is_square else "householder")
    if chosen not in _MAPS:
        raise ValueError(f"orthogonal_map has to be one of {_MAPS}, not {chosen!r}")
    return register_parametrization(module, name, _Orthogonal(chosen, use_trivialization))
