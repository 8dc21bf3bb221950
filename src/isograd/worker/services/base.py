"""The framework of a worker's services, and what it declares that it can do."""

from __future__ import annotations

from typing import TypeVar

from isograd.frameworks.base import Framework
from isograd.frameworks.capabilities import OPTIONAL, declares

Capability = TypeVar("Capability")


class FrameworkService:
    """Serves one framework."""

    def __init__(self, framework: Framework) -> None:
        self._framework = framework

    def capabilities(self) -> tuple[str, ...]:
        """The names of the optional protocols that the framework declares."""
        return tuple(one.__name__ for one in OPTIONAL if declares(self._framework, one))

    def _as(self, capability: type[Capability]) -> Capability | None:
        """The framework by what it can do; None where it does not declare that."""
        framework: object = self._framework
        return framework if declares(framework, capability) else None
