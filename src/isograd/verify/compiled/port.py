"""The port under the static graph as the stage sees it: a worker that outlives crashes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Concatenate

from isograd.errors import IsogradError, WorkerError
from isograd.frameworks.base import CallInfo, Tensors
from isograd.frameworks.capabilities import CompilesModules
from isograd.verify.session import Session
from isograd.worker.asking import Answer, Arguments
from isograd.worker.host import Worker
from isograd.worker.protocols import Networks

#: A compiler that takes longer than this for one pass of a network hangs.
_PATIENCE_S = 900.0
_ENDED = {"verdict": "refused", "refused": "the verification ended", "place": None, "error": ""}
#: A method of `CompilesModules` that compiles, with its arguments.
Request = tuple[Callable[..., dict[str, Any]], tuple[Any, ...]]


class CompiledPort:
    """One process that compiles; what ends it is the compiler's answer, and a new one is started.

    kind: "mindspore-compiled", or "mindspore-own" for the port's own `jit` and mode.
    `ahead` begins while other stages run; every request then waits for those before it.
    """

    def __init__(self, session: Session, kind: str) -> None:
        self._session, self._kind = session, kind
        self._state: Tensors = {}
        self._reference_state: Tensors = {}
        self._worker: Worker | None = None
        self._recorded: tuple[str, dict[str, Any], list[Any]] | None = None
        self._is_closed = False
        self._queue: ThreadPoolExecutor | None = None
        self._early: dict[tuple[str, ...], Future[dict[str, Any]]] = {}

    def ahead(self, requests: Iterable[Request]) -> None:
        """Begin requests that `ask` fetches later, with the weights that both networks have now."""
        self._state = self._session.port.ask(Networks.state)
        self._reference_state = self._session.reference.ask(Networks.state)
        self._queue = ThreadPoolExecutor(1, "isograd-compiles")
        for method, arguments in requests:
            future = self._queue.submit(self._ask, method, *arguments)
            self._early[_key(method, arguments)] = future

    def __enter__(self) -> CompiledPort:
        if self._queue is None:
            self._state = self._session.port.ask(Networks.state)
            self._start()
        else:
            # The stages between have trained both networks on.
            self._session.port.ask(Networks.load_state, self._state)
            self._session.reference.ask(Networks.load_state, self._reference_state)
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
        self._is_closed = True
        if self._queue is not None:
            if self._worker is not None and not all(f.done() for f in self._early.values()):
                self._worker.kill()
            self._queue.shutdown(cancel_futures=True)
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def _start(self) -> Worker:
        """Start a process, wait until it has built the network, and give it the weights."""
        case = self._session.case
        worker = self._worker = self._session.start(self._kind, "port", case.port_python)
        if self._is_closed:  # `close` saw no process to end
            worker.kill()
        worker.stage = "compiled"
        worker.ask(Networks.build, case.port, self._session.seed)
        worker.ask(Networks.keep_scale, self._session.scales_dropout)
        worker.ask(Networks.load_state, self._state)
        if self._recorded is not None:
            worker.ask(CompilesModules.record, *self._recorded)
        return worker

    def _wait(self) -> None:
        """Until everything that was begun ahead is answered."""
        if self._queue is not None and not self._is_closed:
            self._queue.submit(int).result()

    def plain(
        self,
        method: Callable[Concatenate[Any, Arguments], Answer],
        *arguments: Arguments.args,
        **keywords: Arguments.kwargs,
    ) -> Answer:
        """A request of `CompilesModules` that compiles nothing."""
        self._wait()
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
        early = self._early.pop(_key(method, arguments), None)
        if early is not None and not early.cancelled():
            return early.result()
        self._wait()
        return self._ask(method, *arguments, **keywords)

    def _ask(
        self,
        method: Callable[Concatenate[Any, Arguments], dict[str, Any]],
        *arguments: Arguments.args,
        **keywords: Arguments.kwargs,
    ) -> dict[str, Any]:
        if self._is_closed:
            return _ENDED
        try:
            worker = self._worker or self._start()
        except WorkerError:
            if self._was_closed():  # while the process was building the network
                return _ENDED
            raise
        try:
            return worker.begin(method, *arguments, **keywords).answer(_PATIENCE_S)
        except WorkerError as error:
            worker.close()
            self._worker = None
            if self._was_closed():
                return _ENDED
            said = "the compiler ends the process" if "ended with" in error.what else error.what
            return {"verdict": "refused", "refused": said, "place": None, "error": "crash"}
        except IsogradError as error:
            return {"verdict": "refused", "refused": error.what, "place": None, "error": "raised"}

    def _was_closed(self) -> bool:
        """Whether another thread has called `close`."""
        return self._is_closed

    @property
    def has_ended(self) -> bool:
        """Whether the last request ended the process: optimizers and steps are gone with it."""
        self._wait()
        return self._worker is None


def _key(method: Callable[..., Any], arguments: Iterable[object]) -> tuple[str, ...]:
    """A request's method, way and mode; only the first of a key is begun ahead."""
    return (method.__name__, *(a for a in arguments if isinstance(a, str)))
