"""`isograd.watch(model, "runs/a", …)`: a training of either framework, watched inside of `with`."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from isograd.errors import UsageError
from isograd.watch.judge import Alert
from isograd.watch.session import Options, Session, TrainingStopped
from isograd.watch.settings import ACTIONS, Settings, find_settings, from_table


class Watcher(Protocol):
    """An adapter: sees one framework's trainings in this process, from attach to detach."""

    def attach(self) -> None:
        """Begin to watch; may raise before anything is changed."""

    def detach(self, error: BaseException | None) -> None:
        """Undo everything; error: what ended the training."""


_watched_now: list[Path] = []


def watch_training(
    model: Any,
    path: str | Path,
    *,
    optimizer: Any = None,
    scaler: Any = None,
    action: str | Callable[[Mapping[str, Any]], object] | None = None,
    alerts: Mapping[str, Mapping[str, Any]] | None = None,
    first: int = 5,
    every: int = 20,
    replay: bool = True,
    name: str | None = None,
) -> Watch:
    """Watch the training of a torch or MindSpore network inside of `with`, into a new folder.

    optimizer: one, or a list of them; all that step, if none is given.
    scaler: torch's GradScaler or a loss scaler of mindspore.amp; found by itself where it is used.
    action: at an alert: `report`, `stop`, `raise`, or a callable that gets the alert.
    alerts: thresholds by code, as in `[tool.isograd.watch.alerts]`, which they replace.
    first, every: the first steps that are all looked at, and the distance of looks after them.
    replay: whether a step with values that are not finite is replayed to find their origin.
    Raises UsageError where an argument is wrong; nothing is watched or written before `with`.
    """
    settings = find_settings(Path.cwd())
    if alerts is not None:
        given = from_table({"alerts": dict(alerts)}, "alerts")
        settings = dataclasses.replace(settings, rules={**settings.rules, **given.rules})
    options = _options(settings, action, first, every, replay)
    return Watch(model, Path(path), optimizer, scaler, options, name)


def _options(
    settings: Settings,
    action: str | Callable[[Mapping[str, Any]], object] | None,
    first: int,
    every: int,
    replay: bool,
) -> Options:
    chosen = settings.action if action is None else action
    if not callable(chosen) and chosen not in ACTIONS:
        raise UsageError(f"action: {chosen!r} is unknown", f"Give one of {', '.join(ACTIONS)}.")
    if first < 0 or every < 0:
        raise UsageError("first and every count steps", "Give numbers from 0; every=0 is never.")
    return Options(settings, first, every, chosen, replay)


class Watch:
    """A watched training; `isograd.watch` makes one.

    step(loss) may be called where the loss does not reach a backward pass of its own.
    """

    def __init__(
        self,
        model: Any,
        path: Path,
        optimizer: Any,
        scaler: Any,
        options: Options,
        name: str | None,
    ) -> None:
        self.path = path
        self._model = model
        self._optimizers = _as_tuple(optimizer)
        self._scaler = scaler
        self._options = options
        self._name = name
        self._session: Session | None = None
        self._watcher: Watcher | None = None

    def __enter__(self) -> Watch:
        """Begin to watch; UsageError where a training is being watched already."""
        if _watched_now:
            raise UsageError(
                f"a training is being watched by {_watched_now[0]} already",
                "Leave that `with` first; one watch sees all optimizers of the process.",
            )
        make = watcher_of(self._model)
        session = Session(self.path, self._options, self._name)
        watcher = make(session, self._model, self._optimizers, self._scaler)
        try:
            watcher.attach()
        except BaseException as error:
            watcher.detach(error)
            session.close(error)
            raise
        self._session, self._watcher = session, watcher
        _watched_now.append(self.path)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        """Stop watching; a training that `action="stop"` ended goes on behind the `with`."""
        assert self._watcher is not None
        assert self._session is not None
        _watched_now.clear()
        with contextlib.ExitStack() as always:
            always.callback(self._session.close, error)
            self._watcher.detach(error)
        return isinstance(error, TrainingStopped)

    @property
    def alerts(self) -> tuple[Alert, ...]:
        """All alerts so far."""
        return self._session.alerts if self._session is not None else ()


MakeWatcher = Callable[[Session, Any, "tuple[Any, ...]", Any], Watcher]


def watcher_of(model: Any) -> MakeWatcher:
    """The adapter for a network; UsageError where no framework has such."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        return watcher_for("torch")
    mindspore = sys.modules.get("mindspore")
    if mindspore is not None and isinstance(model, mindspore.nn.Cell):
        return watcher_for("mindspore")
    raise UsageError(
        f"model: a {type(model).__module__}.{type(model).__qualname__} cannot be watched",
        "Give a torch.nn.Module or a mindspore.nn.Cell.",
    )


def watcher_for(framework: str) -> MakeWatcher:
    """The adapter of a framework, which is imported here and not before."""
    if framework == "torch":
        from isograd.watch.torch_watcher import TorchWatcher

        return lambda session, model, optimizers, scaler: TorchWatcher(session, model, optimizers)
    from isograd.watch.mindspore_watcher import MindSporeWatcher

    return MindSporeWatcher


def _as_tuple(optimizer: Any) -> tuple[Any, ...]:
    if optimizer is None:
        return ()
    return tuple(optimizer) if isinstance(optimizer, (list, tuple)) else (optimizer,)
