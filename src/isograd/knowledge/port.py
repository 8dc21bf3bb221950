"""The port of an example: every use of torch in it rewritten by the knowledge.

A small stand-in for `convert`, for examples alone: what is no name of torch's, torchvision's or
einops' is taken for a tensor when one of Tensor's methods is called on it.
"""

from __future__ import annotations

import ast

from isograd.knowledge.entry import Entry
from isograd.knowledge.rewrite import NotRewritten, call_of, class_of, reference, rewrite
from isograd.knowledge.store import Knowledge

_PACKAGES = ("torch", "torchvision", "einops")
_MODULES = "torch.nn.Module."


class NoPortError(ValueError):
    """An example that the knowledge cannot rewrite; the text says which use and why."""


def port_of(code: str, knowledge: Knowledge, of: str = "") -> str:
    """An example's MindSpore code.  Raises NoPortError where a use of torch has none.

    of: the API that the example is of.  Examples of Module's methods call them, not Tensor's.
    """
    tree = _Port(knowledge, of=of).visit(ast.parse(code))
    return ast.unparse(ast.fix_missing_locations(tree))


def mutating_port_of(code: str, knowledge: Knowledge) -> str:
    """As `port_of`, with in-place calls as `copy_`, which other names of the tensor see."""
    tree = _Port(knowledge, mutating=True).visit(ast.parse(code))
    return ast.unparse(ast.fix_missing_locations(tree))


class _Port(ast.NodeTransformer):
    def __init__(self, knowledge: Knowledge, mutating: bool = False, of: str = "") -> None:
        self._knowledge = knowledge
        self._mutating = mutating
        self._of = of
        #: Whether layers have torch's attributes, because a class of the example reads them.
        self._shaped = False

    def visit_Module(self, node: ast.Module) -> ast.AST:
        """What defines a class makes its layers by the classes that replace torch's."""
        self._shaped = any(isinstance(part, ast.ClassDef) for part in node.body)
        return self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        """An in-place call that is a statement assigns its value to what it changes."""
        call = node.value
        changed = self._changed(call) if isinstance(call, ast.Call) else None
        if changed is None:
            return self.generic_visit(node)
        target = ast.unparse(changed)
        value = ast.unparse(self.visit(call))
        if self._mutating:
            return ast.parse(f"{target}.copy_({value})").body[0]
        return ast.parse(f"{target} = {value}").body[0]

    def _changed(self, call: ast.Call) -> ast.expr | None:
        """x of `x.add_(1)` and of `torch.exp_(x)`; None where nothing is changed in place."""
        name = _dotted(call.func)
        is_function = name.startswith(_PACKAGES)
        entry = self._knowledge.find(name) if is_function else self._method(call.func)
        if entry is None or entry.hazard != "in_place":
            return None
        if is_function:
            return next(iter(call.args), None)
        return call.func.value if isinstance(call.func, ast.Attribute) else None

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """A module's forward is a cell's construct."""
        if node.name == "forward":
            node.name = "construct"
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        name = _dotted(node.func)
        if name in ("isinstance", "issubclass"):
            node.args[1] = _Classes(self._knowledge).visit(node.args[1])
            return self.generic_visit(node)
        entry: Entry | None
        receiver = ""
        if name.startswith(_PACKAGES):
            entry = self._knowledge.find(name)
            if entry is None:
                raise NoPortError(f"{name} is not known")
            if self._shaped and entry.value and name.rpartition(".")[2][0].isupper():
                return self.generic_visit(node)
        else:
            ways = [self._method(node.func), self._modules_method(node.func)]
            entry = next(filter(None, ways[:: -1 if _MODULES in self._of else 1]), None)
            if entry is None:
                return self.generic_visit(node)
            assert isinstance(node.func, ast.Attribute)
            receiver = ast.unparse(self.visit(node.func.value))
        node.args = [self.visit(part) for part in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        call = call_of(node, receiver)
        result = call if isinstance(call, NotRewritten) else rewrite(entry, call)
        if isinstance(result, NotRewritten):
            raise NoPortError(f"{entry.api}: {result.reason}")
        return ast.parse(result.code, mode="eval").body

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        name = _dotted(node)
        if name.startswith(_PACKAGES):
            entry = self._knowledge.find(name)
            if entry is None or not reference(entry):
                raise NoPortError(f"{name} has no name in MindSpore")
            return ast.parse(reference(entry), mode="eval").body
        if node.attr == "forward":
            node.attr = "construct"
        entry = self._method(node)
        if entry is None or entry.signature or not entry.rewrite:
            return self.generic_visit(node)
        receiver = ast.unparse(self.visit(node.value))
        return ast.parse(entry.rewrite.replace("{self}", receiver), mode="eval").body

    def _method(self, node: ast.AST) -> Entry | None:
        if not isinstance(node, ast.Attribute) or _dotted(node).startswith(_PACKAGES):
            return None
        return self._knowledge.find(f"torch.Tensor.{node.attr}")

    def _modules_method(self, node: ast.AST) -> Entry | None:
        """The entry of a Module's method; what a class calls of its base stays as it is."""
        if not isinstance(node, ast.Attribute) or isinstance(node.value, ast.Call):
            return None
        entry = self._knowledge.find(f"{_MODULES}{node.attr}")
        return entry if entry is not None and entry.rewrite else None


class _Classes(ast.NodeTransformer):
    """Torch's classes as those that an isinstance names."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        name = _dotted(node)
        if not name.startswith(_PACKAGES):
            return node
        entry = self._knowledge.find(name)
        if entry is None or not class_of(entry):
            raise NoPortError(f"{name} has no class in MindSpore")
        return ast.parse(class_of(entry), mode="eval").body


def _dotted(node: ast.AST) -> str:
    """The dotted name of an attribute chain, or an empty text."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])
