"""The entry of `watch`: a model to watch, or a run to read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from isograd.watch.context import Watch
    from isograd.watch.model import WatchReport


@overload
def watch(
    source: str | Path,
    /,
    *,
    against: str | Path | Iterable[str | Path] = (),
    follow: bool = False,
    tensorboard: str | Path | None = None,
) -> WatchReport: ...
@overload
def watch(
    model: Any,
    path: str | Path,
    /,
    *,
    optimizer: Any = None,
    scaler: Any = None,
    action: str | Callable[[Mapping[str, Any]], object] | None = None,
    alerts: Mapping[str, Mapping[str, Any]] | None = None,
    first: int = 5,
    every: int = 20,
    replay: bool = True,
    name: str | None = None,
) -> Watch: ...
def watch(
    first: Any,
    path: Any = None,
    /,
    *,
    against: str | Path | Iterable[str | Path] = (),
    follow: bool = False,
    tensorboard: str | Path | None = None,
    **options: Any,
) -> Any:
    """Read a run, or watch a training: `with isograd.watch(model, "runs/a", optimizer=…):`.

    A first argument that is a path is read; the report is what `--json` draws.  Anything else is a
    model: see `isograd.watch.context.watch_training` for the options.
    Raises IsogradError where the command would end with exit status 2.
    """
    if isinstance(first, (str, Path)):
        from isograd.watch.reading import read_source

        return read_source(
            first, against=against, follow=follow, tensorboard=tensorboard, **options
        )
    from isograd.errors import UsageError
    from isograd.watch.context import watch_training

    if path is None:
        raise UsageError("no folder is given for the run", 'Write watch(model, "runs/a").')
    return watch_training(first, path, **options)
