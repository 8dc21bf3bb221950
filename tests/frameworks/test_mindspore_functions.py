"""Torch's functions in MindSpore's operators agree with torch in value and gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
ms = pytest.importorskip("mindspore")

import torch.nn.functional as F  # noqa: E402 - torch may be missing

from isograd.frameworks.mindspore.differentiate import differentiate  # noqa: E402
from isograd.frameworks.mindspore.functions import FUNCTIONS, compute  # noqa: E402
from isograd.frameworks.mindspore.network import force_eager  # noqa: E402

force_eager()

RNG = np.random.default_rng(20261121)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def positive(*shape: int) -> np.ndarray:
    return np.abs(normal(*shape)) + np.float32(0.1)


def whole(most: int, *shape: int) -> np.ndarray:
    return RNG.integers(0, most, shape)


def shares(*shape: int) -> np.ndarray:
    found = positive(*shape)
    return found / found.sum(1, keepdims=True)


def coarse(*shape: int) -> np.ndarray:
    """Many equal elements: the gradient of a maximum depends on how ties are broken."""
    return np.round(normal(*shape)).astype(np.float32)


X = normal(2, 4, 5, 6)
#: How torch spells functions that are no attribute of its modules.
SPELLED: dict[str, Callable[..., Any]] = {
    "rdiv": lambda input, other: other / input,
    "getitem": lambda input, index: input[index],
    "float": lambda input: input.float(),
    "half": lambda input: input.half().float(),
    "to": lambda input, dtype: input.to(getattr(torch, dtype)),
    "view": lambda input, shape: input.view(shape),
    "expand": lambda input, shape: input.expand(shape),
    "repeat": lambda input, shape: input.repeat(shape),
    "identity": lambda input: input,
    "dropout": lambda input, p: input,
    "einsum": lambda equation, operands: torch.einsum(equation, *operands),
    "flip": lambda input, dim: torch.flip(input, dim),
    "unbind": lambda input, dim: torch.unbind(input, dim),
    "split": lambda input, split_size_or_sections, dim: torch.split(
        input, split_size_or_sections, dim
    ),
    "log_sigmoid": lambda input: F.logsigmoid(input),
    "baddbmm": torch.baddbmm,
    "minimum": torch.minimum,
}

UNARY = (
    "relu relu6 silu selu sigmoid tanh softsign mish hardswish hardsigmoid hardtanh log_sigmoid "
    "neg exp abs square erf sin cos float identity gelu elu celu leaky_relu softplus tanhshrink"
).split()

ROWS: list[tuple[str, dict[str, Any]]] = [
    *[(name, {"input": 3 * X}) for name in UNARY],
    *[(name, {"input": positive(3, 4)}) for name in ("log", "sqrt", "rsqrt", "log1p", "half")],
    ("relu", {"input": coarse(4, 5)}),
    ("abs", {"input": coarse(4, 5)}),
    ("gelu", {"input": X, "approximate": "tanh"}),
    ("elu", {"input": X, "alpha": 0.7}),
    ("celu", {"input": X, "alpha": 0.7}),
    ("leaky_relu", {"input": X, "negative_slope": 0.3}),
    ("prelu", {"input": X, "weight": normal(4)}),
    ("prelu", {"input": X, "weight": normal(1)}),
    ("softplus", {"input": 9 * X, "beta": 2.0, "threshold": 5.0}),
    ("hardtanh", {"input": X, "min_val": -0.5, "max_val": 0.7}),
    ("hardshrink", {"input": X, "lambd": 0.4}),
    ("softshrink", {"input": X, "lambd": 0.4}),
    ("threshold", {"input": X, "threshold": 0.2, "value": -3.0}),
    ("glu", {"input": X, "dim": 1}),
    *[(name, {"input": X, "dim": d}) for name in ("softmax", "log_softmax") for d in (0, 1, -1)],
    ("softmin", {"input": X, "dim": 2}),
    ("logsumexp", {"input": X, "dim": -1, "keepdim": True}),
    ("cat", {"tensors": (normal(2, 3), normal(2, 4)), "dim": 1}),
    ("stack", {"tensors": (normal(2, 3), normal(2, 3)), "dim": -1}),
    ("add", {"input": X, "other": normal(5, 6), "alpha": 0.5}),
    ("sub", {"input": X, "other": normal(6), "alpha": 2}),
    ("rsub", {"input": X, "other": normal(6), "alpha": 2}),
    ("mul", {"input": X, "other": normal(4, 1, 6)}),
    ("div", {"input": X, "other": positive(6)}),
    ("rdiv", {"input": positive(3, 4), "other": 2.0}),
    ("pow", {"input": positive(3, 4), "exponent": 1.7}),
    ("pow", {"input": X, "exponent": 2}),
    ("pow", {"input": X, "exponent": 3}),
    ("clamp", {"input": coarse(4, 5), "min": -1.0, "max": 1.0}),
    ("clamp", {"input": X, "max": 0.3}),
    ("maximum", {"input": coarse(4, 5), "other": coarse(4, 5)}),
    ("minimum", {"input": coarse(4, 5), "other": coarse(4, 5)}),
    ("masked_fill", {"input": X, "mask": X > 0.2, "value": -9.0}),
    ("where", {"condition": X > 0, "input": X, "other": normal(6)}),
    ("to", {"input": X, "dtype": "float16"}),
    ("dropout", {"input": X, "p": 0.5}),
    ("transpose", {"input": X, "dim0": 1, "dim1": -1}),
    ("permute", {"input": X, "dims": (0, 2, -1, 1)}),
    ("reshape", {"input": X, "shape": (2, -1, 3)}),
    ("view", {"input": X, "shape": (-1, 6)}),
    ("flatten", {"input": X, "start_dim": 1}),
    ("flatten", {"input": X}),
    ("unsqueeze", {"input": X, "dim": -1}),
    ("squeeze", {"input": normal(2, 1, 3, 1)}),
    ("squeeze", {"input": normal(2, 1, 3, 1), "dim": 1}),
    ("flip", {"input": X, "dim": (1, -1)}),
    ("roll", {"input": X, "shifts": (1, -2), "dims": (2, 3)}),
    ("roll", {"input": X, "shifts": 3}),
    ("chunk", {"input": X, "chunks": 3, "dim": 2}),
    ("split", {"input": X, "split_size_or_sections": 4, "dim": 3}),
    ("split", {"input": X, "split_size_or_sections": (1, 5), "dim": -1}),
    ("unbind", {"input": X, "dim": 1}),
    ("select", {"input": X, "dim": 1, "index": -1}),
    ("narrow", {"input": X, "dim": 2, "start": 1, "length": 3}),
    ("index_select", {"input": X, "dim": 1, "index": whole(4, 7)}),
    ("getitem", {"input": X, "index": (slice(None), slice(1, None, 2), None, Ellipsis, -1)}),
    ("getitem", {"input": X, "index": 1}),
    ("getitem", {"input": X, "index": (slice(None), whole(4, 3))}),
    ("mean", {"input": X, "dim": (1, -1), "keepdim": True}),
    ("mean", {"input": X}),
    ("sum", {"input": X, "dim": 2}),
    ("var", {"input": X, "dim": (2, 3), "unbiased": False}),
    ("var", {"input": X, "dim": 1, "keepdim": True}),
    ("std", {"input": X, "dim": -1, "correction": 0}),
    ("std", {"input": X}),
    ("max", {"input": coarse(3, 8), "dim": 1}),
    ("max", {"input": X, "dim": 1, "keepdim": True}),
    ("max", {"input": coarse(3, 4), "other": coarse(3, 4)}),
    ("min", {"input": coarse(3, 8), "dim": 0}),
    ("amax", {"input": coarse(3, 8), "dim": -1, "keepdim": True}),
    ("amin", {"input": coarse(3, 8), "dim": 1}),
    ("cumsum", {"input": X, "dim": -2}),
    ("triu", {"input": X, "diagonal": 1}),
    ("tril", {"input": X}),
    ("expand", {"input": normal(3, 1, 4), "shape": (2, -1, 5, 4)}),
    ("repeat", {"input": normal(3, 4), "shape": (2, 1, 3)}),
    ("repeat_interleave", {"input": X, "repeats": 2, "dim": 1}),
    ("pad", {"input": X, "pad": (1, 2, 0, 3), "value": 0.5}),
    ("pad", {"input": X, "pad": (-1, 2)}),
    *[("pad", {"input": X, "pad": (2, 1, 1, 3), "mode": m}) for m in ("reflect", "replicate")],
    ("pad", {"input": X, "pad": (2, 1, 1, 3), "mode": "circular"}),
    ("layer_norm", {"input": X, "normalized_shape": (5, 6)}),
    (
        "layer_norm",
        {
            "input": X,
            "normalized_shape": (6,),
            "weight": normal(6),
            "bias": normal(6),
            "eps": 0.1,
        },
    ),
    ("rms_norm", {"input": X, "normalized_shape": (6,), "weight": normal(6)}),
    ("rms_norm", {"input": X, "normalized_shape": (6,), "eps": 0.1}),
    ("group_norm", {"input": X, "num_groups": 2, "weight": normal(4), "bias": normal(4)}),
    ("group_norm", {"input": X, "num_groups": 4, "eps": 0.1}),
    ("instance_norm", {"input": X, "weight": normal(4), "bias": normal(4), "eps": 0.1}),
    ("normalize", {"input": X, "dim": 1}),
    ("normalize", {"input": X, "p": 1.0, "dim": -1, "eps": 9.0}),
    ("linear", {"input": X, "weight": normal(3, 6), "bias": normal(3)}),
    (
        "bilinear",
        {
            "input1": normal(5, 3),
            "input2": normal(5, 4),
            "weight": normal(2, 3, 4),
            "bias": normal(2),
        },
    ),
    ("matmul", {"input": X, "other": normal(6, 3)}),
    ("matmul", {"input": X, "other": normal(4, 6, 2)}),
    ("bmm", {"input": normal(3, 4, 5), "mat2": normal(3, 5, 2)}),
    (
        "baddbmm",
        {
            "input": normal(4, 2),
            "batch1": normal(3, 4, 5),
            "batch2": normal(3, 5, 2),
            "beta": 0.5,
            "alpha": 2,
        },
    ),
    ("addmm", {"input": normal(2), "mat1": normal(4, 5), "mat2": normal(5, 2), "alpha": 0.3}),
    *[
        ("einsum", {"equation": equation, "operands": tuple(normal(*s) for s in sizes)})
        for equation, sizes in (
            ("bhid,bhjd->bhij", [(2, 3, 4, 5), (2, 3, 6, 5)]),
            ("...ij,jk->...ik", [(2, 3, 4), (4, 5)]),
            ("nchw,oc->nohw", [(2, 3, 4, 5), (6, 3)]),
            ("ij->ji", [(3, 4)]),
            ("ij,j", [(3, 4), (4,)]),
            ("bi,bj,bk->bijk", [(2, 3), (2, 4), (2, 5)]),
            ("bij->b", [(2, 3, 4)]),
        )
    ],
    ("conv1d", {"input": normal(2, 4, 9), "weight": normal(3, 4, 3), "stride": 2, "padding": 1}),
    ("conv1d", {"input": normal(2, 4, 9), "weight": normal(3, 4, 4), "padding": "same"}),
    ("conv2d", {"input": X, "weight": normal(6, 2, 3, 2), "bias": normal(6), "groups": 2}),
    (
        "conv2d",
        {
            "input": X,
            "weight": normal(3, 4, 2, 3),
            "stride": (2, 1),
            "padding": (1, 2),
            "dilation": (2, 1),
        },
    ),
    ("conv2d", {"input": X[0], "weight": normal(3, 4, 2, 3)}),
    ("conv2d", {"input": X, "weight": normal(4, 1, 3, 3), "padding": 1, "groups": 4}),
    ("conv3d", {"input": normal(1, 2, 4, 5, 4), "weight": normal(3, 2, 2, 3, 2), "padding": 1}),
    (
        "conv_transpose1d",
        {"input": normal(2, 4, 5), "weight": normal(4, 3, 3), "stride": 2, "output_padding": 1},
    ),
    (
        "conv_transpose2d",
        {
            "input": X,
            "weight": normal(4, 3, 3, 2),
            "bias": normal(6),
            "stride": (2, 3),
            "padding": (1, 0),
            "output_padding": (1, 2),
            "groups": 2,
        },
    ),
    ("conv_transpose2d", {"input": X, "weight": normal(4, 3, 2, 2), "dilation": 2, "padding": 3}),
    (
        "conv_transpose3d",
        {"input": normal(1, 2, 3, 3, 2), "weight": normal(2, 2, 2, 2, 2), "stride": 2},
    ),
    *[
        (f"{kind}_pool2d", {"input": coarse(2, 3, 7, 8), **settings})
        for kind in ("max", "avg")
        for settings in (
            {"kernel_size": 2},
            {"kernel_size": 3, "stride": 2, "padding": 1},
            {"kernel_size": (3, 2), "stride": (2, 3), "padding": (1, 0), "ceil_mode": True},
        )
    ],
    ("max_pool2d", {"input": coarse(2, 3, 7, 8), "kernel_size": 3, "stride": 1, "dilation": 2}),
    ("avg_pool2d", {"input": X, "kernel_size": 3, "padding": 1, "count_include_pad": False}),
    (
        "avg_pool2d",
        {
            "input": normal(2, 3, 7, 8),
            "kernel_size": 3,
            "stride": 2,
            "padding": 1,
            "ceil_mode": True,
            "count_include_pad": False,
        },
    ),
    ("avg_pool2d", {"input": X, "kernel_size": 2, "divisor_override": 3}),
    ("avg_pool1d", {"input": normal(2, 3, 9), "kernel_size": 4, "stride": 2, "padding": 2}),
    ("max_pool1d", {"input": coarse(2, 3, 9), "kernel_size": 3, "stride": 2, "padding": 1}),
    ("max_pool3d", {"input": coarse(1, 2, 4, 5, 4), "kernel_size": 2}),
    ("adaptive_avg_pool1d", {"input": normal(2, 3, 10), "output_size": 4}),
    ("adaptive_avg_pool2d", {"input": X, "output_size": (3, None)}),
    ("adaptive_avg_pool2d", {"input": X, "output_size": 1}),
    ("adaptive_avg_pool2d", {"input": normal(1, 2, 3, 3), "output_size": 5}),
    ("adaptive_max_pool1d", {"input": coarse(2, 3, 10), "output_size": 4}),
    ("adaptive_max_pool2d", {"input": coarse(2, 3, 7, 5), "output_size": (3, 2)}),
    *[
        ("interpolate", {"input": normal(2, 3, 5, 6), **settings})
        for settings in (
            {"scale_factor": 2.0},
            {"size": (7, 4), "mode": "nearest"},
            {"size": (7, 4), "mode": "nearest-exact"},
            {"scale_factor": 1.7, "mode": "bilinear"},
            {"scale_factor": 1.7, "mode": "bilinear", "recompute_scale_factor": True},
            {"scale_factor": (2.0, 0.6), "mode": "bilinear", "align_corners": True},
            {"size": (11, 3), "mode": "bicubic"},
            {"size": (11, 3), "mode": "bicubic", "align_corners": True},
            {"size": (3, 4), "mode": "bilinear", "antialias": True},
            {"size": (9, 2), "mode": "bicubic", "antialias": True},
            {"size": (2, 3), "mode": "area"},
        )
    ],
    ("interpolate", {"input": normal(2, 3, 7), "scale_factor": 2.0, "mode": "linear"}),
    ("interpolate", {"input": normal(1, 2, 3, 4, 3), "scale_factor": 2.0, "mode": "trilinear"}),
    ("embedding", {"input": whole(7, 3, 4), "weight": normal(7, 5)}),
    ("embedding", {"input": whole(4, 3, 4), "weight": normal(4, 5), "padding_idx": -2}),
    *[
        (
            "scaled_dot_product_attention",
            {
                "query": normal(2, 4, 5, 3),
                "key": normal(2, heads, 6, 3),
                "value": normal(2, heads, 6, 2),
                **settings,
            },
        )
        for heads, settings in (
            (4, {}),
            (4, {"is_causal": True, "scale": 0.3}),
            (4, {"attn_mask": normal(5, 6)}),
            (4, {"attn_mask": np.tril(np.ones((5, 6), bool))}),
            (2, {"enable_gqa": True}),
        )
    ],
    *[
        ("cross_entropy", {"input": normal(6, 5), "target": whole(5, 6), **settings})
        for settings in (
            {},
            {"weight": positive(5)},
            {"ignore_index": 2, "label_smoothing": 0.1},
            {"weight": positive(5), "label_smoothing": 0.2, "ignore_index": 1},
            {"reduction": "sum", "label_smoothing": 0.1},
            {"reduction": "none", "ignore_index": 0},
        )
    ],
    ("cross_entropy", {"input": normal(2, 5, 3, 4), "target": whole(5, 2, 3, 4)}),
    ("cross_entropy", {"input": normal(6, 5), "target": shares(6, 5)}),
    (
        "cross_entropy",
        {
            "input": normal(6, 5),
            "target": shares(6, 5),
            "weight": positive(5),
            "label_smoothing": 0.1,
        },
    ),
    ("nll_loss", {"input": normal(6, 5), "target": whole(5, 6), "weight": positive(5)}),
    ("nll_loss", {"input": normal(6, 5), "target": whole(5, 6), "ignore_index": 3}),
    *[
        (name, {"input": X, "target": normal(2, 4, 5, 6), "reduction": reduction})
        for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss")
        for reduction in ("mean", "sum", "none")
    ],
    ("smooth_l1_loss", {"input": X, "target": normal(2, 4, 5, 6), "beta": 0.3}),
    ("huber_loss", {"input": X, "target": normal(2, 4, 5, 6), "delta": 0.3}),
    ("binary_cross_entropy", {"input": shares(3, 4), "target": shares(3, 4)}),
    (
        "binary_cross_entropy",
        {"input": shares(3, 4), "target": shares(3, 4), "weight": positive(4), "reduction": "sum"},
    ),
    ("binary_cross_entropy_with_logits", {"input": 9 * normal(3, 4), "target": shares(3, 4)}),
    (
        "binary_cross_entropy_with_logits",
        {
            "input": normal(3, 4),
            "target": shares(3, 4),
            "weight": positive(4),
            "pos_weight": positive(4),
        },
    ),
    ("kl_div", {"input": normal(3, 4), "target": shares(3, 4), "reduction": "batchmean"}),
    ("kl_div", {"input": normal(3, 4), "target": normal(3, 4), "log_target": True}),
    ("kl_div", {"input": normal(3, 4), "target": np.eye(3, 4, dtype=np.float32)}),
    ("poisson_nll_loss", {"input": normal(3, 4), "target": 3 * positive(3, 4), "full": True}),
    ("cosine_similarity", {"x1": normal(3, 4), "x2": normal(3, 4)}),
    ("cosine_similarity", {"x1": normal(3, 3), "x2": normal(3, 3, 3), "dim": 1}),
    ("cosine_similarity", {"x1": normal(2, 3, 4), "x2": normal(3, 1), "dim": -2}),
    ("cosine_similarity", {"x1": normal(5, 1, 4), "x2": normal(3, 4), "dim": -1}),
]


def torch_function(name: str) -> Callable[..., Any]:
    if name in SPELLED:
        return SPELLED[name]
    places = (F, torch, torch.Tensor)
    return next(getattr(place, name) for place in places if hasattr(place, name))


def constant(name: str, key: str) -> bool:
    is_loss = "loss" in name or "entropy" in name or name == "kl_div"
    return is_loss and key != "input"


def leaves_of(name: str, arguments: dict[str, Any]) -> list[tuple[str, int | None]]:
    """Where the floating arrays are that are differentiated."""
    found: list[tuple[str, int | None]] = []
    for key, value in arguments.items():
        if isinstance(value, np.ndarray) and value.dtype == np.float32 and not constant(name, key):
            found.append((key, None))
        elif key in ("tensors", "operands"):
            found += [(key, i) for i in range(len(value))]
    return found


def converted(value: Any, make: Callable[[np.ndarray], Any]) -> Any:
    if isinstance(value, np.ndarray):
        return make(value)
    if isinstance(value, tuple):
        return tuple(converted(part, make) for part in value)
    return value


def placed(arguments: dict[str, Any], places: list[Any], leaves: Any) -> dict[str, Any]:
    now = dict(arguments)
    for (key, index), leaf in zip(places, leaves, strict=True):
        if index is None:
            now[key] = leaf
        else:
            parts = list(now[key])
            parts[index] = leaf
            now[key] = tuple(parts)
    return now


def parts_of(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def weights(shape: Any, number: int) -> np.ndarray:
    return np.random.default_rng(number).standard_normal(shape).astype(np.float32)


def in_torch(name: str, arguments: dict[str, Any]) -> list[np.ndarray]:
    places = leaves_of(name, arguments)
    own = converted(tuple(arguments.items()), torch.from_numpy)
    own = dict(own)
    leaves = []
    for key, index in places:
        tensor = own[key] if index is None else own[key][index]
        leaves.append(tensor.clone().requires_grad_())
    parts = parts_of(torch_function(name)(**placed(own, places, leaves)))
    floating = [p.float() for p in parts if p.is_floating_point()]
    total = sum((p * torch.from_numpy(weights(p.shape, i))).sum() for i, p in enumerate(floating))
    found = torch.autograd.grad(total, leaves, allow_unused=True)
    gradients = [
        torch.zeros_like(v) if g is None else g for v, g in zip(leaves, found, strict=True)
    ]
    return [t.detach().numpy() for t in (*floating, *gradients)]


def in_mindspore(name: str, arguments: dict[str, Any]) -> list[np.ndarray]:
    places = leaves_of(name, arguments)
    own = dict(converted(tuple(arguments.items()), ms.Tensor))
    leaves = [own[key] if index is None else own[key][index] for key, index in places]
    kept: list[Any] = []

    def run(*now: Any) -> Any:
        parts = parts_of(compute(name, placed(own, places, now)))
        kept[:] = [p.astype(ms.float32) for p in parts if p.dtype in (ms.float32, ms.float16)]
        total = ms.Tensor(0.0, ms.float32)
        for i, part in enumerate(kept):
            total = total + (part * ms.Tensor(weights(part.shape, i))).sum()
        return total

    _, gradients, _ = differentiate(run, leaves, [])
    return [t.asnumpy() for t in (*kept, *gradients)]


def label(row: tuple[str, dict[str, Any]]) -> str:
    plain = {k: v for k, v in row[1].items() if isinstance(v, (int, float, str, bool))}
    return "-".join([row[0], *[f"{k}={v}" for k, v in plain.items()]])


@pytest.mark.parametrize(("name", "arguments"), ROWS, ids=[label(row) for row in ROWS])
def test_values_and_gradients_are_torchs(name: str, arguments: dict[str, Any]) -> None:
    expected, found = in_torch(name, arguments), in_mindspore(name, arguments)
    assert [a.shape for a in found] == [a.shape for a in expected]
    for one, other in zip(found, expected, strict=True):
        scale = max(float(np.abs(other).max(initial=0.0)), 1e-3)
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=3e-6 * scale)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("momentum", [0.1, 0.3])
def test_batch_norm_moves_its_statistics_as_torch(training: bool, momentum: float) -> None:
    weight, bias, start = normal(4), normal(4), positive(2, 4)
    results, statistics = [], []
    for make, run in (
        (torch.from_numpy, F.batch_norm),
        (ms.Tensor, lambda *a: FUNCTIONS["batch_norm"](*a)),
    ):
        running = [make(start[0].copy()), make(start[1].copy())]
        if make is ms.Tensor:
            running = [ms.Parameter(r, name=f"r{i}") for i, r in enumerate(running)]
        given = (make(X), *running, make(weight), make(bias), training, momentum, 1e-3)
        results.append(run(*given))
        statistics.append(running)
    np.testing.assert_allclose(results[1].asnumpy(), results[0].numpy(), rtol=1e-4, atol=3e-6)
    for mine, theirs in zip(statistics[1], statistics[0], strict=True):
        np.testing.assert_allclose(mine.asnumpy(), theirs.numpy(), rtol=1e-5)


def test_an_index_as_text_is_the_index() -> None:
    index = ("slice(None, None, None)", "slice(1, None, 2)", "Ellipsis", -1)
    found = compute("getitem", {"input": ms.Tensor(X), "index": index})
    np.testing.assert_array_equal(found.asnumpy(), X[:, 1::2, ..., -1])


def test_arange_counts() -> None:
    assert compute("arange", {"end": 5}).asnumpy().tolist() == [0, 1, 2, 3, 4]
    assert str(compute("arange", {"start": 1, "end": 2, "step": 0.5}).dtype) == "Float32"


def test_what_changes_nothing_is_ignored() -> None:
    found = compute("relu", {"input": ms.Tensor(X), "inplace": True})
    np.testing.assert_array_equal(found.asnumpy(), np.maximum(X, 0))


def test_a_detached_value_has_no_gradient() -> None:
    def run(x: Any) -> Any:
        return compute("detach", {"input": x}).sum()

    _, gradients, _ = differentiate(run, [ms.Tensor(X)], [])
    assert not gradients[0].asnumpy().any()


def test_an_unknown_argument_is_an_error() -> None:
    with pytest.raises(TypeError, match="colour"):
        compute("relu", {"input": ms.Tensor(X), "colour": 3})
