"""Whether code may call an operator of torch's, whose error comes later in a port."""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isograd.convert.tree import Tree

if TYPE_CHECKING:
    from isograd.convert.file_facts import FileFacts

_BUILTINS = frozenset(vars(builtins))
#: Of torch, but no arithmetic: what raises at once in a port, too.
_ON_THE_HOST = (
    "torch.load",
    "torch.save",
    "torch.device",
    "torch.Generator",
    "torch.compile",
    "torch.set_",
    "torch.get_",
    "torch.is_",
    "torch.manual_seed",
    "torch.backends.",
    "torch.cuda.",
    "torch.distributed.",
    "torch.hub.",
    "torch.jit.",
    "torch.onnx.",
    "torch.nn.Module.",
    "torch.ops.",
    "torch.serialization.",
    "torch.multiprocessing.",
    "torch.mps.",
    "torch.utils.",
    "torch.version",
    "torch.xpu.",
)
_DEEPEST = 6
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)


@dataclass(frozen=True)
class Around:
    """What is known of the `try` around code.

    is_general: whether it catches whatever may be raised, so that calls of what is not known count.
    is_of_tensors: whether it names RuntimeError, so that operators of what is not known count.
    """

    is_general: bool
    is_of_tensors: bool


def computes(
    node: ast.AST, file: FileFacts, around: Around, seen: frozenset[str] = frozenset()
) -> bool:
    """Whether code may call an operator; what it calls of the file's own is looked into."""
    for part in file.tree.walked(node):
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.MatMult):
            return True
        if around.is_of_tensors and isinstance(part, ast.BinOp) and _may_be_of_tensors(part):
            return True
        if isinstance(part, ast.Call) and _calls(part, file, around, seen):
            return True
    return False


def _may_be_of_tensors(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return isinstance(node.op, _ARITHMETIC) and not any(
        isinstance(side, (ast.JoinedStr, ast.List))
        or (isinstance(side, ast.Constant) and not isinstance(side.value, float))
        for side in sides
    )


def _calls(call: ast.Call, file: FileFacts, around: Around, seen: frozenset[str]) -> bool:
    use = file.use(call.func)
    if use is not None:
        return not use.api.startswith(_ON_THE_HOST)
    name = getattr(call.func, "id", getattr(call.func, "attr", ""))
    root = call.func
    while isinstance(root, ast.Attribute):
        root = root.value
    is_own = root is call.func or getattr(root, "id", "") in ("self", "cls")
    if is_own and (defined := _functions(file.tree, name)):
        if name in seen or len(seen) > _DEEPEST:
            return False
        return any(computes(one, file, around, seen | {name}) for one in defined)
    if not around.is_general or not isinstance(root, ast.Name):
        return False
    if root is not call.func and root.id != "self":
        return _is_imported(root.id, file) is True
    imported = _is_imported(root.id, file)
    is_bound = root.id in file.tree.stored
    return imported or (imported is None and (is_bound or root.id not in _BUILTINS))


def _functions(tree: Tree, name: str) -> list[ast.AST]:
    """The functions and classes of the file with this name."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return [node for node in tree.binding if isinstance(node, kinds) and node.name == name]


def _is_imported(name: str, file: FileFacts) -> bool | None:
    """Whether a name is imported of the project; None where it is not imported at all."""
    for node in file.tree.of(ast.Import, ast.ImportFrom):
        module = getattr(node, "module", None)
        for part in node.names:
            if (part.asname or part.name.partition(".")[0]) == name:
                root = (module or part.name).partition(".")[0]
                return bool(getattr(node, "level", 0)) or root in file.own_roots
    return None
