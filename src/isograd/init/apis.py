"""What names of torch, MindSpore and their data sets mean, from apis.toml."""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FRAMEWORKS = ("torch", "mindspore")


@dataclass(frozen=True)
class Apis:
    """The table of both frameworks."""

    table: dict[str, Any]

    def is_module(self, name: str) -> bool:
        """Whether this is a class of modules of a framework's library."""
        return self._is("modules", name) and name.rpartition(".")[2][:1].isupper()

    def is_base(self, name: str) -> bool:
        """Whether a class that derives from this is a module."""
        return self._is("base", name) or self.is_module(name)

    def is_optimizer(self, name: str) -> bool:
        """Whether this is a class of optimizers."""
        return self._is("optimizers", name) and name.rpartition(".")[2][:1].isupper()

    def is_scheduler(self, name: str) -> bool:
        """Whether this makes a schedule of the learning rate."""
        return any(_matches(name, self.table[f]["schedulers"]) for f in FRAMEWORKS)

    def is_wrapper(self, name: str) -> bool:
        """Whether this returns the network that it is given."""
        return any(name in self.table[f]["wrappers"] for f in FRAMEWORKS)

    def loss_kind(self, name: str) -> str:
        """What the target of this loss is, or nothing where it is no loss."""
        return next((k for k, names in self.table["losses"].items() if name in names), "")

    def filling(self, name: str) -> str:
        """How this function fills the tensor that it makes, or nothing."""
        return next((k for k, names in self.table["tensors"].items() if name in names), "")

    def dataset(self, name: str) -> tuple[tuple[int, ...], int] | None:
        """The shape of a sample of a known data set, and its number of classes."""
        found = self.table["datasets"].get(name)
        return None if found is None else (tuple(found[0]), found[1])

    def _is(self, key: str, name: str) -> bool:
        for framework in FRAMEWORKS:
            rules = self.table[framework]
            if _matches(name, rules[key]) and not _matches(name, rules.get(f"not_{key}", [])):
                return True
        return False


def _matches(name: str, rules: list[str]) -> bool:
    """Whether a rule is this name, or ends in a dot and begins it."""
    return any(name == r or (r.endswith(".") and name.startswith(r)) for r in rules)


@functools.cache
def load_apis() -> Apis:
    """The table of apis.toml."""
    text = Path(__file__).with_name("apis.toml").read_text(encoding="utf-8")
    return Apis(tomllib.loads(text))
