"""`self.m = x * 2` in a pass that reads it: the static graph reads what was there before it ran."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from isograd.convert.analysis.kept_on_self import OwnReads, attributes_of_self, own_reads
from isograd.convert.file import FileEdit
from isograd.convert.model import Level
from isograd.convert.passes.example import Example
from isograd.convert.passes.module_contents import registered_buffers
from isograd.convert.passes.order import Stage
from isograd.convert.passes.reach_of_writes import called_by_forward, is_in_forward
from isograd.convert.spelling import COMPOSITES
from isograd.convert.tree import is_none
from isograd.knowledge.rewrite import PACKAGES
from isograd.scan.values import Api

_ADVICE = (
    "Run this class eagerly, or hand the value on as an argument and a result; what lasts from one "
    "call to the next may be a buffer."
)
_LEARNS = frozenset(("torch.nn.Parameter", "torch.nn.parameter.Parameter"))
#: Methods by which a class says itself what its attributes are.
_OWN = ("__setattr__", "__getattr__", "__getattribute__")


class KeptOnSelf:
    """Attributes that a pass binds and reads: by a name, or reported where it bound them later."""

    kinds = (ast.Attribute, ast.Tuple, ast.List, ast.ClassDef)
    stage = Stage.EARLY
    examples = (
        Example(
            "read in the method that binds it",
            """
            class Net(nn.Module):
                def forward(self, x):
                    self.mean = x.mean()
                    return x - self.mean
            """,
        ),
        Example(
            "read in a later call, or in another method",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.last = torch.zeros(3)

                def add(self, x):
                    self.last = self.last + x

                def forward(self, x):
                    self.add(x)
                    return self.last
            """,
        ),
    )
    counterexamples = (
        Example(
            "kept for others",
            """
            class Net(nn.Module):
                def forward(self, x):
                    y = torch.softmax(x, -1)
                    self.weights = y
                    return y * x
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Read a name, which is bound beside the attribute; report what else a pass keeps."""
        if isinstance(node, ast.ClassDef):
            if file.settings.compiles_steps or not file.settings.records_gradients:
                _tell(node, file)  # else the project runs eagerly anyway
            return False
        assert isinstance(node, ast.expr)
        method = file.tree.function(node)
        names = {} if method is None else _names_of(method, file)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            for name, found in names.items():
                if node.attr == name and any(read is node for read in found.reads):
                    file.replace(node, _name(name, file))
                    return True
            return False
        bound = {name for name, found in names.items() if any(t is node for t in found.targets)}
        if bound:
            file.replace(node, f"{_as_names(node, bound, file)} = {file.source(node)}")
        return False


def _name(attribute: str, file: FileEdit) -> str:
    """The name that is read in place of an attribute; nothing else of the port has it."""
    is_other = hasattr(builtins, attribute) or attribute in (*PACKAGES, COMPOSITES, "compat")
    return file.spelling.unused(f"{attribute}_" if is_other else attribute)


def _as_names(target: ast.expr, bound: set[str], file: FileEdit) -> str:
    """A target with names in place of attributes; one that nothing reads takes the others."""
    if not isinstance(target, (ast.Tuple, ast.List)):
        assert isinstance(target, ast.Attribute)
        return _name(target.attr, file)
    other = file.spelling.unused("_")
    parts = [
        _name(part.attr, file)
        if isinstance(part, ast.Attribute) and part.attr in bound
        else (f"*{other}" if isinstance(part, ast.Starred) else other)
        for part in target.elts
    ]
    return ", ".join(parts) + ("," if len(parts) == 1 else "")


def _names_of(method: ast.AST, file: FileEdit) -> dict[str, OwnReads]:
    """The attributes that a method of a pass reads as names, with where."""
    owner = file.tree.parents.get(method)
    if not isinstance(method, ast.FunctionDef) or not isinstance(owner, ast.ClassDef):
        return {}
    if method not in file.kept_names:
        found = file.kept_names[method] = {}
        for name in _bound_in(method) if _is_pass(method, file) else ():
            reads = own_reads(method, name, file.tree.parents.get)
            if reads is not None and _is_plain(name, owner, method, file):
                found[name] = reads
    return file.kept_names[method]


def _bound_in(method: ast.FunctionDef) -> set[str]:
    return {n.attr for n in attributes_of_self(method) if isinstance(n.ctx, ast.Store)}


def _is_pass(method: ast.FunctionDef, file: FileEdit) -> bool:
    info = file.class_info(file.tree.parents[method])
    if info is None or not info.is_module or not is_in_forward(method.body[0], file):
        return False
    owner = file.tree.parents[method]
    assert isinstance(owner, ast.ClassDef)
    known = _bases(owner, file)
    return known is None or any(method.name in called_by_forward(one) for one in _running(known))


def _running(classes: list[ast.ClassDef]) -> list[ast.ClassDef]:
    """The classes that say what runs in a pass."""
    return [one for one in classes if any(m.name == "forward" for m in _methods(one))]


def _is_plain(name: str, owner: ast.ClassDef, method: ast.FunctionDef, file: FileEdit) -> bool:
    """Whether an attribute is what this method bound to it last, whatever it calls between."""
    bases = _bases(owner, file)
    if bases is None or any(_is_registered(name, one, file) for one in bases):
        return False
    for relative in (*bases, *_derived(owner, file)):
        for other in _methods(relative):
            if other.name in (name, *_OWN):
                return False
            if other is not method and name in _bound_in(other) and _is_pass(other, file):
                return False
    return True


def _is_registered(name: str, owner: ast.ClassDef, file: FileEdit) -> bool:
    values = file.attribute_values.get((owner, name), [])
    if any(file.api_of_call(value) in _LEARNS for value in values if not is_none(value)):
        return True
    return name in registered_buffers(owner, file)


def _bases(owner: ast.ClassDef, file: FileEdit) -> list[ast.ClassDef] | None:
    """A class and all that it is derived from in its file; None where a base is not known."""
    found = [owner]
    for one in found:
        info = file.class_info(one)
        for base in () if info is None else info.bases:
            own = (other for other in file.tree.of(ast.ClassDef) if file.class_info(other) is base)
            node = None if isinstance(base, Api) else next(own, None)
            if node is not None:
                found.append(node)
            elif not isinstance(base, Api):
                return None
    return found


def _derived(owner: ast.ClassDef, file: FileEdit) -> Iterator[ast.ClassDef]:
    info = file.class_info(owner)
    for other in file.tree.of(ast.ClassDef):
        own = file.class_info(other)
        if own is not None and any(base is info for base in own.bases):
            yield other
            yield from _derived(other, file)


def _methods(owner: ast.ClassDef) -> list[ast.FunctionDef]:
    return [part for part in owner.body if isinstance(part, ast.FunctionDef)]


def _tell(owner: ast.ClassDef, file: FileEdit) -> None:
    """Report attributes that a pass binds, and reads where no name can take their place."""
    methods = [part for part in _methods(owner) if _is_pass(part, file)]
    read: set[str] = set()
    for part in methods:
        by_name = _names_of(part, file)
        for node in attributes_of_self(part):
            is_read = isinstance(node.ctx, ast.Load) or _is_augmented(node, file)
            if is_read and not any(node is one for n in by_name.values() for one in n.reads):
                read.add(node.attr)
    kept: dict[str, ast.Attribute] = {}
    for part in methods:
        for node in attributes_of_self(part):
            if isinstance(node.ctx, ast.Store) and node.attr in read:
                relatives = _bases(owner, file) or [owner]
                if not any(_is_registered(node.attr, one, file) for one in relatives):
                    kept.setdefault(node.attr, node)
    if kept:
        message = (
            f"a pass of {owner.name} keeps and reads {', '.join(sorted(kept))}: under jit and in "
            "GRAPH_MODE it reads what was there when it was compiled"
        )
        first = min(kept.values(), key=lambda node: (node.lineno, node.col_offset))
        file.finding(first, "kept-on-self", message, _ADVICE, level=Level.LOOK)


def _is_augmented(node: ast.AST, file: FileEdit) -> bool:
    return isinstance(file.tree.parents.get(node), ast.AugAssign)
