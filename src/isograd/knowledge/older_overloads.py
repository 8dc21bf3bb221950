"""`x.add_(-lr, grad)`: older calls of torch's that give a factor before the tensor it belongs to.

torch 2.13 still takes them, with a warning: `add(input, alpha, other)`, `addcdiv(input, value,
tensor1, tensor2)`, `addmm(beta, input, alpha, mat1, mat2)`.
"""

from __future__ import annotations

from collections.abc import Collection

_FIRST, _BEHIND = "beta", ("alpha", "value")


def take_factors(values: list[str], names: list[str], others: Collection[str]) -> dict[str, str]:
    """Takes the factors that stand among the values of a call out of them, by their names.

    values: what is given by position, a receiver first: more than there are names.  names: the
    positional parameters; others: those that newer calls give by their names.
    """
    extra = len(values) - len(names)
    behind = [name for name in _BEHIND if name in others]
    if not behind or any(value.startswith("*") for value in values):
        return {}
    if _FIRST not in others:
        return {behind[0]: values.pop(1)} if extra == 1 else {}
    if extra > 2:
        return {}
    found = {_FIRST: values.pop(1 if names[0] == "self" else 0)}
    return found | ({behind[0]: values.pop(1)} if extra == 2 else {})
