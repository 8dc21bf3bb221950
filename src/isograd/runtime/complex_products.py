"""Products and quotients of complex tensors in real parts: MindSpore's have no gradient (2.10).

Nor do they take a complex and a real tensor on a CPU.
"""

from __future__ import annotations

from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import ops  # noqa: TID253


def product(input: Any, other: Any) -> Any:
    """`input * other`, of tensors and numbers of any kind."""
    if _is_plain(input, other):
        return input * other
    a, b = _real_parts(input)
    c, d = _real_parts(other)
    if not _is_complex(other):
        return _made(a * c, b * c)
    if not _is_complex(input):
        return _made(a * c, a * d)
    return _made(a * c - b * d, a * d + b * c)


def quotient(input: Any, other: Any) -> Any:
    """`input / other`, of tensors and numbers of any kind."""
    if _is_plain(input, other):
        return input / other
    a, b = _real_parts(input)
    c, d = _real_parts(other)
    if not _is_complex(other):
        return _made(a / c, b / c)
    size = c * c + d * d
    return _made((a * c + b * d) / size, (b * c - a * d) / size)


def complex_sum(input: Any, other: Any) -> Any:
    """`input + other`, of tensors and numbers of any kind."""
    if _is_plain(input, other):
        return input + other
    return _operand(input) + _operand(other)


def complex_difference(input: Any, other: Any) -> Any:
    """`input - other`, of tensors and numbers of any kind."""
    if _is_plain(input, other):
        return input - other
    return _operand(input) - _operand(other)


def _operand(value: Any) -> Any:
    """A complex number of Python's as a tensor, because MindSpore's operators take none."""
    return ms.Tensor(value, ms.complex64) if isinstance(value, complex) else value


def _is_plain(input: Any, other: Any) -> bool:
    """Whether the operator itself takes two values: real ones, or two numbers."""
    if not (isinstance(input, ms.Tensor) or isinstance(other, ms.Tensor)):
        return True
    return not (_is_complex(input) or _is_complex(other))


def _is_complex(value: Any) -> bool:
    if isinstance(value, ms.Tensor):
        return value.dtype in (ms.complex64, ms.complex128)
    return isinstance(value, complex)


def _real_parts(value: Any) -> tuple[Any, Any]:
    """The real and the imaginary part, of a real tensor in a dtype that has a complex one."""
    if not isinstance(value, ms.Tensor):
        return (value.real, value.imag) if isinstance(value, complex) else (value, 0)
    if _is_complex(value):
        return ops.real(value), ops.imag(value)
    is_float = value.dtype in (ms.float32, ms.float64)
    return (value if is_float else value.astype(ms.float32)), 0


def _made(real: Any, imaginary: Any) -> Any:
    return ops.Complex()(real, imaginary)
