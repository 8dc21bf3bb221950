"""Dtypes of torch that MindSpore has none of: names that can be compared, and no more."""

from __future__ import annotations


class ShellDtype:
    """A dtype that no tensor has: comparing it answers no, and making a tensor of it raises."""

    #: `Tensor.to` takes what comes from MindSpore for a dtype; MindSpore itself raises for this.
    __module__ = "mindspore.of_torch"

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"


int1, int2, int3, int4 = (ShellDtype(f"int{bits}") for bits in (1, 2, 3, 4))
int5, int6, int7 = (ShellDtype(f"int{bits}") for bits in (5, 6, 7))
uint1, uint2, uint3, uint4 = (ShellDtype(f"uint{bits}") for bits in (1, 2, 3, 4))
uint5, uint6, uint7 = (ShellDtype(f"uint{bits}") for bits in (5, 6, 7))
bits8, bits16 = ShellDtype("bits8"), ShellDtype("bits16")
bits1x8, bits2x4, bits4x2 = (ShellDtype(f"bits{name}") for name in ("1x8", "2x4", "4x2"))
quint2x4, quint4x2 = ShellDtype("quint2x4"), ShellDtype("quint4x2")
float8_e4m3fnuz, float8_e5m2fnuz = ShellDtype("float8_e4m3fnuz"), ShellDtype("float8_e5m2fnuz")
float8_e8m0fnu, float4_e2m1fn_x2 = ShellDtype("float8_e8m0fnu"), ShellDtype("float4_e2m1fn_x2")
complex32 = ShellDtype("complex32")
