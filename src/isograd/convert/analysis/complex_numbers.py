"""What makes complex numbers: functions of torch's, and numbers as they are written."""

from __future__ import annotations

import ast

#: What makes complex numbers of real ones, and the dtypes of them.
_COMPLEX = frozenset(
    "complex polar stft view_as_complex cfloat cdouble complex64 complex128 eig eigvals".split()
)


def makes_complex(api: str) -> bool:
    """Whether an API of torch makes complex numbers, or is a dtype of them."""
    return api.startswith("torch.") and (
        api.startswith("torch.fft.") or api.rpartition(".")[2] in _COMPLEX
    )


def writes_complex(tree: ast.AST) -> bool:
    """Whether a complex number is written out anywhere, `1j`."""
    return any(
        isinstance(part, ast.Constant) and isinstance(part.value, complex)
        for part in ast.walk(tree)
    )
