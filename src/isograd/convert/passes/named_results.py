"""`torch.topk(x, 2).values`: parts of a result by their names.

Compiled, the runtime's functions return plain tuples, because MindSpore's static graph loses the
gradient of a named one; so a port takes the part by its place.
"""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example

_PAIR = ("values", "indices")
_QR = ("Q", "R")
#: The parts of what a function returns, by the function's name, or all of it where two differ.
_PARTS = {
    **dict.fromkeys(
        "sort topk kthvalue median nanmedian max min cummax cummin mode".split(), _PAIR
    ),
    "aminmax": ("min", "max"),
    "slogdet": ("sign", "logabsdet"),
    "qr": _QR,
    "svd": ("U", "S", "V"),
    "torch.linalg.svd": ("U", "S", "Vh"),
    "geqrf": ("a", "tau"),
    "frexp": ("mantissa", "exponent"),
    "lu_unpack": ("P", "L", "U"),
}
_NAMES = frozenset(name for parts in _PARTS.values() for name in parts)


class NamedResults:
    """Parts of the result of a call, also where a local name holds it."""

    kinds = (ast.Attribute,)
    examples = (
        Example(
            "the positions of a maximum",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                found = torch.max(x, 1)
                return found.indices
            """,
        ),
    )
    counterexamples = (
        Example(
            "an attribute of the program's own",
            """
            class Found:
                indices = 3

            def f(x: torch.Tensor, y: torch.Tensor):
                return torch.relu(x) * Found.indices
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the place; a name that may hold anything else stays as it is."""
        assert isinstance(node, ast.Attribute)
        if node.attr not in _NAMES or not isinstance(node.ctx, ast.Load):
            return False
        parent = file.tree.parents.get(node)
        if isinstance(parent, ast.Call) and parent.func is node:
            return False
        parts = _parts_of(node.value, file)
        if node.attr not in parts:
            return False
        layout.write(file, node, f"{file.source(node.value)}[{parts.index(node.attr)}]")
        return True


def _parts_of(value: ast.expr, file: FileEdit) -> tuple[str, ...]:
    """The names of a value's parts; none where they are not known."""
    if isinstance(value, ast.Call):
        use = file.use(value.func)
        is_sure = use is not None and use.is_sure
        return _named_parts(use.api) if use and is_sure else ()
    function = file.tree.function(value)
    if not isinstance(value, ast.Name) or function is None:
        return ()
    made = _values_of(value.id, function)
    found = {_parts_of(one, file) if isinstance(one, ast.Call) else () for one in made}
    return found.pop() if len(found) == 1 else ()


def _named_parts(api: str) -> tuple[str, ...]:
    return _PARTS.get(api) or _PARTS.get(api.rpartition(".")[2], ())


def _values_of(name: str, function: ast.AST) -> list[ast.expr | None]:
    """What a function binds a name to; None for what is no plain assignment."""
    found: list[ast.expr | None] = []
    plain: set[ast.AST] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Name) and target.id == name:
                plain.add(target)
                found.append(node.value)
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id == name and node not in plain:
            if not isinstance(node.ctx, ast.Load):
                found.append(None)
        elif isinstance(node, ast.arg) and node.arg == name:
            found.append(None)
    return found
