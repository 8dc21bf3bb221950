"""Profiles that rules speak of, and profiles of which they must be silent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from isograd.profile.model import (
    Compilation,
    HostLine,
    Instants,
    Link,
    Loader,
    Phase,
    Profile,
    Queue,
    RankTimes,
    SourceOperator,
)
from isograd.profile.rules.making import (
    Call,
    Launch,
    line,
    messages,
    on_device,
    recording,
    spans,
)

if TYPE_CHECKING:
    from isograd.profile.rules.rule import Example

_WORK = Call("aten::mm", 20.0, "[[512, 512], [512, 512]]")


def example(name: str, profile: Callable[[], Profile], expected: str = "") -> Example:
    """One example of a rule."""
    from isograd.profile.rules.rule import Example

    return Example(name, profile, expected)


def healthy() -> Profile:
    """Large operators, no wait, a short update."""
    return recording(62.0, [replace(_WORK, count=3)], data_ms=0.5, update_ms=3.0)


_ON_DEVICE = Launch("aten::mm", 0.1, 10.0, count=2)
_PAGEABLE = ("Memcpy HtoD (Pageable -> Device)", "gpu_memcpy")


def on_a_device() -> Profile:
    """A GPU that works all the time."""
    return on_device(20.0, [_ON_DEVICE])


def uploading() -> Profile:
    """The host waits 30 of 50 ms for a copy of pageable memory."""
    return on_device(50.0, [Launch("aten::to", 30.0, 14.0, _PAGEABLE), _ON_DEVICE])


def casting_on_a_device() -> Profile:
    """The kernels of conversions take 10 of 30 ms, their dispatch 1 ms."""
    return on_device(30.0, [Launch("aten::to", 0.1, 1.0, count=10), _ON_DEVICE])


def _loader(workers: int, sample_s: float, cpu_share: float = 1.0) -> Loader:
    lines = (("data.py:7", "__getitem__", 0.9),)
    ready = np.asarray([0, 1, 0], dtype=np.int64)
    return Loader(workers, 8, 2, False, ready, sample_s, cpu_share, 0.0, lines)


def slow_transform() -> Profile:
    """80 of 100 ms are a wait for samples of 10 ms, without workers."""
    return recording(100.0, [_WORK], data_ms=80.0, loader=_loader(0, 0.010))


def short_wait() -> Profile:
    """1.2 of 10 ms are a wait for samples; a batch from a worker would take as long to get."""
    return recording(10.0, [_WORK], data_ms=1.2, loader=_loader(0, 0.0001))


def short_queue() -> Profile:
    """Two workers make a batch in 40 ms of 60, and yet the step waits."""
    return recording(70.0, [replace(_WORK, count=3)], data_ms=10.0, loader=_loader(2, 0.010))


def slow_map() -> Profile:
    """MindSpore: the queue before Map is full, the one behind it is empty."""
    queues = (
        Queue(0, "Batch", 16, np.zeros(9, dtype=np.int64), 1, (1,)),
        Queue(1, "Map", 16, np.zeros(9, dtype=np.int64), 1, (2,)),
        Queue(2, "Generator", 16, np.full(9, 15, dtype=np.int64), 1),
    )
    run = recording(100.0, [_WORK], data_ms=70.0, framework="mindspore")
    return replace(run, queues=queues)


def slow_generator() -> Profile:
    """MindSpore: a worker runs the generator while the training waits at its loop."""
    queues = (
        Queue(0, "Batch", 16, np.zeros(9, dtype=np.int64), 1, (1,)),
        Queue(1, "Generator", 16, np.zeros(9, dtype=np.int64), 1),
    )
    worker = HostLine("data.py:3", "rows", Phase.DATA, False, 130, 0.13)
    lines = [line("train.py:9", 140, Phase.DATA), line("train.py:12", 60), worker]
    run = recording(100.0, [_WORK], data_ms=70.0, framework="mindspore", lines=lines)
    return replace(run, queues=queues)


def _locked() -> list[HostLine]:
    parsing = HostLine("data.py:5", "parsed", Phase.FORWARD, False, 60, 0.13, ("loads",), 0.12)
    return [line("train.py:9", 60), parsing]


def locking_map() -> Profile:
    """MindSpore: the queue is full, and its worker keeps the lock for 60 of 100 ms."""
    queues = (Queue(0, "Map", 16, np.full(9, 15, dtype=np.int64), 1),)
    run = recording(100.0, [_WORK], framework="mindspore", lines=_locked())
    return replace(run, queues=queues)


def locking_thread() -> Profile:
    """A thread of the user's parses text beside the training."""
    return recording(100.0, [_WORK], lines=_locked())


