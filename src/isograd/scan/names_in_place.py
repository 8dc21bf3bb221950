"""Names of what changes a tensor in place: `add_`, `__iadd__`, `operator.iadd`."""

from __future__ import annotations

#: Python's operators that change their left operand, with the method of a tensor that does so.
OPERATORS: dict[str, str] = {
    "iadd": "add_",
    "isub": "sub_",
    "imul": "mul_",
    "itruediv": "div_",
    "ifloordiv": "floor_divide_",
    "imod": "remainder_",
    "ipow": "pow_",
    "iand": "bitwise_and_",
    "ior": "bitwise_or_",
    "ixor": "bitwise_xor_",
    "ilshift": "bitwise_left_shift_",
    "irshift": "bitwise_right_shift_",
}
#: The same by their special names.
SPECIAL: dict[str, str] = {f"__{name}__": method for name, method in OPERATORS.items()}


def changes_in_place(name: str) -> bool:
    """Whether a method of this name changes its tensor: one with `_` at its end, or `__iadd__`."""
    return (name.endswith("_") and not name.endswith("__")) or name in SPECIAL


def operator_method(name: str) -> str:
    """The method of a tensor that `operator.iadd` is, by its dotted name; empty for others."""
    home, _, last = name.rpartition(".")
    return OPERATORS.get(last, "") if home in ("operator", "_operator") else ""
