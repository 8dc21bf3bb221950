"""Which functions of torch's make complex numbers."""

from __future__ import annotations

#: What makes complex numbers of real ones, and the dtypes of them.
_COMPLEX = frozenset(
    "complex polar stft view_as_complex cfloat cdouble complex64 complex128 eig eigvals".split()
)


def makes_complex(api: str) -> bool:
    """Whether an API of torch makes complex numbers, or is a dtype of them."""
    return api.startswith("torch.") and (
        api.startswith("torch.fft.") or api.rpartition(".")[2] in _COMPLEX
    )
