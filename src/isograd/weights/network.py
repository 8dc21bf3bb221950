"""The network that will load a checkpoint, built by its own builder in a worker process."""

from __future__ import annotations

from pathlib import Path

from isograd.errors import UsageError
from isograd.frameworks.base import SideSpec, Structure
from isograd.worker.protocols import Networks


def network_of(builder: str, framework: str, python: str | None = None) -> Structure:
    """Build the network once and describe it; builder: `package.module:name` or `file.py:name`.

    Raises UserCodeError where the builder raises, FrameworkMissingError where the interpreter
    lacks the framework.
    """
    from isograd.worker.host import Worker

    if not builder.rpartition(":")[0]:
        raise UsageError(
            f"--into {builder!r} names no builder", "Write package.module:builder or file.py:name."
        )
    with Worker(framework, "port", python) as worker:
        worker.stage = "build"
        structure = worker.ask(Networks.build, SideSpec(framework, builder, str(Path.cwd())), 0)
    assert isinstance(structure, Structure)
    return structure
