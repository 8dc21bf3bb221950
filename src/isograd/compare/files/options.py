"""How two sets are compared, and who listens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from isograd.compare.files.tolerance import Tolerance


@dataclass(frozen=True)
class CompareOptions:
    """How two sets are compared.

    tolerance: None for that of the dtypes; envelope: relative Frobenius error by name, `*` for the
    rest, which then decides instead of the tolerance.
    only, ignore: patterns of names, as in a shell.
    with_states: whether what lies beside a network, such as states of an optimizer, is compared.
    is_consecutive: whether both are states of one training; None where their names decide.
    is_counting: whether ulps and a histogram are counted as well.
    is_compiled: whether numba's kernels measure; None where the amount of data decides.
    engine: "threads" or "dask"; scheduler: address of Dask's, None for a cluster on this machine.
    addresses: what opens both sets in another process, where that is not their paths.
    """

    tolerance: Tolerance | None = None
    envelope: Mapping[str, float] = field(default_factory=dict)
    renames: Mapping[str, str] = field(default_factory=dict)
    only: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    with_states: bool = False
    threads: int = 0
    journal: Path | None = None
    is_consecutive: bool | None = None
    is_counting: bool = True
    is_compiled: bool | None = None
    engine: str = "threads"
    scheduler: str | None = None
    addresses: tuple[str, str] | None = None
