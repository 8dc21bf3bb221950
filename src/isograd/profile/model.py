"""What every reader fills: spans (`spans.py`), operators, steps, queues, collectives.

Times are integers of nanoseconds since the earliest event of the source. A missing number is -1 in
integer columns and NaN in float columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from isograd.frameworks.base import Structure
from isograd.profile.spans import Codes, Floats, Ints, Spans


class Phase(Enum):
    """A part of the training step."""

    DATA = "data"
    FORWARD = "forward"
    BACKWARD = "backward"
    UPDATE = "update"
    COMMUNICATION = "communication"
    OTHER = "other"


@dataclass(frozen=True)
class Instants:
    """What memory the allocator held at times, in order of time.

    change_bytes: negative where memory was freed; total_bytes: of its device, after it. address:
    of the block. track: number into the spans' tracks. device: -1 is the CPU, else the number of
    a device. The last three are None where the source does not know them.
    """

    time_ns: Ints
    change_bytes: Ints
    total_bytes: Ints
    address: Ints | None = None
    track: Ints | None = None
    device: Ints | None = None


@dataclass(frozen=True)
class MemoryShare:
    """Bytes that are alive at the peak: who allocated them.

    module: None outside of all modules or where unknown. operator: the one with most of the bytes.
    """

    module: str | None
    phase: Phase
    operator: str
    size_bytes: int


@dataclass(frozen=True)
class MemoryPeak:
    """The most memory that one device held, and who had allocated it.

    before_bytes: of it held already before the first event. held: what that is, by name
    (`parameters`, `gradients`, `optimizer state`), where known. at: module and phase whose
    allocation reached the peak. shares: greatest first; all of them and before_bytes make
    peak_bytes.
    """

    peak_bytes: int
    before_bytes: int
    device: str
    at: tuple[str | None, Phase]
    shares: tuple[MemoryShare, ...]
    held: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Steps:
    """Training steps. phases: seconds, shape (steps, len(Phase)), NaN where not measured.

    delayed_ns: how long the training's thread could have run in each step while others had the
    processor; None where that is not known. It is no part of `seconds` and of phases.
    """

    number: Ints
    start_ns: Ints
    end_ns: Ints
    phases_s: Floats
    delayed_ns: Ints | None = None

    def __len__(self) -> int:
        return int(self.number.size)

    def rows(self, chosen: Any) -> Steps:
        """Some of the steps: indices, or a boolean for each."""
        delayed = None if self.delayed_ns is None else self.delayed_ns[chosen]
        return Steps(
            self.number[chosen],
            self.start_ns[chosen],
            self.end_ns[chosen],
            self.phases_s[chosen],
            delayed,
        )

    @property
    def seconds(self) -> Floats:
        """What each step takes where nothing else wants the processor, shape (steps,).

        returns: shape (steps,), float64.
        """
        if self.delayed_ns is None:
            return self.clock_s
        own = self.end_ns - self.start_ns - self.delayed_ns
        return np.asarray(np.maximum(own, 1) / 1e9, dtype=np.float64)

    @property
    def clock_s(self) -> Floats:
        """Duration of each step on the clock, shape (steps,).

        returns: shape (steps,), float64.
        """
        return np.asarray((self.end_ns - self.start_ns) / 1e9, dtype=np.float64)

    def phase(self, phase: Phase) -> Floats:
        """Seconds of a phase in each step, shape (steps,); NaN where not measured.

        returns: shape (steps,), float64.
        """
        return np.asarray(self.phases_s[:, PHASES.index(phase)], dtype=np.float64)

    def usual_s(self, phase: Phase) -> float:
        """Median seconds of a phase; NaN where the passes are not timed.

        OTHER is what no phase has of the step.
        """
        if not (self.phase(Phase.FORWARD) > 0).any():
            return float("nan")
        if phase is not Phase.OTHER:
            return float(np.median(np.nan_to_num(self.phase(phase))))
        named = np.stack([self.phase(one) for one in PHASES if one is not Phase.OTHER])
        return float(np.median(self.seconds - np.nansum(named, axis=0)))


PHASES = tuple(Phase)


def no_steps() -> Steps:
    """A profile without steps."""
    none = np.zeros(0, dtype=np.int64)
    return Steps(none, none, none, np.zeros((0, len(PHASES))))


@dataclass(frozen=True)
class Operator:
    """One operator with one combination of shapes and dtypes, summed over its calls.

    self_s excludes operators that it calls. spread is the standard deviation of one call's self
    time over its mean, NaN where single calls are unknown. where: `file.py:line` that calls it.
    callers: name, shapes and dtypes of the operators around it, inmost first. is_outer: called by
    the user's code, or the gradient of such a call, and not by another operator. is_dispatch: its
    calls are too short to be work. device: the time is a device's, of the kernels that the operator
    launched. is_upload: on the host, it copies to a device.
    """

    name: str
    shapes: str
    dtypes: str
    calls: int
    self_s: float
    total_s: float
    spread: float = float("nan")
    module: str | None = None
    where: str | None = None
    device: bool = False
    callers: tuple[tuple[str, str, str], ...] = ()
    is_outer: bool = True
    is_dispatch: bool = False
    is_upload: bool = False


@dataclass(frozen=True)
class ModuleTime:
    """Seconds per step of one module, its children included; NaN where not measured."""

    name: str
    kind: str
    forward_s: float
    backward_s: float
    calls: int = 1
    output_shape: str = ""


@dataclass(frozen=True)
class Queue:
    """The output queue of one operator of a data pipeline, as it was sampled.

    sizes: elements in it, shape (samples,). children: ids of the operators that feed it.
    rate: batches or rows per second that it lets through, NaN where unknown. work_s: seconds that
    one worker works on one element, NaN where unknown.
    """

    number: int
    name: str
    capacity: int
    sizes: Ints
    workers: int
    children: tuple[int, ...] = ()
    rate: float = float("nan")
    work_s: float = float("nan")
    where: str | None = None

    @property
    def fill(self) -> float:
        """Mean share of the queue that is full, in [0, 1]; NaN where it was not sampled."""
        if self.capacity <= 0 or self.sizes.size == 0:
            return float("nan")
        return float(np.mean(self.sizes)) / self.capacity


@dataclass(frozen=True)
class Collectives:
    """Messages between ranks. ready_ns: when its data could be sent (-1: its start)."""

    rank: Codes
    step: Ints
    name: tuple[str, ...]
    start_ns: Ints
    duration_ns: Ints
    size_bytes: Ints
    ready_ns: Ints

    def __len__(self) -> int:
        return len(self.name)


def no_collectives() -> Collectives:
    """A profile without messages."""
    none = np.zeros(0, dtype=np.int64)
    return Collectives(np.zeros(0, dtype=np.int32), none, (), none, none, none, none)


@dataclass(frozen=True)
class RankTimes:
    """Seconds per step of one rank; NaN where unknown."""

    rank: int
    step_s: float
    compute_s: float
    exposed_communication_s: float
    wait_s: float = float("nan")
    flops: float = float("nan")


@dataclass(frozen=True)
class Link:
    """Traffic between two ranks. kind: SDMA, RDMA, …"""

    source: int
    target: int
    kind: str
    seconds: float
    size_bytes: float

    @property
    def bytes_per_s(self) -> float:
        """Bandwidth reached, NaN where no time was measured."""
        return self.size_bytes / self.seconds if self.seconds > 0 else float("nan")


@dataclass(frozen=True)
class HostLine:
    """A line of the user's Python at which samples found a thread.

    calls: names called there. lock_s: how long the thread kept the interpreter's lock while the
    main thread did not run and was not waiting for its data. waited_s: of `seconds`, those in which
    the main thread neither ran nor could have run, as where it sleeps. delayed_s: of `seconds`,
    those in which others had the processor; None where that is not known.
    """

    where: str
    function: str
    phase: Phase
    is_main_thread: bool
    samples: int
    seconds: float
    calls: tuple[str, ...] = ()
    lock_s: float = 0.0
    waited_s: float = 0.0
    delayed_s: float | None = None


@dataclass(frozen=True)
class SourceOperator:
    """An operator as one step called it: the line, the module, the phase.

    results: dtypes of what it returns; result_shapes: their shapes.
    """

    name: str
    shapes: str
    dtypes: str
    where: str
    module: str
    phase: Phase
    count: int = 1
    results: str = ""
    result_shapes: str = ""


@dataclass(frozen=True)
class Peaks:
    """What the machine reaches at most: arithmetic and copying. source: how that is known.

    float64_flops_per_s: of matrix products in float64, NaN where it is not known.
    """

    flops_per_s: float
    bytes_per_s: float
    source: str
    float64_flops_per_s: float = float("nan")


@dataclass(frozen=True)
class Refusal:
    """A file that was not read, and why."""

    file: str
    reason: str


@dataclass(frozen=True)
class Compilation:
    """A function that the framework compiled in plain steps: how often, in seconds together."""

    where: str
    function: str
    count: int
    seconds: float


@dataclass(frozen=True)
class Host:
    """What isograd's own recorder knows of the host beside the framework's profiler.

    lines: of sampled_steps steps together. pause_s: seconds per step in garbage collection.
    plain_step_s, profiled_step_s: median step without and with the framework's profiler.
    excluded: what the excluded steps cost, by name (`compilation`, `warm-up`), in seconds.
    beside_s: of sampled_steps steps together, for how long threads that make batches ran instead of
    the training while it did not wait for one.
    """

    lines: tuple[HostLine, ...] = ()
    sampled_steps: int = 0
    pause_s: float = 0.0
    pauses: int = 0
    plain_step_s: float = float("nan")
    profiled_step_s: float = float("nan")
    excluded: dict[str, float] = field(default_factory=dict)
    cores: int = 0
    beside_s: float = 0.0
    compilations: tuple[Compilation, ...] = ()


@dataclass(frozen=True)
class Marks:
    """The steps that isograd's recorder marked, in ns since 1970.

    window: of each step, `warm-up`, `plain` (nothing but marks), `profiled` (the framework's
    profiler runs), `modules` (module times) or `source` (lines). intervals: rows of phase (its
    place in PHASES), start and end in ns, shape (intervals, 3).
    """

    window: tuple[str, ...]
    steps: Steps
    intervals: Ints

    def chosen(self, window: str) -> Ints:
        """Rows of the steps of a window.

        returns: shape (chosen,), int64.
        """
        return np.flatnonzero(np.asarray([name == window for name in self.window], dtype=bool))

    def take(self, window: str) -> Steps:
        """The steps of a window."""
        return self.steps.rows(self.chosen(window))


@dataclass(frozen=True)
class Loader:
    """What the recorder saw of torch's DataLoader or a probe of the dataset.

    sample_s: seconds that one sample takes in one process, NaN where not probed; cpu_share: how
    much of it a processor was busy. lines: `file.py:line` with its share of the sample's time.
    """

    workers: int
    batch_size: int
    prefetch: int
    pin_memory: bool
    ready: Ints
    sample_s: float = float("nan")
    cpu_share: float = float("nan")
    collate_s: float = float("nan")
    lines: tuple[tuple[str, str, float], ...] = ()


@dataclass(frozen=True)
class Profile:
    """Everything that was read of one run. base_ns: when the spans begin, in ns since 1970."""

    source: str
    framework: str = ""
    device: str = ""
    spans: Spans | None = None
    memory: Instants | None = None
    memory_peak: MemoryPeak | None = None
    peaks: Peaks | None = None
    steps: Steps = field(default_factory=no_steps)
    operators: tuple[Operator, ...] = ()
    modules: tuple[ModuleTime, ...] = ()
    queues: tuple[Queue, ...] = ()
    queue_waits: dict[str, float] = field(default_factory=dict)
    collectives: Collectives = field(default_factory=no_collectives)
    ranks: tuple[RankTimes, ...] = ()
    links: tuple[Link, ...] = ()
    source_operators: tuple[SourceOperator, ...] = ()
    host: Host | None = None
    marks: Marks | None = None
    loader: Loader | None = None
    structure: Structure | None = None
    base_ns: int = 0
    flops: float = float("nan")
    files: tuple[str, ...] = ()
    refused: tuple[Refusal, ...] = ()
    notes: tuple[str, ...] = ()
