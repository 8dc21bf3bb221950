"""`importlib.import_module("torch.nn")`: imports whose module is a text; whether torch is there."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.model import Level
from isograd.convert.names import is_third_party, is_torch
from isograd.convert.passes.example import Example
from isograd.convert.passes.order import Stage
from isograd.convert.tree import Tree

_ADVICE = "Import what the port needs by an import statement, which is converted."


class ImportsByName:
    """A text that names torch, or a library that needs it, where something is imported."""

    kinds = (ast.Constant,)
    stage = Stage.GENERAL
    examples = (
        Example(
            "a module of torch's by its name",
            """
            import importlib

            module = importlib.import_module('torch.nn')
            """,
        ),
    )
    counterexamples = (
        Example(
            "a module of Python's",
            """
            import importlib

            module = importlib.import_module('json')
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Report it; which names are taken from the module is not known."""
        assert isinstance(node, ast.Constant)
        name = node.value
        if not isinstance(name, str) or name.partition(".")[0] in file.own_roots:
            return False
        if name == "torch" and _is_asked_for(node, file.tree):
            file.replace(node, '"mindspore"')
            file.uses += 1
            file.converted += 1
            return True
        # In this order: asking what is installed takes longest.
        function = _importing(node, file.tree)
        if not function or not _needs_torch(name):
            return False
        if function == "find_spec":
            message = f"whether {name} is there is asked; of a port the answer is no"
            file.finding(node, "look", message, level=Level.LOOK, api=name)
        else:
            file.uses += 1
            file.finding(node, "imported-by-name", f"{name} is imported here", _ADVICE, api=name)
        return True


def imports_torch_by_name(tree: Tree) -> bool:
    """Whether a file imports torch, or what needs it, by a text."""
    return any(
        isinstance(node.value, str)
        and (_importing(node, tree) != "" or _is_asked_for(node, tree))
        and _needs_torch(node.value)
        for node in tree.of(ast.Constant)
    )


def _is_asked_for(node: ast.Constant, tree: Tree) -> bool:
    """Whether `find_spec("torch")`, or a function of the file that does so, asks if torch is there.

    What follows from it uses MindSpore in a port.
    """
    call = tree.parents.get(node)
    if not isinstance(call, ast.Call) or call.args[:1] != [node]:
        return False
    if _name_of(call.func) == "find_spec":
        return True
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    return any(
        isinstance(part, ast.FunctionDef) and part.name == name and _asks(part)
        for part in tree.module.body
    )


def _asks(function: ast.FunctionDef) -> bool:
    """Whether a function asks `find_spec` for the module that its first argument names."""
    return bool(function.args.args) and any(
        isinstance(part, ast.Call)
        and _name_of(part.func) == "find_spec"
        and any(getattr(given, "id", "") == function.args.args[0].arg for given in part.args)
        for part in ast.walk(function)
    )


def _name_of(function: ast.expr) -> str:
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")


def _needs_torch(name: str) -> bool:
    return name.replace(".", "_").isidentifier() and (is_torch(name) or is_third_party(name))


def _importing(node: ast.Constant, tree: Tree) -> str:
    """The function that imports the module of this name: its first argument; empty if none does."""
    parent = tree.parents.get(node)
    if isinstance(parent, ast.keyword) and parent.arg in ("name", "module"):
        call = tree.parents.get(parent)
        is_first = isinstance(call, ast.Call) and not call.args
    else:
        call = parent
        is_first = isinstance(call, ast.Call) and call.args[:1] == [node]
    if not isinstance(call, ast.Call) or not is_first:
        return ""
    name = _name_of(call.func)
    return name if "import" in name or name == "find_spec" else ""
