"""What a pass changes and what it leaves: texts that its tests and its page are made from."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

_HEAD = "import torch\nfrom torch import nn\n"


@dataclass(frozen=True)
class Example:
    """A short text behind the imports of torch. name: what is special about it, as a phrase."""

    name: str
    code: str

    @property
    def body(self) -> str:
        """The text without the imports."""
        return textwrap.dedent(self.code).strip("\n") + "\n"

    @property
    def source(self) -> str:
        """The whole file."""
        return f"{_HEAD}\n\n{self.body}"
