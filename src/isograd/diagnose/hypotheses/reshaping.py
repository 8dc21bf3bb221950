"""The order of axes that are merged, split or exchanged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isograd.diagnose.hypotheses.arrangement import orders
from isograd.diagnose.hypothesis import (
    Call,
    Context,
    Example,
    FunctionHypothesis,
    Values,
    operands,
)
from isograd.frameworks.base import FunctionSite, Operand

#: Every order of so many parts is tried; of more, only exchanges of two and the reverse.
_ALL_ORDERS = 4


def groups(given: tuple[int, ...], result: tuple[int, ...]) -> Iterator[tuple[int, int, int, int]]:
    """Where axes are merged or split: start and end in one shape, start and end in the other."""
    i = j = 0
    while i < len(given) and j < len(result):
        start, begin = i, j
        left, right = given[i], result[j]
        i, j = i + 1, j + 1
        while left != right:
            if left < right and i < len(given):
                left *= given[i]
                i += 1
            elif right < left and j < len(result):
                right *= result[j]
                j += 1
            else:
                return
        if (i - start == 1) != (j - begin == 1):
            yield start, i, begin, j


def _reshaped(site: FunctionSite, context: Context) -> Iterator[Values]:
    given = next(iter(operands(site)), None)
    if given is None or not site.outputs or given.dtype in ("bool", "int64") or context.is_loss:
        return
    for start, end, begin, stop in groups(given.shape, site.outputs[0].shape):
        merged = end - start > 1
        first, last = (start, end) if merged else (begin, stop)
        shape = given.shape if merged else site.outputs[0].shape
        if last - first > 3 or sum(size > 1 for size in shape[first:last]) < 2:
            continue
        for order in orders(last - first):
            full = (*range(first), *(first + i for i in order), *range(last, len(shape)))
            yield {"merged": merged, "axes": full}


def _in_other_order(call: Call, values: Values) -> Any:
    result = call.run()
    axes = list(values["axes"])
    if values["merged"]:
        given = call.arguments["input"] if "input" in call.arguments else call.arguments["self"]
        return given.permute(axes).reshape(result.shape)
    back = [axes.index(i) for i in range(len(axes))]
    return result.reshape([result.shape[i] for i in axes]).permute(back)


def _untransposed(site: FunctionSite, context: Context) -> Iterator[Values]:
    given = site.arguments.get("input")
    if isinstance(given, Operand) and site.outputs and not context.is_loss:
        yield {}


def _reshaped_instead(site: FunctionSite, context: Context) -> Iterator[Values]:
    """Where the shape shows the exchange: of equal axes a reshape does nothing."""
    found = _untransposed(site, context)
    return (v for v in found if site.arguments["input"].shape != site.outputs[0].shape)


def _by_reshape(call: Call, values: Values) -> Any:
    return call["input"].reshape(call.run().shape)


_A = {"f": ("nn.Linear(24, 5)", "nn.Dense(24, 5)")}

HYPOTHESES = (
    FunctionHypothesis(
        "reshape_order",
        "reshape.order",
        ("flatten", "reshape", "view", "unflatten"),
        _reshaped,
        _in_other_order,
        "axes are merged or split in the order {port}",
        rank=4,
        port_value=lambda values: ", ".join(map(str, values["axes"])),
        examples=(
            Example(
                "self.f(torch.flatten(x, 1))",
                "self.f(x.transpose(0, 2, 3, 1).reshape(3, -1))",
                ((3, 2, 3, 4),),
                _A,
                port_value="0, 2, 3, 1",
            ),
            Example(
                "torch.relu(x.view(3, 4, 6)).sum(-1)",
                "ops.relu(x.reshape(3, 6, 4)).sum(1)",
                ((3, 24),),
            ),
        ),
    ),
    FunctionHypothesis(
        "transpose_reshaped",
        "transpose.reshaped",
        ("transpose", "permute", "movedim"),
        _reshaped_instead,
        _by_reshape,
        "axes are exchanged by a reshape, which leaves the elements in their order",
        rank=4,
        examples=(
            Example(
                "self.f(x.flatten(2).transpose(1, 2))",
                "self.f(x.reshape(3, 4, 24))",
                ((3, 24, 2, 2),),
                _A,
            ),
            Example(
                "torch.relu(x.permute(0, 2, 3, 1)) * 2",
                "ops.relu(x.reshape(3, 4, 5, 2)) * 2",
                ((3, 2, 4, 5),),
            ),
        ),
    ),
    FunctionHypothesis(
        "transpose_missing",
        "transpose.missing",
        ("transpose", "permute", "movedim"),
        _untransposed,
        lambda call, values: call["input"],
        "axes are not exchanged",
        rank=5,
        examples=(
            Example(
                "torch.relu(x).transpose(1, 2) @ y",
                "ops.matmul(ops.relu(x), y)",
                ((3, 5, 5), (3, 5, 2)),
            ),
        ),
    ),
)
