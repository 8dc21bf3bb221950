"""Names that a module imports from torch and that it is asked for by a text.

`globals()[kind]`, `getattr(sys.modules[__name__], kind)`, `getattr(losses, kind)` of a file of the
project: what `from torch.nn import MSELoss` bound has to be bound in the port as well.
"""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.passes.references import value_of_name
from isograd.convert.tree import Tree

_LACKING = "{0} is looked up by a text, and has no counterpart in MindSpore"
_ADVICE = "Leave the name out if nothing asks for it; else write what it means."
_NAMESPACES = ("globals", "vars", "locals")
_GETTING = ("getattr", "hasattr")
_TESTS = (ast.In, ast.NotIn)


def asks_itself(tree: Tree) -> bool:
    """Whether a file looks a name up in its own module."""
    return any(_asks_itself(node, tree) for node in tree.of(ast.Call))


def _asks_itself(node: ast.Call, tree: Tree) -> bool:
    name = getattr(node.func, "id", "")
    if name in tree.own_names:
        return False
    if name in _GETTING and len(node.args) > 1:
        return _is_own_module(node.args[0])
    return name in _NAMESPACES and not node.args and _is_looked_up(node, tree)


def _is_looked_up(namespace: ast.Call, tree: Tree) -> bool:
    """`globals()[kind]`, `globals().get(kind)`, `kind in globals()`; not `globals().items()`."""
    parent = tree.parents.get(namespace)
    if isinstance(parent, ast.Subscript):
        return isinstance(parent.ctx, ast.Load)
    if isinstance(parent, ast.Attribute):
        return parent.attr in ("get", "__getitem__")
    if isinstance(parent, ast.Assign):
        return True
    return isinstance(parent, ast.Compare) and any(isinstance(op, _TESTS) for op in parent.ops)


def _is_own_module(node: ast.expr) -> bool:
    """`sys.modules[__name__]`, `sys.modules[self.__module__]`, `import_module(__name__)`."""
    if isinstance(node, ast.Subscript):
        key, owner = node.slice, node.value
        is_modules = getattr(owner, "attr", getattr(owner, "id", "")) == "modules"
        return is_modules and _names_itself(key)
    function = getattr(node, "func", None)
    is_import = getattr(function, "attr", getattr(function, "id", "")) == "import_module"
    return is_import and isinstance(node, ast.Call) and any(map(_names_itself, node.args))


def _names_itself(node: ast.expr) -> bool:
    return getattr(node, "id", "") == "__name__" or getattr(node, "attr", "") == "__module__"


def kept_names(file: FileEdit, node: ast.ImportFrom, gone: list[ast.alias]) -> list[str]:
    """Statements that bind what an import of a module bound, where it is looked up by a text."""
    if isinstance(file.tree.scope(node), ast.Module):
        return [line for alias in gone if (line := _bound(alias, file))]
    return []


def _bound(alias: ast.alias, file: FileEdit) -> str:
    name = alias.asname or alias.name
    api = file.names.canonical(file.imported.torch.get(name, ""))
    if not api or file.names.kind(api) == "m":
        return ""
    code = value_of_name(alias, api, file)
    if not code and name in file.tree.used:
        return ""  # the file imports it for itself
    if not code:
        file.finding(alias, "not-converted", _LACKING.format(api), _ADVICE, api=api)
        code = file.unconverted(api)
    return "" if code == name else f"{name} = {code}"
