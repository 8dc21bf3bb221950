"""`isograd.ProfileCallback("runs/a")`: a recording inside of MindSpore's `Model.train`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from isograd.errors import UsageError
from isograd.profile.model import Phase
from isograd.profile.record.plan import DEFAULT_STEPS
from isograd.profile.record.recorder import ProfileRecorder


class ProfileCallback:
    """Records the training that it is a callback of, into a new folder.

    Under GRAPH_MODE a pass is one call, so that steps are timed and phases are not.
    """

    def __new__(cls, *_: Any, **__: Any) -> ProfileCallback:
        """An instance that MindSpore takes for a callback of its own.

        Raises UsageError where MindSpore has not been imported.
        """
        if "mindspore" not in sys.modules:
            raise UsageError(
                "ProfileCallback belongs to MindSpore, which is not imported",
                "In torch, use `with isograd.profile(model, folder):`.",
            )
        from mindspore.train import Callback

        kind = type(cls.__name__, (cls, Callback), {"__module__": cls.__module__})
        made: ProfileCallback = object.__new__(kind)
        return made

    def __init__(self, folder: str | Path, *, steps: int = DEFAULT_STEPS) -> None:
        """Keep the arguments; nothing is written before the training begins.

        steps: how many are recorded, warm-up included.
        """
        super().__init__()
        self._folder, self._steps = Path(folder), steps
        self._recorder: ProfileRecorder | None = None

    def on_train_begin(self, run_context: Any) -> None:
        """Begin to record the trained network."""
        network = run_context.original_args().network
        self._recorder = ProfileRecorder(network, self._folder, steps=self._steps)
        self._recorder.__enter__()

    def on_train_step_begin(self, run_context: Any) -> None:
        """A step begins; its batch was fetched before."""
        if self._recorder is not None:
            self._recorder.begin(Phase.FORWARD)

    def on_train_step_end(self, run_context: Any) -> None:
        """A step ends here, not at the next batch."""
        if self._recorder is not None:
            self._recorder.step()

    def on_train_end(self, run_context: Any) -> None:
        """Write the recording."""
        if self._recorder is not None:
            recorder, self._recorder = self._recorder, None
            recorder.__exit__(None, None, None)
