"""A worker without a process: many small cases on frameworks that are imported once."""

from __future__ import annotations

from typing import Any

from isograd.errors import IsogradError
from isograd.worker.asking import Asker
from isograd.worker.service import Service


class LocalWorker(Asker):
    """Starts as `isograd.worker.host.Worker`; errors pass through as they are."""

    def __init__(self, framework: str, side: str, python: str | None = None) -> None:
        self.framework, self.side, self.stage = framework, side, "start"
        self._service = Service(framework)
        self._answer: Any = None

    def send(self, method: str, *arguments: Any) -> None:
        try:
            self._answer = self._service.call(method, list(arguments))
        except IsogradError as error:
            self._answer = error

    def receive(self, patience_s: float | None = None) -> Any:
        if isinstance(self._answer, IsogradError):
            raise self._answer
        return self._answer

    def close(self) -> None:
        """Nothing to end."""
