"""How MindSpore and TroubleShooter name the files of a dump."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: {op_type}.{op_name}.{task}.{stream}.{timestamp_us}.{input|output}.{slot}.{format}[.{dtype}];
#: older versions write no dtype, the oldest no stream; what msaccucmp makes of a binary dump ends
#: after the slot.
_TENSOR = re.compile(
    r"(?P<type>[^.]+)\.(?P<operator>.+?)\.(?P<task>\d+)(?:\.(?P<stream>\d+))?\.(?P<time>\d{6,})"
    r"\.(?P<side>input|output)\.(?P<slot>\d+)(?:\.(?P<format>[A-Za-z][\w-]*))?(?:\.(?P<dtype>\w+))?"
)
#: The binary file of an asynchronous dump, which holds all tensors of one run of an operator:
#: {op_type}.{op_name}.{task}.{stream}.{timestamp_us}, before CANN 5 without the stream.
_BINARY = re.compile(
    r"(?P<type>[^.]+)\.(?P<operator>.+?)\.(?P<task>\d+)(?:\.(?P<stream>\d+))?\.(?P<time>\d{6,})"
)
#: A folder of a rank, of a device or of a step.
RANK = re.compile(r"(?:rank|device|step)[_-]?(\d+)")
#: TroubleShooter's `ts.save` and MindSpore 2.3's `ops.TensorDump` number before the name; since 2.4
#: TensorDump writes NAME_DTYPE_NUMBER.
_NUMBERED = re.compile(
    r"(?P<index>\d+)_(?P<name>.+)"
    r"|(?P<called>.+)_(?:bool|bfloat16|(?:u?int|float|complex)\d{1,3})_(?P<count>\d+)"
)


@dataclass(frozen=True)
class DumpName:
    """What the name of a dumped file says; time in µs since the start of the machine or 1970.

    side and slot: empty and 0 for a binary file, which holds all tensors of an operator.
    """

    operator_type: str
    operator: str
    time_us: int
    side: str = ""
    slot: int = 0
    dtype: str | None = None


def parse_dump_name(stem: str) -> DumpName | None:
    """The parts of a name without `.npy`, or None where it is none of MindSpore's."""
    found = _TENSOR.fullmatch(stem)
    if found is None:
        return None
    return DumpName(
        found["type"],
        found["operator"],
        int(found["time"]),
        found["side"],
        int(found["slot"]),
        found["dtype"],
    )


def parse_binary_name(name: str) -> DumpName | None:
    """The parts of the name of a binary dump, or None where it is none."""
    found = _BINARY.fullmatch(name)
    return None if found is None else DumpName(found["type"], found["operator"], int(found["time"]))


def parse_numbered(stem: str) -> tuple[int, str] | None:
    """The number and the name of a file such as `3_conv1.npy` or `conv1_float32_3.npy`."""
    found = _NUMBERED.fullmatch(stem)
    if found is None:
        return None
    if found["index"] is not None:
        return int(found["index"]), found["name"]
    return int(found["count"]), found["called"]
