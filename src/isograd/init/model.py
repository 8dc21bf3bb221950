"""What `isograd init` answers: the files that it wrote, and what it knew and did not."""

from __future__ import annotations

import json
from dataclasses import dataclass

SCHEMA = "isograd/init/1"


@dataclass(frozen=True)
class Choice:
    """One thing of the case: what was taken, and where it stands (`file.py:line`)."""

    key: str
    taken: str
    where: str | None = None


@dataclass(frozen=True)
class InitReport:
    """The whole answer of `isograd init`.

    files: what was written, the case first.  unknown: what a person has to look at.
    runs: whether both networks, losses included, ran on the inputs; None where it was not tried.
    """

    files: tuple[str, ...]
    choices: tuple[Choice, ...]
    unknown: tuple[str, ...]
    runs: bool | None

    @property
    def needs_action(self) -> bool:
        """Whether the case does not run as it is, or was not tried."""
        return self.runs is not True

    def to_json(self) -> str:
        """What `--json` writes."""
        value = {
            "schema": SCHEMA,
            "files": list(self.files),
            "choices": [{"key": c.key, "taken": c.taken, "where": c.where} for c in self.choices],
            "unknown": list(self.unknown),
            "runs": self.runs,
        }
        return json.dumps(value, indent=2) + "\n"
