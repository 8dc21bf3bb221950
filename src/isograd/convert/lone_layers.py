"""The generated module where MindSpore's own layers stand: its layers need no Module of torch's.

The runtime's layers have the methods of torch's modules, for projects whose own classes derive from
them.  A port whose modules are cells calls none of these, so a layer that only holds settings (a
softmax, a pad) is a cell as well there, and 330 lines stay out.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from functools import lru_cache

from isograd.convert.generated import RUNTIME, Library, library

#: Layers that derive from Module itself, and hold nothing that it looks after, by their files.
_LAYERS = {"torch_settings": "WithSettings", "torch_layers": "Identity"}
_MODULE = ("torch_module", "Module")
#: What cells do otherwise: buffers are bound by another call, and modes start otherwise.
_OF_MODULE = frozenset(("training", "register_buffer", "register_parameter"))
_CONSTRUCTOR = (
    "",
    "    def __init__(self, *_: Any, **__: Any) -> None:",
    "        nn.Cell.__init__(self)",
)


def module_of(names: Collection[str], derived: Collection[str]) -> str:
    """The text of a module that defines these names and what they need.

    derived: names of those from which a project's own classes derive.
    """
    wanted = set(names)
    if wanted.isdisjoint(derived):
        needed = _of_cells().needed(wanted)
        if _MODULE not in needed and not any(map(_asks_module, needed.values())):
            return _of_cells().module_of(wanted)
    return library().module_of(wanted)


def _asks_module(node: ast.stmt) -> bool:
    """Whether a layer does what a cell does otherwise."""
    return isinstance(node, ast.ClassDef) and any(
        isinstance(part, ast.Attribute) and part.attr in _OF_MODULE for part in ast.walk(node)
    )


@lru_cache(maxsize=1)
def _of_cells() -> Library:
    """The runtime functions, with layers that are cells."""
    changed = {
        stem: _as_cell((RUNTIME / f"{stem}.py").read_text(encoding="utf-8"), name)
        for stem, name in _LAYERS.items()
    }
    return Library(changed=changed)


def _as_cell(text: str, name: str) -> str:
    """A file in which a class derives from a cell of MindSpore's; Module's constructor is that."""
    (node,) = (
        part
        for part in ast.parse(text).body
        if isinstance(part, ast.ClassDef) and part.name == name
    )
    lines, first, last = text.split("\n"), node.lineno, node.end_lineno
    documented = node.body[0].end_lineno
    assert documented is not None
    bases = [base for base in map(ast.unparse, node.bases) if base != "Module"]
    made = {getattr(part, "name", "") for part in node.body}
    body = [
        line.replace("super().__init__()", "nn.Cell.__init__(self)").replace(
            "def extra_repr(", "def extend_repr("
        )
        for line in lines[documented:last]
    ]
    return "\n".join(
        (
            "from mindspore import nn",
            *lines[: first - 1],
            f"class {name}({', '.join(bases or ['nn.Cell'])}):",
            *lines[first:documented],
            *([] if "__init__" in made else _CONSTRUCTOR),
            *body,
            *lines[last:],
        )
    )
