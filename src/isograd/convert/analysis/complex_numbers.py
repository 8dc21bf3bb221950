"""What makes complex numbers: functions of torch's, and numbers as they are written."""

from __future__ import annotations

import ast
import re

#: What makes complex numbers of real ones, and the dtypes of them.
_COMPLEX = frozenset(
    "complex polar stft view_as_complex cfloat cdouble complex64 complex128 eig eigvals".split()
)


def makes_complex(api: str) -> bool:
    """Whether an API of torch makes complex numbers, or is a dtype of them."""
    return api.startswith("torch.") and (
        api.startswith("torch.fft.") or api.rpartition(".")[2] in _COMPLEX
    )


#: How each number ends that is complex; a text without it holds none.
_ENDING = re.compile(r"[0-9]\.?[jJ]")


def may_write_complex(text: str) -> bool:
    """Whether a complex number may be written out in a text; to look at its tree takes longer."""
    return _ENDING.search(text) is not None


def writes_complex(tree: ast.AST) -> bool:
    """Whether a complex number is written out anywhere, `1j`."""
    return any(
        isinstance(part, ast.Constant) and isinstance(part.value, complex)
        for part in ast.walk(tree)
    )
