"""Names of torch's functions, one for all spellings, and what their arguments are called."""

from __future__ import annotations

import functools
import inspect
from typing import Any

#: Bookkeeping, not computation.
_SILENT = frozenset(
    """get set size dim stride contiguous requires_grad_ copy_ numel is_floating_point item tolist
    shape_ device type has_names result_type set_ backward register_hook is_complex __len__
    __bool__ __repr__ new_empty empty empty_like is_contiguous data_ptr storage_offset""".split()
)


#: One name for what torch spells in several ways.
_NAMES = {
    "truediv": "div",
    "true_divide": "div",
    "divide": "div",
    "rtruediv": "rdiv",
    "itruediv": "div_",
    "radd": "add",
    "iadd": "add_",
    "subtract": "sub",
    "isub": "sub_",
    "multiply": "mul",
    "rmul": "mul",
    "imul": "mul_",
    "concat": "cat",
    "concatenate": "cat",
    "negative": "neg",
    "absolute": "abs",
    "swapaxes": "transpose",
    "swapdims": "transpose",
    "mm": "matmul",
    "ipow": "pow_",
    "logsigmoid": "log_sigmoid",
}


#: Arguments of functions whose signature Python cannot see, in their order.
_SIGNATURES = {
    name: tuple(arguments.split())
    for names, arguments in (
        ("conv1d conv2d conv3d", "input weight bias stride padding dilation groups"),
        (
            "conv_transpose1d conv_transpose2d conv_transpose3d",
            "input weight bias stride padding output_padding groups dilation",
        ),
        ("avg_pool1d", "input kernel_size stride padding ceil_mode count_include_pad"),
        (
            "avg_pool2d avg_pool3d",
            "input kernel_size stride padding ceil_mode count_include_pad divisor_override",
        ),
        ("gelu", "input approximate"),
        ("linear", "input weight bias"),
        ("prelu", "input weight"),
        ("softmax log_softmax softmin", "input dim dtype"),
        ("leaky_relu", "input negative_slope"),
        ("softplus", "input beta threshold"),
        ("cat stack", "tensors dim"),
        ("add sub rsub", "input other alpha"),
        ("mul div rdiv pow matmul bmm maximum minimum lt gt le ge eq ne remainder", "input other"),
        ("baddbmm addmm addbmm", "input batch1 batch2"),
        ("masked_fill", "input mask value"),
        ("where", "condition input other"),
        ("transpose", "input dim0 dim1"),
        ("chunk", "input chunks dim"),
        ("split tensor_split", "input split_size_or_sections dim"),
        ("unbind", "input dim"),
        ("getitem", "input index"),
        ("mean sum prod var std amax amin logsumexp", "input dim"),
        ("cumsum flip", "input dim"),
        ("roll", "input shifts dims"),
        ("triu tril", "input diagonal"),
        ("clamp", "input min max"),
        ("view reshape expand repeat", "input shape"),
        ("permute", "input dims"),
        ("flatten", "input start_dim end_dim"),
        (
            "scaled_dot_product_attention",
            "query key value attn_mask dropout_p is_causal scale enable_gqa",
        ),
        ("lstm", "input hx weights bias layers dropout train bidirectional batch_first"),
        (
            "gru rnn_tanh rnn_relu",
            "input hx weights bias layers dropout train bidirectional batch_first",
        ),
        ("unsqueeze squeeze", "input dim"),
        ("unflatten", "input dim sizes"),
        ("select", "input dim index"),
        ("narrow", "input dim start length"),
        ("gather", "input dim index"),
        ("outer", "input vec2"),
        ("rpow logical_and logical_or logical_xor and or xor", "input other"),
        ("bitwise_and bitwise_or", "input other"),
        ("logical_not invert bitwise_not bool view_as_complex view_as_real", "input"),
        ("lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell", "input hx w_ih w_hh b_ih b_hh"),
        ("index_select", "input dim index"),
        ("repeat_interleave", "input repeats dim"),
        ("l1_loss mse_loss", "input target"),
        ("to type", "input dtype"),
        ("einsum", "equation operands"),
        (
            "exp log sqrt rsqrt neg abs sigmoid tanh sin cos square erf relu float half double "
            "round sign floor ceil trunc reciprocal log1p expm1",
            "input",
        ),
    )
    for name in names.split()
}


_DEFAULTS: dict[str, dict[str, Any]] = {
    "gelu": {"approximate": "none"},
    "leaky_relu": {"negative_slope": 0.01},
    "cat": {"dim": 0},
    "stack": {"dim": 0},
    "chunk": {"dim": 0},
    "split": {"dim": 0},
    "triu": {"diagonal": 0},
    "tril": {"diagonal": 0},
    "scaled_dot_product_attention": {"attn_mask": None, "is_causal": False, "scale": None},
    "avg_pool2d": {"stride": None, "padding": 0, "ceil_mode": False, "count_include_pad": True},
    "avg_pool1d": {"stride": None, "padding": 0, "ceil_mode": False, "count_include_pad": True},
}


_CONVOLUTION = {"bias": None, "stride": 1, "padding": 0, "dilation": 1, "groups": 1}
_DEFAULTS.update({f"conv{count}d": _CONVOLUTION for count in "123"})


def canonical(func: Any) -> str:
    """The function's name without underscores, one for all spellings; "" for bookkeeping."""
    name = getattr(func, "__name__", "") or ""
    bare = name.strip("_") if name.startswith("__") else name
    if bare in _SILENT or name in _SILENT:
        return ""
    bare = _NAMES.get(bare, bare)
    if bare.endswith("_") and not bare.startswith("_"):
        bare = bare[:-1]
    bare = bare.lstrip("_")
    return _NAMES.get(bare, bare)


@functools.cache
def signature_of(func: Any, name: str) -> tuple[tuple[str, ...], dict[str, Any]]:
    if name in _SIGNATURES:
        return _SIGNATURES[name], _DEFAULTS.get(name, {})
    try:
        found = inspect.signature(func).parameters.values()
    except (TypeError, ValueError):
        return (), {}
    if any(p.kind in (p.VAR_POSITIONAL,) for p in found):
        return _pooling(name)
    names = tuple(p.name for p in found)
    return names, {p.name: p.default for p in found if p.default is not p.empty}


def _pooling(name: str) -> tuple[tuple[str, ...], dict[str, Any]]:
    if "adaptive" in name:
        return ("input", "output_size", "return_indices"), {}
    if "max_pool" in name:
        names = "input kernel_size stride padding dilation ceil_mode return_indices".split()
        return tuple(names), {"stride": None, "padding": 0, "dilation": 1, "ceil_mode": False}
    return (), {}
