"""The device profile: how much noisier than one unit in the last place the port's kernels are.

Each micro-benchmark of `isograd.frameworks.kernels` is judged like a layer: error of the port's
kernel against float64, over the envelope of the reference's noisy runs.  Where that exceeds 1,
the noise behind the operators concerned is raised by it (`floors`).  Measured once for each
machine and version, and cached.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Callable
from pathlib import Path

from isograd.files import write_text
from isograd.frameworks.base import Floors, Tensors
from isograd.frameworks.kernels import Kernel, load_kernels
from isograd.noise.envelope import ISOLATED_VARIANTS, Measured, compare, measured
from isograd.worker.host import Worker
from isograd.worker.protocols import Kernels, Networks

#: A floor leaves this much room above the measured error, since inputs differ from network to
#: network; the threshold of 5 lies on top of it.
_ROOM = 1.3
_VERSION = 3


def floors_of(reference: Worker, port: Worker, note: Callable[[str], None]) -> Floors:
    """The floors by ATen operator for two workers, from the cache or measured now."""
    if (reference.framework, port.framework) != ("torch", "mindspore"):
        return {}  # the micro-benchmarks are written for this pair
    descriptions = [reference.ask(Networks.describe), port.ask(Networks.describe)]
    path = _cache_path(descriptions)
    known = _read(path)
    if known is not None:
        return known
    note("measuring the device profile of both frameworks (once for this machine and versions)")
    floors = measure_floors(reference, port)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(floors, indent=1, sort_keys=True))
    except OSError:
        note(f"the device profile could not be kept in {path}")
    return floors


def measure_floors(reference: Worker, port: Worker) -> Floors:
    """Run all micro-benchmarks on both workers: results first, then gradients on top of them."""
    floors: Floors = {}
    for backward in (False, True):
        found: dict[str, dict[float, float]] = {}
        for kernel in load_kernels():
            for scale in kernel.scales:
                for key, ratio in _measure(kernel, scale, reference, port, floors).items():
                    for name in _operators(kernel, key, backward):
                        table = found.setdefault(name, {})
                        place = kernel.place(key, scale)
                        table[place] = max(table.get(place, 1.0), _ROOM * ratio)
        floors |= {
            name: [[scale, table[scale]] for scale in sorted(table)]
            for name, table in found.items()
            if name not in floors and max(table.values()) > 1.0
        }
    return floors


def _measure(
    kernel: Kernel, scale: float, reference: Worker, port: Worker, floors: Floors
) -> dict[str, float]:
    inputs, labels = kernel.values(scale)
    variants = list(ISOLATED_VARIANTS)
    expected = measured(
        reference.ask(Kernels.measure_kernel, kernel.torch, inputs, labels, variants, floors)
    )
    worst: dict[str, float] = {}
    for expression in kernel.mindspore:
        found = port.ask(Kernels.run_kernel, expression, inputs, labels)
        for key, ratio in _ratios(expected, found).items():
            worst[key] = max(worst.get(key, 0.0), ratio)
    return worst


def _ratios(expected: dict[str, Measured], found: Tensors) -> dict[str, float]:
    ratios = {}
    for key, value in found.items():
        reference = expected.get(key)
        if reference is not None and value.shape == reference.values.shape:
            ratio = compare(key, reference, value).ratio
            if ratio < 1e5:  # more is a kernel that computes something else
                ratios[key] = ratio
    return ratios


def _operators(kernel: Kernel, key: str, backward: bool) -> tuple[str, ...]:
    if backward != (key != "output"):
        return ()
    if kernel.terms and key == "gradient.w":
        return tuple(f"{name}.weight" for name in kernel.backward)
    return kernel.backward if backward else kernel.forward


def _cache_path(descriptions: list[dict[str, str]]) -> Path:
    facts = [_VERSION, platform.machine(), _processor(), descriptions]
    facts.append((Path(__file__).parent.parent / "frameworks" / "kernels.toml").read_text())
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "isograd" / f"device-profile-{digest}.json"


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()


def _read(path: Path) -> Floors | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict):
        return None
    try:
        floors = {str(n): [[float(s), float(f)] for s, f in table] for n, table in found.items()}
    except (TypeError, ValueError):
        return None
    sane = all(s > 0.0 and 1.0 <= f < 1e6 for table in floors.values() for s, f in table)
    return floors if sane else None
