"""What a worker of verify answers, method by method: `isograd.worker.protocols`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from isograd.errors import UsageError
from isograd.frameworks.capabilities import CompilesModules, declares
from isograd.frameworks.registry import open_framework
from isograd.worker import protocols
from isograd.worker.services.causes import CauseService, FixService
from isograd.worker.services.networks import NetworkService
from isograd.worker.services.passes import PassService
from isograd.worker.services.training import TrainingService

#: Served by this class.
_SERVED = (
    protocols.Networks,
    protocols.Kernels,
    protocols.Passes,
    protocols.Reach,
    protocols.Chance,
    protocols.Training,
    protocols.Rules,
    protocols.Causes,
    protocols.Fixes,
)


class Service(NetworkService, PassService, TrainingService, CauseService, FixService):
    """Answers requests about one framework's network; what no protocol declares is an error."""

    def __init__(self, framework: str) -> None:
        super().__init__(open_framework(framework))

    def call(self, method: str, arguments: list[Any]) -> Any:
        """Run one request."""
        return self._answering(method)(*arguments)

    def _answering(self, method: str) -> Callable[..., Any]:
        if any(method in vars(protocol) for protocol in _SERVED) and method.isidentifier():
            found: Callable[..., Any] = getattr(self, method)
            return found
        if method in vars(CompilesModules):
            framework: object = self._framework
            if not declares(framework, CompilesModules):
                raise UsageError(
                    f"{self._framework.name} compiles no modules",
                    "Declare isograd.frameworks.capabilities.CompilesModules in the adapter.",
                )
            compiling: Callable[..., Any] = getattr(framework, method)
            return compiling
        raise ValueError(f"unknown request {method!r}")
