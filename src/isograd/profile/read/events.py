"""One event of a Chrome trace, decoded as far as a profile needs it.

Two decoders: times as float64 where that is exact to the nanosecond (up to 2^53 ns, 104 days, which
holds for clocks that count from the machine's start), and times as decimals for what is written as
text or counts from 1970, where float64 loses the last digits.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np

from isograd.profile.spans import Ints

#: The largest time in microseconds whose nanoseconds float64 holds exactly.
EXACT_US = 2**53 / 1000
_Text = str | int | float | bool | None


class Arguments(msgspec.Struct, gc=False):
    """`args` of an event: torch's names."""

    shapes: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Input Dims")
    dtypes: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Input type")
    change_bytes: _Text = msgspec.field(default=0, name="Bytes")
    total_bytes: _Text = msgspec.field(default=-1, name="Total Allocated")
    name: _Text = ""
    type: _Text = ""
    input_0: msgspec.Raw = msgspec.Raw(b"")
    input_1: msgspec.Raw = msgspec.Raw(b"")
    correlation: _Text = -1
    sequence: _Text = msgspec.field(default=-1, name="Sequence number")
    address: _Text = msgspec.field(default=-1, name="Addr")
    device_number: _Text = msgspec.field(default=-1, name="Device Id")


class FloatEvent(msgspec.Struct, gc=False):
    """An event whose times float64 holds."""

    ph: str
    name: _Text = ""
    cat: _Text = ""
    pid: _Text = 0
    tid: _Text = 0
    ts: float = 0.0
    dur: float = -1.0
    args: Arguments | None = None


class DecimalEvent(msgspec.Struct, gc=False):
    """An event whose times are read digit by digit."""

    ph: str
    name: _Text = ""
    cat: _Text = ""
    pid: _Text = 0
    tid: _Text = 0
    ts: Decimal = Decimal(0)
    dur: Decimal = Decimal(-1)
    args: Arguments | None = None


class DecodeError(ValueError):
    """A block is not a list of events."""


class EventDecoder:
    """Decodes blocks; keeps to decimals after the first block that needs them.

    Events that are no events (a number where a name is wanted) are left out and counted.
    """

    def __init__(self) -> None:
        self.dropped = 0
        self._float = msgspec.json.Decoder(list[FloatEvent])
        self._decimal = msgspec.json.Decoder(list[DecimalEvent])
        self._one = msgspec.json.Decoder(DecimalEvent)
        self._raw = msgspec.json.Decoder(list[msgspec.Raw])
        self._is_decimal = False

    def __call__(self, block: bytes) -> list[Any]:
        """Decode `[event, …]`; raise DecodeError where it is not JSON."""
        try:
            if not self._is_decimal:
                events = self._float.decode(block)
                if all(-EXACT_US < event.ts < EXACT_US for event in events):
                    return events
                self._is_decimal = True
            return self._decimal.decode(block)
        except msgspec.ValidationError:
            return self._decode_slowly(block)
        except msgspec.DecodeError as error:
            raise DecodeError(str(error)) from error

    def _decode_slowly(self, block: bytes) -> list[Any]:
        if not self._is_decimal:
            self._is_decimal = True
            return self(block)
        decoded = [self._decode_one(raw) for raw in self._raw.decode(block)]
        events = [event for event in decoded if event is not None]
        self.dropped += len(decoded) - len(events)
        return events

    def _decode_one(self, raw: msgspec.Raw) -> DecimalEvent | None:
        try:
            return self._one.decode(raw)
        except msgspec.ValidationError:
            return None


def nanoseconds(times_us: list[float] | list[Decimal]) -> Ints:
    """Microseconds to integers of nanoseconds, shape (events,)."""
    if times_us and isinstance(times_us[0], Decimal):
        # int() of a scaled decimal is exact; picoseconds, which no profiler measures, are cut.
        return _integers(int(value.scaleb(3)) for value in times_us)
    scaled = np.asarray(times_us, dtype=np.float64) * 1000.0
    return np.asarray(np.rint(scaled), dtype=np.int64)


def _integers(values: Iterable[int]) -> Ints:
    bounded = (min(max(value, -(2**62)), 2**62) for value in values)
    return np.fromiter(bounded, dtype=np.int64)
