"""`isograd.WatchCallback("runs/a")`: a callback of Model.train, Lightning, and Trainer.

The class of an instance derives from the callback classes of those frameworks that have been
imported, so that each of them takes it for one of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from isograd.watch.context import Watch, watch_training

_BASES = (
    ("mindspore.train", "Callback"),
    ("lightning.pytorch", "Callback"),
    ("pytorch_lightning", "Callback"),
    ("transformers", "TrainerCallback"),
)


class WatchCallback:
    """Watches the training that it is a callback of; the options are those of `isograd.watch`.

    With `action="stop"` the framework is asked to stop after the step.
    """

    def __new__(cls, *_: Any, **__: Any) -> WatchCallback:
        """An instance that each imported framework takes for a callback of its own."""
        bases = [
            getattr(sys.modules[module], name) for module, name in _BASES if module in sys.modules
        ]
        kind = type(cls.__name__, (cls, *bases), {"__module__": cls.__module__})
        made: WatchCallback = object.__new__(kind)
        return made

    def __init__(self, path: str | Path, **options: Any) -> None:
        """Keep the options; nothing is written before the training begins."""
        super().__init__()
        self._path = path
        self._options = options
        self._watch: Watch | None = None
        self._is_stopping = False

    # ---- MindSpore and Trainer, which name their events alike

    def on_train_begin(self, first: Any, *rest: Any, **known: Any) -> None:
        """MindSpore: (run_context); Trainer: (args, state, control, model=…, optimizer=…)."""
        if rest:
            self._begin(known.get("model"), known.get("optimizer"))
            return
        facts = first.original_args()
        self._begin(facts.network, facts.optimizer)

    def on_train_step_end(self, run_context: Any) -> None:
        """MindSpore: a step has ended."""
        if self._is_stopping:
            run_context.request_stop()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        """Trainer: a step has ended."""
        if self._is_stopping:
            control.should_training_stop = True
        return control

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """All of them: the training has ended."""
        self._end(None)

    # ---- Lightning

    def on_train_start(self, trainer: Any, module: Any) -> None:
        """Lightning: the training begins."""
        self._begin(module, list(trainer.optimizers))

    def on_train_batch_end(self, trainer: Any, *_: Any, **__: Any) -> None:
        """Lightning: a batch has ended."""
        if self._is_stopping:
            trainer.should_stop = True

    def on_exception(self, trainer: Any, module: Any, exception: BaseException) -> None:
        """Lightning: the training has raised."""
        self._end(exception)

    # ---- common

    def _begin(self, model: Any, optimizer: Any) -> None:
        options = dict(self._options)
        if options.get("action") == "stop":
            options["action"] = self._ask_to_stop
        # Trainer wraps optimizers; one that is no optimizer of torch's own is found by its steps.
        is_plain = isinstance(optimizer, list) or hasattr(optimizer, "parameters")
        options.setdefault("optimizer", optimizer if is_plain else None)
        self._watch = watch_training(model, self._path, **options)
        self._watch.__enter__()

    def _end(self, error: BaseException | None) -> None:
        if self._watch is not None:
            watch, self._watch = self._watch, None
            watch.__exit__(None if error is None else type(error), error, None)

    def _ask_to_stop(self, alert: Mapping[str, Any]) -> None:
        self._is_stopping = True
