"""Norms and tables of MindSpore's names where its own layers have no such setting."""

from __future__ import annotations

from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import nn, ops  # noqa: TID253
from mindspore.common import initializer  # noqa: TID253


class LayerNormCell(nn.LayerNorm):  # type: ignore[misc]
    """A LayerNorm of the last axes, with or without gamma and beta.

    MindSpore's own counts several axes from the front, which takes the input's rank, and always
    has both parameters (`elementwise_affine` and `bias` are torch's).
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        shape = (
            (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        )
        super().__init__(shape, epsilon=eps, dtype=dtype or ms.float32)
        self.elementwise_affine = elementwise_affine
        if not elementwise_affine:
            self.gamma = None
        if not (elementwise_affine and bias):
            self.beta = None

    def construct(self, x: Any) -> Any:
        """Mean 0 and deviation 1 over the last axes, then gamma and beta."""
        shape = self.normalized_shape
        gamma = ops.ones(shape, dtype=x.dtype) if self.gamma is None else self.gamma  # type: ignore[redundant-expr]  # torch's flags
        beta = ops.zeros(shape, dtype=x.dtype) if self.beta is None else self.beta  # type: ignore[redundant-expr]  # torch's flags
        first = x.ndim - len(shape)
        return ops.LayerNorm(first, first, self.epsilon)(x, gamma, beta)[0]


class PaddedEmbedding(nn.Embedding):  # type: ignore[misc]
    """An Embedding whose padding row starts as zeros and does not learn.

    MindSpore's own starts so, too, but teaches the row.
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int) -> None:
        super().__init__(
            num_embeddings,
            embedding_dim,
            embedding_table=initializer.Normal(1.0),
            padding_idx=padding_idx % num_embeddings,
        )

    def construct(self, ids: Any) -> Any:
        """Rows of the table; that of the padding as a constant."""
        rows = ops.gather(self.embedding_table, ids, 0)
        is_padding = ops.expand_dims(ids == self.padding_idx, -1)
        return ops.where(is_padding, ops.stop_gradient(rows), rows)