def _device_queue(sizes: list[int]) -> Profile:
    queue = Queue(-1, "device queue", 64, np.asarray(sizes, dtype=np.int64), 1)
    return replace(healthy(), queues=(queue,))


def empty_device_queue() -> Profile:
    """A device's queue that is empty in 4 of 5 samples."""
    return _device_queue([0, 0, 0, 0, 1])


def full_device_queue() -> Profile:
    """A device's queue that is never empty."""
    return _device_queue([60, 61, 62, 63, 64])


def synchronising() -> Profile:
    """A loop that fetches elements one by one: 40 of 60 ms."""
    return recording(60.0, [_WORK], lines=[line("train.py:20", 80, Phase.OTHER, "item")])


def reading_quickly() -> Profile:
    """320 reads of elements take 1.3 of 8 ms, too short for samples to meet them often."""
    call = Call("aten::item", 0.002, "[[]]", "", count=320, pause_ms=0.002)
    name = "aten::_local_scalar_dense"
    source = SourceOperator(name, "", "", "train.py:34", "", Phase.OTHER, 320)
    return recording(8.0, [replace(_WORK, ms=6.0), call], sources=[source])


def logging() -> Profile:
    """A line that prints for 30 of 50 ms."""
    return recording(50.0, [_WORK], lines=[line("train.py:30", 60, Phase.OTHER, "print")])


def collecting() -> Profile:
    """15 of 40 ms of garbage collection."""
    return recording(40.0, [_WORK], pause_s=0.015)


def small_operators() -> Profile:
    """2000 operators of 4 µs, 10 µs of Python between."""
    source = SourceOperator("aten::mul", "8", "float32", "net.py:9", "cell", Phase.FORWARD, 2000)
    call = Call("aten::mul", 0.004, "[[8], [8]]", count=2000, pause_ms=0.01)
    return recording(28.0, [call], sources=[source])


def some_small_operators() -> Profile:
    """400 operators of 2 µs beside 7 ms of large ones, in 10 ms."""
    call = Call("aten::mul", 0.002, "[[8], [8]]", count=400)
    return recording(10.0, [replace(_WORK, ms=7.0), call])


def small_operators_of_a_line() -> Profile:
    """400 operators of 2 µs at one line, 2 µs of Python between, beside 7 ms of large ones."""
    source = SourceOperator("aten::mul", "8", "float32", "net.py:9", "cell", Phase.FORWARD, 400)
    call = Call("aten::mul", 0.002, "[[8]]", count=400, pause_ms=0.002)
    return recording(10.0, [replace(_WORK, ms=7.0), call], sources=[source])


def long_update() -> Profile:
    """An update of 30 ms in a step of 55."""
    update = Call("aten::_foreach_add_", 10.0, "[[4096, 4096]]", count=3)
    return recording(55.0, [_WORK, update], update_ms=30.0)


def casting() -> Profile:
    """float32 to float64 and back, 20 of 45 ms."""
    sources = [
        SourceOperator("aten::_to_copy", "4096×512", a, "net.py:12", "head", Phase.FORWARD, 1, b)
        for a, b in (("float32", "float64"), ("float64", "float32"))
    ]
    call = Call("aten::_to_copy", 10.0, "[[4096, 512]]", count=2)
    return recording(45.0, [_WORK, call], sources=sources)


def rearranging() -> Profile:
    """contiguous() for 15 of 40 ms."""
    return recording(40.0, [_WORK, Call("aten::contiguous", 15.0, "[[64, 64, 56, 56]]")])


def slow_shape() -> Profile:
    """A product with the same work as another takes 20 times as long."""
    slow = Call("aten::mm", 20.0, "[[512, 512], [512, 511]]")
    fast = Call("aten::mm", 1.0, "[[512, 512], [512, 512]]", count=5)
    return recording(30.0, [slow, fast])


def slow_at_times() -> Profile:
    """One of two calls takes nine times as long as the other: it is not the shape."""
    slow = [Call("aten::mm", ms, "[[512, 512], [512, 511]]") for ms in (9.0, 1.0)]
    return recording(16.0, [*slow, Call("aten::mm", 1.0, "[[512, 512], [512, 512]]", count=5)])


def slow_shape_among_short_calls() -> Profile:
    """A matrix and a vector at 8 GFLOP/s, squares at 89, and short products at 20."""
    short = [Call("aten::mm", 0.2, f"[[8, 512], [512, {wide}]]") for wide in (512, 510, 508)]
    slow = Call("aten::mm", 2.4, "[[3200, 3200], [3200, 1]]", count=25)
    return recording(70.0, [slow, Call("aten::mm", 1.44, "[[400, 400], [400, 400]]"), *short])


