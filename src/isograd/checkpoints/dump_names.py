"""How MindSpore and TroubleShooter name the files of a dump."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: {op_type}.{op_name}.{task}.{stream}.{timestamp_us}.{input|output}.{slot}.{format}[.{dtype}];
#: what msaccucmp makes of an asynchronous dump ends after the slot.
_SYNCHRONOUS = re.compile(
    r"(?P<type>[^.]+)\.(?P<operator>.+)\.(?P<task>\d+)\.(?P<stream>\d+)\.(?P<time>\d+)"
    r"\.(?P<side>input|output)\.(?P<slot>\d+)(?:\.(?P<format>[A-Za-z][\w-]*))?(?:\.(?P<dtype>\w+))?"
)
#: A folder of a rank, and what lies below it: NET/GRAPH/ITERATION (asynchronous dumps put the
#: date and the device above it).
RANK = re.compile(r"(?:rank|device|step)[_-]?(\d+)")
_NUMBERED = re.compile(r"(?P<index>\d+)_(?P<name>.+)")


@dataclass(frozen=True)
class DumpName:
    """What the name of a dumped file says; time in µs since the start of the machine or 1970."""

    operator_type: str
    operator: str
    time_us: int
    side: str
    slot: int
    dtype: str | None


def parse_dump_name(stem: str) -> DumpName | None:
    """The parts of a name without `.npy`, or None where it is none of MindSpore's."""
    found = _SYNCHRONOUS.fullmatch(stem)
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


def parse_numbered(stem: str) -> tuple[int, str] | None:
    """The number and the name of a file of TroubleShooter's, such as `3_conv1.npy`."""
    found = _NUMBERED.fullmatch(stem)
    return (int(found["index"]), found["name"]) if found else None
