"""Every error that isograd raises on purpose, as one tree.

IsogradError                    what and where; then what to do
├── UsageError                  isograd was called wrongly
│   └── CaseError               a case file is wrong
├── FrameworkMissingError       an interpreter lacks torch or MindSpore
├── CheckpointError             a file of tensors cannot be read or written
├── RecordingError              a recording cannot be read, or would be empty
├── RunError                    a run's folder cannot be read, or is damaged
├── DataError                   a data set cannot be read or written
├── ProfileError                a profile cannot be read or recorded
├── UserCodeError               a callable of the user's raised
└── WorkerError                 a worker process ended or answered nonsense

A message has two sentences: the first says what is wrong and where, the second what to do.
"""

from __future__ import annotations


class IsogradError(Exception):
    """Base of all errors that isograd raises on purpose."""

    def __init__(self, what: str, advice: str) -> None:
        ended = what.rstrip(". ")
        super().__init__(f"{ended}{'' if ended.endswith('?') else '.'} {advice}")
        self.what = what
        self.advice = advice


class UsageError(IsogradError):
    """isograd was called wrongly."""


class CaseError(UsageError):
    """A case file is wrong."""


class FrameworkMissingError(IsogradError):
    """The interpreter of one side does not have its framework."""


class CheckpointError(IsogradError):
    """A file or folder of tensors cannot be read or written, or is damaged."""


class RecordingError(IsogradError):
    """A recording cannot be read or written, or would be empty."""


class RunError(IsogradError):
    """A run's folder cannot be read, is damaged, or holds nothing."""


class DataError(IsogradError):
    """A data set or pipeline cannot be read, or a data set cannot be written."""


class ProfileError(IsogradError):
    """A profile cannot be read or recorded, or holds nothing that can be judged."""


class UserCodeError(IsogradError):
    """A callable of the user's raised; `trace` holds the user's part of the traceback."""

    def __init__(self, what: str, advice: str, trace: str = "") -> None:
        super().__init__(what, advice)
        self.trace = trace


class WorkerError(IsogradError):
    """A worker process ended unexpectedly; `stage` and `last_words` say where and how."""

    def __init__(self, what: str, advice: str, last_words: str = "") -> None:
        super().__init__(what, advice)
        self.last_words = last_words
