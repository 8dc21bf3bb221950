"""`ProfileCallback`: a recording inside of MindSpore's `Model.train`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from isograd.errors import UsageError
from isograd.profile.model import Phase
from isograd.profile.record.plan import DEFAULT_STEPS
from isograd.profile.record.recorder import ProfileRecorder


def profile_callback(folder: str | Path, *, steps: int = DEFAULT_STEPS) -> Any:
    """Make a mindspore.train.Callback that records the training into a new folder.

    Under GRAPH_MODE a pass is one call, so that steps are timed and phases are not.
    Raises UsageError where MindSpore has not been imported.
    """
    if "mindspore" not in sys.modules:
        raise UsageError(
            "ProfileCallback belongs to MindSpore, which is not imported",
            "In torch, use `with isograd.profile(model, folder):`.",
        )
    from mindspore.train import Callback

    class ProfileCallback(Callback):  # type: ignore[misc]  # MindSpore has no types
        """Ends the recorder's steps where Model.train ends its own."""

        def __init__(self) -> None:
            super().__init__()
            self._recorder: ProfileRecorder | None = None

        def on_train_begin(self, run_context: Any) -> None:
            """Begin to record the trained network."""
            network = run_context.original_args().network
            self._recorder = ProfileRecorder(network, Path(folder), steps=steps)
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
                self._recorder.__exit__(None, None, None)
                self._recorder = None

    return ProfileCallback()
