"""What a verb's command returns: a value that knows its JSON and whether a person must act."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from typing import Any


class Report(ABC):
    """Base of every verb's report object; subclasses are frozen dataclasses."""

    @property
    @abstractmethod
    def needs_action(self) -> bool:
        """Whether something was found that a person must act on: the exit status 1."""

    @abstractmethod
    def to_data(self) -> dict[str, Any]:
        """The contract's JSON as dictionaries, lists, strings, enums and numbers."""

    def to_json(self) -> str:
        """The contract's JSON as text in ASCII, with null for every number that is not finite."""
        return json_text(self.to_data())


def json_text(value: Any) -> str:
    """JSON in ASCII with a final line break, with null for every number that is not finite."""
    return json.dumps(plain_value(value), indent=1, allow_nan=False) + "\n"


def plain_value(value: Any) -> Any:
    """The value in JSON's own types: enums by their value, tuples as lists, no NaN or infinity.

    Raises TypeError for what JSON cannot hold.
    """
    if isinstance(value, dict):
        return {str(getattr(key, "value", key)): plain_value(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_value(part) for part in value]
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return str(getattr(value, "value", value))
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if hasattr(value, "item"):
        return plain_value(value.item())
    raise TypeError(f"a report cannot hold {type(value).__name__}")
