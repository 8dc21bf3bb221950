"""The port under the static graph as the stage sees it: a worker that outlives crashes."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from isograd.errors import IsogradError, WorkerError
from isograd.frameworks.base import Tensors
from isograd.verify.session import Session
from isograd.worker.host import Worker

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
        self._recorded: tuple[Any, ...] | None = None

    def begin(self) -> None:
        """Start the process and let it build the network, without waiting for it."""
        case = self._session.case
        self._worker = self._session.start(self._kind, "port", case.port_python)
        self._worker.stage = "compiled"
        self._worker.send("build", case.port, self._session.seed)

    def __enter__(self) -> CompiledPort:
        self._state = self._session.port.call("state")
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
        self._worker.receive()
        self._worker.call("load_state", self._state)
        if self._recorded is not None:
            self._worker.call("static_graph", "record", list(self._recorded))
        return self._worker

    def plain(self, method: str, *arguments: Any) -> Any:
        """A request that compiles nothing."""
        worker = self._worker or self._start()
        return worker.call("static_graph", method, list(arguments))

    def record(self, mode: str) -> tuple[Any, ...]:
        """Record an eager pass of this mode, also after a restart; its calls."""
        self._recorded = (mode, self._session.inputs(), self._session.targets())
        found: tuple[Any, ...] = self.plain("record", *self._recorded)
        return found

    def ask(self, method: str, *arguments: Any) -> dict[str, Any]:
        """A request that compiles; a process that ends is a refusal like another."""
        worker = self._worker or self._start()
        try:
            worker.send("static_graph", method, list(arguments))
            found: dict[str, Any] = worker.receive(_PATIENCE_S)
            return found
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
