"""Compressed sparse matrices of torch as dense ones, as a port keeps all of them."""

from __future__ import annotations

from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253

from isograd.runtime.algebra import sparse_coo_tensor
from isograd.runtime.basics import Numbers


def sparse_csr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Any = None, dtype: Any = None
) -> Any:
    """The dense matrix with these values: where each row begins, and the columns."""
    rows, columns = _places(crow_indices, col_indices)
    return sparse_coo_tensor(np.stack([rows, columns]), values, size, dtype)


def sparse_csc_tensor(
    ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, dtype: Any = None
) -> Any:
    """The dense matrix with these values: where each column begins, and the rows."""
    columns, rows = _places(ccol_indices, row_indices)
    return sparse_coo_tensor(np.stack([rows, columns]), values, size, dtype)


def sparse_bsr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Any = None, dtype: Any = None
) -> Any:
    """The dense matrix with these blocks: where each row of blocks begins, and the columns."""
    rows, columns = _places(crow_indices, col_indices)
    return _of_blocks(rows, columns, values, size, dtype)


def sparse_bsc_tensor(
    ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, dtype: Any = None
) -> Any:
    """The dense matrix with these blocks: where each column of blocks begins, and the rows."""
    columns, rows = _places(ccol_indices, row_indices)
    return _of_blocks(rows, columns, values, size, dtype)


def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Any = None,
    dtype: Any = None,
    layout: Any = "torch.sparse_csr",
) -> Any:
    """The dense matrix of one of the four compressed layouts."""
    makers = {
        "torch.sparse_csr": sparse_csr_tensor,
        "torch.sparse_csc": sparse_csc_tensor,
        "torch.sparse_bsr": sparse_bsr_tensor,
        "torch.sparse_bsc": sparse_bsc_tensor,
    }
    return makers[str(layout)](compressed_indices, plain_indices, values, size, dtype)


def _places(compressed: Any, plain: Any) -> tuple[Numbers, Numbers]:
    """Both positions of each value.  Raises NotImplementedError for a batch of matrices."""
    starts, others = (
        np.asarray(one.asnumpy() if isinstance(one, ms.Tensor) else one, np.int64)
        for one in (compressed, plain)
    )
    if starts.ndim != 1:
        raise NotImplementedError("a batch of compressed matrices: make them one by one")
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts)), others


def _of_blocks(rows: Numbers, columns: Numbers, values: Any, size: Any, dtype: Any) -> Any:
    blocks = values if isinstance(values, ms.Tensor) else ms.Tensor(np.asarray(values))
    if blocks.dtype == ms.float64 and not isinstance(values, ms.Tensor):
        blocks = blocks.astype(ms.float32)
    height, width = (int(length) for length in blocks.shape[1:])
    first = rows[:, None, None] * height + np.arange(height)[:, None] + np.zeros((1, 1, width), int)
    second = columns[:, None, None] * width + np.arange(width) + np.zeros((1, height, 1), int)
    places = np.stack([first.reshape(-1), second.reshape(-1)])
    return sparse_coo_tensor(places, blocks.reshape(-1), size, dtype)


def crow_indices(input: Any) -> Any:
    """Where each row begins among the elements that are not zero."""
    counts = (ops.stop_gradient(input).asnumpy() != 0).sum(1)
    return ms.Tensor(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))


def col_indices(input: Any) -> Any:
    """The columns of the elements that are not zero, row by row."""
    return ms.Tensor(np.argwhere(ops.stop_gradient(input).asnumpy() != 0)[:, 1].astype(np.int64))


crow_indices_copy, col_indices_copy = crow_indices, col_indices


def sparse_mask(input: Any, mask: Any) -> Any:
    """The elements where another matrix is not zero, and zeros."""
    return ops.where(mask != 0, input, ops.zeros_like(input))


def sspaddmm(input: Any, mat1: Any, mat2: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    """A matrix plus the product of two."""
    return beta * input + alpha * ops.matmul(mat1, mat2)
