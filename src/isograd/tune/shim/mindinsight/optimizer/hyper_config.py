"""`HyperConfig` as MindInsight 2.3 has it, for scripts that MindOptimizer tuned.

Runs in the trial's own process and needs nothing but Python.
"""

from __future__ import annotations

import json
import os
from typing import Any

#: The variable in which a trial finds its hyper-parameters.
VARIABLE = "MINDINSIGHT_HYPER_CONFIG"


class AttributeDict(dict[str, Any]):
    """A dictionary whose keys are attributes, too."""

    def __getattr__(self, key: str) -> Any:
        """The value of a key; AttributeError where there is none."""
        try:
            return self[key]
        except KeyError:
            raise AttributeError(f"The attribute {key!r} does not exist.") from None

    def __setattr__(self, key: str, value: Any) -> None:
        """Set a key."""
        self[key] = value


class HyperConfig:
    """The hyper-parameters of this trial and the folder for its summary files."""

    def __init__(self) -> None:
        """Read the variable; RuntimeError where it is missing or holds something else."""
        text = os.environ.get(VARIABLE)
        if text is None:
            raise RuntimeError(f"{VARIABLE} is not set: start this script by `isograd tune`.")
        try:
            self._config = json.loads(text)
            self._config["params"], self._config["summary_dir"]
        except (ValueError, TypeError, KeyError) as error:
            raise RuntimeError(f"{VARIABLE} holds no hyper-parameters ({error}).") from None

    @property
    def params(self) -> AttributeDict:
        """The hyper-parameters by name; they are attributes as well."""
        return AttributeDict(self._config["params"])

    @property
    def summary_dir(self) -> str:
        """The folder for the trial's summary files."""
        return os.path.realpath(str(self._config["summary_dir"]))

    @property
    def custom_lineage_data(self) -> Any:
        """What MindInsight's SummaryCollector keeps beside the hyper-parameters."""
        return self._config.get("custom_lineage_data")
