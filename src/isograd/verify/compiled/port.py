"""The port under the static graph as the stage sees it: a worker that outlives crashes."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Concatenate

from isograd.errors import IsogradError, WorkerError
from isograd.frameworks.base import CallInfo, Structure, Tensors
from isograd.frameworks.capabilities import CompilesModules
from isograd.verify.session import Session
from isograd.worker.asking import Answer, Arguments, Pending
from isograd.worker.host import Worker
from isograd.worker.protocols import Networks

#: A compiler that takes longer than this for one pass of a network hangs.
_PATIENCE_S = 900.0


class CompiledPort:
    """One process that compiles; what ends it is the compiler's answer, and a new one is started.

    kind: "mindspore-compiled", or "mindspore-own" for the port's own `jit` and mode.
    """

    def __init__(self, session: Session, kind: str) -> None:
        self._session, self._kind = session, kind
        self._state: Tensors = {}
        self._worker: Worker | None = None
        self._building: Pending[Structure] | None = None
        self._recorded: tuple[str, dict[str, Any], list[Any]] | None = None

    def begin(self) -> None:
        """Start the process and let it build the network, without waiting for it."""
        case = self._session.case
        self._worker = self._session.start(self._kind, "port", case.port_python)
        self._worker.stage = "compiled"
        self._building = self._worker.begin(Networks.build, case.port, self._session.seed)

    def __enter__(self) -> CompiledPort:
        self._state = self._session.port.ask(Networks.state)
        if self._worker is None:
            self.begin()
        self._loaded()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process; safe to call again."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def _start(self) -> Worker:
        self.begin()
        return self._loaded()

    def _loaded(self) -> Worker:
        """Wait until the network is built, and give it the weights."""
        assert self._worker is not None
        if self._building is not None:
            self._building.answer()
        self._worker.ask(Networks.load_state, self._state)
        if self._recorded is not None:
            self._worker.ask(CompilesModules.record, *self._recorded)
        return self._worker

    def plain(
        self,
        method: Callable[Concatenate[Any, Arguments], Answer],
        *arguments: Arguments.args,
        **keywords: Arguments.kwargs,
    ) -> Answer:
        """A request of `CompilesModules` that compiles nothing."""
        worker = self._worker or self._start()
        return worker.ask(method, *arguments, **keywords)

    def record(self, mode: str) -> tuple[CallInfo, ...]:
        """Record an eager pass of this mode, also after a restart; its calls."""
        self._recorded = (mode, self._session.inputs(), self._session.targets())
        return self.plain(CompilesModules.record, *self._recorded)

    def ask(
        self,
        method: Callable[Concatenate[Any, Arguments], dict[str, Any]],
        *arguments: Arguments.args,
        **keywords: Arguments.kwargs,
    ) -> dict[str, Any]:
        """A request of `CompilesModules` that compiles; a process that ends is a refusal."""
        worker = self._worker or self._start()
        try:
            return worker.begin(method, *arguments, **keywords).answer(_PATIENCE_S)
        except WorkerError as error:
            worker.close()
            self._worker = None
            said = "the compiler ends the process" if "ended with" in error.what else error.what
            return {"verdict": "refused", "refused": said, "place": None, "error": "crash"}
        except IsogradError as error:
            return {"verdict": "refused", "refused": error.what, "place": None, "error": "raised"}

    @property
    def has_ended(self) -> bool:
        """Whether the last request ended the process: optimizers and steps are gone with it."""
        return self._worker is None
