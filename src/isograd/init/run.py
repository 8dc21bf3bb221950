"""`isograd init`: a first case by looking at both files, then trying it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from isograd.errors import IsogradError, UsageError
from isograd.files import require_writable, write_text
from isograd.frameworks.base import SideSpec
from isograd.init.apis import FRAMEWORKS, load_apis
from isograd.init.model import Choice, InitReport
from isograd.init.probe import Probe, Tried, Wanted
from isograd.init.sides import LossCallee, SideFound, find_side
from isograd.init.values import Known, Parts, Tensor, Value
from isograd.init.writing import SideFile, argument_lines, loss_parameters, side_lines
from isograd.verify.arguments import Argument, ContainerSpec, PlainSpec, TensorSpec

_KEYS = ("reference", "port")
#: A loader's batch is cut down to this, because a verification runs it many times.
_LARGEST_BATCH = 4


def init(
    reference: str | Path,
    port: str | Path,
    output: str | Path = "case.toml",
    *,
    force: bool = False,
    no_run: bool = False,
) -> InitReport:
    """Write a first case for `isograd verify` by looking at both files.

    Beside the case up to two files appear, CASE_reference.py and CASE_port.py, where a loss or an
    optimizer stands in the middle of a program.  Both networks are built and run once, unless no_run
    is given.  Raises `UsageError` where a file cannot be read, holds no network, or would be
    overwritten without force.
    """
    path = Path(output)
    apis = load_apis()
    sides = (find_side(Path(reference), apis), find_side(Path(port), apis))
    work = _Work(path, sides, apis_unknown=[])
    work.check(force)
    return work.write(is_run=not no_run)


@dataclass
class _Work:
    """One case at work."""

    path: Path
    sides: tuple[SideFound, SideFound]
    apis_unknown: list[str] = field(default_factory=list)
