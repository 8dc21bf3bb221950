"""torch.autograd.Function on MindSpore's own."""

from __future__ import annotations

from mindspore.common._grad_function import _Function  # noqa: TID253


class Function(_Function):  # type: ignore[misc]
    """torch.autograd.Function: static methods forward(ctx, …) and backward(ctx, …).

    MindSpore 2.10 has one, with torch's context, under a private name: a Cell's `bprop` is not
    recorded for `loss.backward()` ("The pointer[top_cell_] is null").
    """
