"""The passes of a conversion: small units that each write one kind of construct.

A pass says which kinds of nodes it looks at, and is shown every such node of a file, inner nodes
before those around them.  It looks at the node through `FileEdit` and writes:

    class Example:
        kinds = (ast.Call,)                      # node classes
        examples = (Example("…", "…"),)          # its tests and docs/convert-rules.md
        counterexamples = (Example("…", "…"),)

        def convert(self, node, file):           # True: no later pass needs to see this node
            if file.api_of_call(node) != "torch.example":
                return False
            file.replace(node, file.spelled(f"ops.example({file.source(node.args[0])})"))
            return True

`file.source(node)` is the node's text with what inner passes wrote, so nested edits compose.
`file.use(node)` says which API of torch a name or attribute names, by import or as a member of a
value; `file.name("nn.Cell")` spells a name of MindSpore's and notes the import that it needs, and
`file.name("composites.conv2d")` one of the generated module.  What cannot be converted is reported
with `file.finding(node, code, message, advice)`, which also writes the comment; nothing is dropped
silently.  A new pass is one file here: `all_passes` finds its class.  Special passes see a node
before the general ones; `after = ("Other",)` names those that have to see it before; the first that
returns True ends it.
Names of torch that no pass has written become `unconverted("torch.…")` with a finding.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import pkgutil
from typing import Protocol

from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.passes.order import Stage, ordered, stage_of


class Pass(Protocol):
    """One kind of construct."""

    @property
    def kinds(self) -> tuple[type[ast.AST], ...]:
        """The classes of nodes that it looks at."""

    @property
    def examples(self) -> tuple[Example, ...]:
        """Texts that it changes, or of which it says something."""

    @property
    def counterexamples(self) -> tuple[Example, ...]:
        """Texts that are near to these, and of which it says and changes nothing."""

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the node if it is of this kind; True where no later pass needs to see it."""


@functools.cache
def all_passes() -> tuple[Pass, ...]:
    """The passes of this package's modules, in the order in which they see a node."""
    classes = []
    for found in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{found.name}")
        for value in vars(module).values():
            is_own = inspect.isclass(value) and value.__module__ == module.__name__
            if is_own and hasattr(value, "convert") and hasattr(value, "kinds"):
                classes.append(value)
    return tuple(one() for one in ordered(classes))


#: The stages of each round over a file.
_ROUNDS = ((Stage.EARLY,), (Stage.SPECIAL, Stage.GENERAL), (Stage.LAST,))


def passes_by_round() -> list[dict[type, list[Pass]]]:
    """The passes of each round over a file, for each kind of node in their order."""
    rounds: list[dict[type, list[Pass]]] = [{} for _ in _ROUNDS]
    for item in all_passes():
        for stages, found in zip(_ROUNDS, rounds, strict=True):
            for kind in item.kinds if stage_of(item) in stages else ():
                found.setdefault(kind, []).append(item)
    return rounds
