"""Results or operands that the port holds in sixteen bits.

The rounding itself is a pseudo-random change, so that alpha is 1 for it alone: no other small
fault can look like it.  A cast rounds the gradient that comes back through it as well.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from isograd.diagnose.hypotheses.geometry import is_closed
from isograd.diagnose.hypothesis import Call, Context, Example, FunctionHypothesis, Values
from isograd.frameworks.base import FunctionSite, Operand

_TYPES = ("float16", "bfloat16")
#: What is rounded, in words that stand before a function's name.
_OPERANDS, _RESULT = "the operands of", "the result of"
_BOTH = "the operands and the result of"
_APART = "the operands, the product and the sum with the bias of"
_INSIDE, _STEPS = "everything inside", "every step of"
_CONVOLUTIONS = (*(f"conv{n}d" for n in "123"), *(f"conv_transpose{n}d" for n in "123"))
#: Functions whose operands are worth rounding: they compute with all of them.
_PRODUCTS = ("linear", "matmul", "bmm", "baddbmm", "addmm", "einsum", *_CONVOLUTIONS)
#: Functions that people compute in another precision than the rest.
_OTHERS = (
    *("softmax", "log_softmax", "layer_norm", "batch_norm", "group_norm", "instance_norm"),
    *("rms_norm", "gelu", "silu", "sigmoid", "tanh", "relu", "scaled_dot_product_attention"),
    *("mean", "sum", "add", "mul", "div", "exp", "log", "pow", "sqrt", "rsqrt", "embedding"),
    *("interpolate", "cumsum", "normalize", "leaky_relu", "sin", "cos"),
)


def rounded(value: Any, name: str) -> Any:
    """A tensor, or those in a sequence, to the nearest numbers of sixteen bits."""
    import torch

    if isinstance(value, (tuple, list)):
        return type(value)(rounded(part, name) for part in value)
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    with torch._C.DisableTorchFunction():  # else isograd's own float64 mode lifts the cast
        if value.requires_grad:
            return _casting()(value, getattr(torch, name))
        return value.to(getattr(torch, name)).to(value.dtype)


@functools.cache
def _casting() -> Any:
    """The function of autograd that rounds both ways; made when torch is first needed."""
    import torch

    class Cast(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, value: Any, narrow: Any) -> Any:
            context.narrow = narrow
            return value.to(narrow).to(value.dtype)

        @staticmethod
        def backward(context: Any, gradient: Any) -> Any:
            with torch._C.DisableTorchFunction():
                return gradient.to(context.narrow).to(gradient.dtype), None

    return Cast.apply


def _is_float(operand: Any) -> bool:
    return isinstance(operand, Operand) and operand.dtype in ("float32", "float64")


def _propose(site: FunctionSite, context: Context) -> Iterator[Values]:
    function = site.place.function
    if not site.outputs or not _is_float(site.outputs[0]):
        return
    if function == "module":
        if is_closed(site, context):
            forms: tuple[str, ...] = (_OPERANDS, _RESULT)
        elif _computes(site, context):
            forms = (_INSIDE,)
        else:
            return
    elif function in _PRODUCTS:
        forms = (_OPERANDS, _RESULT, _BOTH)
        if isinstance(site.arguments.get("bias"), Operand):
            forms += (_APART,)
    else:
        forms = (_RESULT, _OPERANDS, _BOTH)
        if function in ("embedding", "relu", "leaky_relu"):
            forms = (_RESULT,)
        if function in ("add", "mul", "div"):
            forms = (_RESULT, _BOTH)
        if function == "softmax":
            forms += (_STEPS,)
    for form in forms:
        for name in _TYPES:
            yield {"form": form, "type": name}


def _computes(site: FunctionSite, context: Context) -> bool:
    """Whether a module holds several functions that sixteen bits would change."""
    own = site.place.module
    inside = [
        s
        for s in context.sites
        if s.place.function in (*_PRODUCTS, *_OTHERS)
        and (not own or s.place.module == own or s.place.module.startswith(f"{own}."))
    ]
    return len(inside) > 1


def _cast(call: Call, values: Values) -> Any:
    name, form = values["type"], values["form"]
    if form == _STEPS:
        return _softmax_in_steps(call["input"], int(call["dim"]), name)
    if form == _RESULT:
        return rounded(call.run(), name)
    if form == _INSIDE:
        with _half_mode(name):
            return call.run(**{k: rounded(v, name) for k, v in call.arguments.items()})
    changed = {
        key: rounded(value, name)
        for key, value in call.arguments.items()
        if not (call.function in ("batch_norm", "instance_norm") and key.startswith("running"))
    }
    if form == _OPERANDS:
        return call.run(**changed)
    if form == _BOTH:
        return rounded(call.run(**changed), name)
    bias = changed["bias"]
    result = rounded(call.run(**{**changed, "bias": None}), name)
    if call.function != "linear":
        bias = bias.reshape([-1 if d == 1 else 1 for d in range(result.dim())])
    return rounded(result + bias, name)


def _softmax_in_steps(x: Any, dim: int, name: str) -> Any:
    """Softmax as MindSpore's CPU kernel rounds it in float16 (equal to the bit, measured)."""
    x = rounded(x, name)
    powers = rounded(rounded(x - x.detach().amax(dim, keepdim=True), name).exp(), name)
    return rounded(powers / rounded(powers.sum(dim, keepdim=True), name), name)


def _half_mode(name: str) -> Any:
    """Every function that computes takes and gives numbers of sixteen bits."""
    from torch.overrides import TorchFunctionMode

    class Half(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            bare = getattr(func, "__name__", "").strip("_")
            if bare not in _PRODUCTS and bare not in _OTHERS and not bare.endswith("truediv"):
                return func(*args, **(kwargs or {}))
            rounds = {k: rounded(v, name) for k, v in (kwargs or {}).items()}
            return rounded(func(*(rounded(a, name) for a in args), **rounds), name)

    return Half()


HYPOTHESES = (
    FunctionHypothesis(
        "precision_cast",
        "precision.cast",
        (*_PRODUCTS, *_OTHERS, "module"),
        _propose,
        _cast,
        "{form} {function} in {port}",
        reference_value=lambda site, context: site.outputs[0].dtype,
        port_value=lambda values: values["type"],
        rank=6,
        examples=(
            Example(
                "self.fc(x)",
                "self.fc(x.astype(ms.float16).astype(ms.float32))",
                modules={"fc": ("nn.Linear(8, 5)", "nn.Dense(8, 5)")},
                port_value="float16",
            ),
            Example(
                "self.fc(x)",
                "self.fc(x)",
                modules={"fc": ("nn.Linear(8, 5)", "nn.Dense(8, 5).to_float(ms.float16)")},
                port_value="float16",
            ),
            Example(
                "F.softmax(x @ y, -1)",
                "ops.softmax(ops.matmul(x, y).astype(ms.bfloat16).astype(ms.float32), -1)",
                ((4, 6, 8), (8, 5)),
                port_value="bfloat16",
            ),
            Example(
                "F.softmax(x, -1)",
                "ops.softmax(x.astype(ms.float16), axis=-1).astype(ms.float32)",
                ((4, 6, 33),),
                port_value="float16",
            ),
            Example(
                "self.conv(x)",
                "self.conv(x).astype(ms.float32)",
                ((2, 4, 9, 9),),
                {
                    "conv": (
                        "nn.Conv2d(4, 6, 3)",
                        "nn.Conv2d(4, 6, 3, pad_mode='valid', has_bias=True).to_float(ms.float16)",
                    )
                },
                port_value="float16",
            ),
        ),
    ),
)
