"""`torch.topk(x, 2).values`: parts of a result by their names.

Compiled, the runtime's functions return plain tuples, because MindSpore's static graph loses the
gradient of a named one; so a port takes the part by its place.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from isograd.convert import layout
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_SCOPES = (*_FUNCTIONS, ast.ClassDef)


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
        if node.attr not in file.names.parts or not isinstance(node.ctx, ast.Load):
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
        return file.names.named.get(use.api, ()) if use is not None and use.is_sure else ()
    if not isinstance(value, ast.Name):
        return ()
    for scope in _scopes(value, file):
        made = _values_of(value.id, scope, file)
        if made:
            found = {_parts_of(one, file) if isinstance(one, ast.Call) else () for one in made}
            return found.pop() if len(found) == 1 else ()
    return ()


def _scopes(node: ast.AST, file: FileEdit) -> Iterator[ast.AST]:
    """Where a name that stands here may be bound, innermost first."""
    yield from (part for part in file.tree.above(node) if isinstance(part, _FUNCTIONS))
    yield file.tree.module


def _values_of(name: str, scope: ast.AST, file: FileEdit) -> list[ast.expr | None]:
    """What a function or module binds a name to; None for what is no plain assignment.

    Of a function those count too that stand in functions inside it; of a module only its own, and
    those of functions that declare the name as global.
    """
    found: list[ast.expr | None] = []
    is_module = isinstance(scope, ast.Module)
    for node in ast.walk(scope):
        if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
            found.append(None)
        elif is_module and any(isinstance(part, _SCOPES) for part in file.tree.above(node)):
            continue
        elif isinstance(node, ast.Name) and node.id == name:
            if not isinstance(node.ctx, ast.Load):
                found.append(_assigned(node, file))
        elif name in (getattr(node, "arg", ""), getattr(node, "name", "")):
            is_bound = isinstance(node, (ast.arg, ast.ExceptHandler, *_SCOPES))
            found += [None] if is_bound and node is not scope else []
    return found


def _assigned(target: ast.Name, file: FileEdit) -> ast.expr | None:
    """What is assigned to a name and nothing beside it."""
    statement = file.tree.parents.get(target)
    if not isinstance(statement, ast.Assign) or statement.targets != [target]:
        return None
    return statement.value