def in_float64_by_line() -> Profile:
    """MindSpore: a trace without dtypes, whose lines call one large product in float64."""
    sources = [
        SourceOperator(name, shapes, dtypes, where, "", Phase.FORWARD)
        for name, shapes, dtypes, where in (
            ("MatMulExt", "700×700, 700×700", "float64", "net.py:31"),
            ("MatMul", "8×64, 64×64", "float32", "net.py:9"),
        )
    ]
    calls = [Call("MatMul", 20.0, "", "", count=2)]
    return recording(45.0, calls, sources=sources, framework="mindspore")


def in_float64() -> Profile:
    """A float64 product for 20 of 25 ms."""
    return recording(25.0, [replace(_WORK, dtypes='["double", "double"]')])


def _on_ascend(shapes: str) -> Profile:
    call = Call("MatMul", 20.0, shapes, "[]")
    return Profile("example", "mindspore", "Ascend", spans=spans([0], [call], device="Ascend"),
                   steps=recording(25.0).steps)  # fmt: skip


def unaligned() -> Profile:
    """A product on Ascend with sizes 17 and 33."""
    return _on_ascend("[[17, 33], [33, 17]]")


def aligned() -> Profile:
    """A product on Ascend with sizes 256."""
    return _on_ascend("[[256, 256], [256, 256]]")


def many_messages() -> Profile:
    """40 gradients, each in a message of its own with 1 ms of latency."""
    size = [4e4 + 1e3 * (index % 5) for index in range(40)]
    ready = [float(index) * 0.5 for index in range(40)]
    sent = messages([[1.0 + s * 1e-6 for s in size]], size, ready)
    return replace(recording(60.0, [_WORK], communication_ms=20.0), collectives=sent)


def exposed() -> Profile:
    """20 of 60 ms are a wait for messages."""
    return recording(60.0, [_WORK, _WORK], communication_ms=20.0)


def _ranks(durations_ms: list[list[float]]) -> Profile:
    return replace(recording(60.0, [_WORK]), collectives=messages(durations_ms))


def slow_rank() -> Profile:
    """Rank 2 arrives last each time, so its messages are short."""
    return _ranks([[12.0] * 6, [11.5] * 6, [2.0] * 6, [12.2] * 6])


def even_ranks() -> Profile:
    """Each rank is the last one once in a while."""
    turn = [[12.0 if message % 4 != rank else 2.0 for message in range(8)] for rank in range(4)]
    times = tuple(RankTimes(rank, 0.06, 0.040 + rank * 1e-4, 0.01) for rank in range(4))
    return replace(_ranks(turn), ranks=times)


def uneven_ranks() -> Profile:
    """Rank 1 computes twice as long."""
    times = tuple(RankTimes(rank, 0.06, 0.04 if rank == 1 else 0.02, 0.01) for rank in range(4))
    return replace(recording(60.0, [_WORK]), ranks=times)


def _links(seconds: list[float]) -> Profile:
    links = tuple(Link(rank, rank + 1, "RDMA", s, 1e9) for rank, s in enumerate(seconds))
    return replace(recording(60.0, [_WORK]), links=links)


def slow_link() -> Profile:
    """Of five links the first carries a tenth."""
    return _links([1.0, 0.1, 0.1, 0.1, 0.1])


def even_links() -> Profile:
    """Five links alike."""
    return _links([0.1, 0.11, 0.1, 0.1, 0.1])


def jitter() -> Profile:
    """Every fifth step takes twice as long."""
    steps = [80.0 if index % 5 == 4 else 40.0 for index in range(20)]
    return recording(40.0, [_WORK], steps_ms=steps)


def _compiling(count: int) -> Profile:
    compiled = Compilation("train.py:30", "train_step", count, 0.5 * count)
    return recording(550.0, [_WORK], framework="mindspore", compilations=[compiled])


def recompiling() -> Profile:
    """Each of ten steps of 550 ms compiles for 500 ms."""
    return _compiling(10)


def last_batch() -> Profile:
    """One step compiles, for the smaller batch at the end of an epoch."""
    return _compiling(1)


def _memory(growth_bytes: float) -> Profile:
    times = recording(20.0).steps
    ends = times.end_ns
    held = np.asarray(20e6 + growth_bytes * np.arange(ends.size), dtype=np.int64)
    memory = Instants(ends - 1, np.diff(held, prepend=held[:1]), held)
    return Profile("example", "torch", "CPU", steps=times, memory=memory)


def growing() -> Profile:
    """One MB more after each step."""
    return _memory(1e6)


def steady_memory() -> Profile:
    """The same memory after each step."""
    return _memory(0.0)
