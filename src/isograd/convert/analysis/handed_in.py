"""Whether a module that is being built takes one that exists, and may be in inference.

torch's modules keep the mode of what they are handed.  `set_train()` of the whole would change it.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from isograd.convert.analysis.carrying import Carrying
from isograd.convert.tree import Tree, defaults_of, pairs_of
from isograd.scan.values import Api, ClassInfo, Foreign, FunctionInfo, Items, Plain, Tensor, Value

#: Calls of torch's that keep the modules which they are given.
KEEPING = frozenset(
    f"torch.nn.{name}"
    for name in """Sequential ModuleList ModuleDict DataParallel
    parallel.DistributedDataParallel TransformerEncoder TransformerDecoder""".split()
)
_PLAIN_TYPES = frozenset("int float str bool bytes".split())
_PUTS = frozenset("append extend insert add_module register_module".split())
#: Methods of what holds data.
_OF_DATA = frozenset(dir(dict)) | frozenset(dir(str)) | frozenset(dir(list))
#: What goes through its arguments.
_THROUGH = frozenset("enumerate zip reversed list".split())
_DISPLAYS = (ast.Tuple, ast.List, ast.Set, ast.Dict, ast.Starred)
#: The names without which no text sets a mode.
MODES = ("eval", "train")


@dataclass(frozen=True)
class Constructor:
    """The parameters of a class's constructor behind the first.

    names: in their order; empty where classes of one name have others.  keeps: those that become
    parts of the module, as far as they are modules.
    """

    names: tuple[str, ...] = ()
    keeps: frozenset[str] = frozenset()


def may_leave_training(tree: Tree) -> bool:
    """Whether a file names something that may set a module to inference."""
    if any(node.attr == "eval" for node in tree.of(ast.Attribute)):
        return True
    return any(
        getattr(part, "value", None) is not True
        for node in tree.of(ast.Call)
        if getattr(node.func, "attr", "") == "train"
        for part in (*node.args, *(keyword.value for keyword in node.keywords))
    )


def is_no_module(value: Value) -> bool:
    """Whether a value neither is a module nor holds one."""
    if isinstance(value, Items):
        return value.item is not None and is_no_module(value.item)
    return isinstance(value, (Tensor, Plain, Api, Foreign, ClassInfo, FunctionInfo))


def constructors_of(carrying: Carrying) -> dict[str, Constructor]:
    """The constructors of the modules that a file defines, by the names of their classes."""
    carrying = replace(carrying, is_taken=lambda name: False)  # methods that only build are its own
    found: dict[str, Constructor] = {}
    for node in carrying.tree.of(ast.ClassDef):
        made = [part for part in node.body if getattr(part, "name", "") == "__init__"]
        if len(made) == 1 and isinstance(made[0], ast.FunctionDef) and carrying.is_module(node):
            found[node.name] = together(found.get(node.name), _constructor(made[0], carrying))
    return found


def together(one: Constructor | None, other: Constructor) -> Constructor:
    """The constructor of either of two classes of one name."""
    return other if one is None else Constructor((), one.keeps | other.keeps)


def _constructor(function: ast.FunctionDef, carrying: Carrying) -> Constructor:
    places = [part.arg for part in (*function.args.posonlyargs, *function.args.args)][1:]
    defaults = defaults_of(function)
    named = {
        part.arg
        for part in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
        if not _is_said(part, defaults.get(part.arg))
    }
    keeps = {
        node.id
        for node in carrying.tree.walked(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in named
        if _is_kept(node, carrying)
    }
    return Constructor(tuple(places), frozenset(keeps))


def _is_kept(node: ast.expr, carrying: Carrying) -> bool:
    """Whether what a constructor is given becomes a part of the module, itself or in a list."""
    parent = carrying.tree.parents[node]
    while isinstance(parent, (*_DISPLAYS, ast.IfExp, ast.BoolOp, ast.keyword)):
        if isinstance(parent, ast.IfExp) and parent.test is node:
            return False
        node, parent = parent, carrying.tree.parents[parent]  # type: ignore[assignment]
    if isinstance(parent, ast.Assign):
        pairs = [pair for target in parent.targets for pair in pairs_of(target, parent.value)]
        names = {target.attr for target, _ in pairs if isinstance(target, ast.Attribute)}
        return any(_is_run(name, carrying) for name in names)
    return isinstance(parent, ast.Call) and node is not parent.func and _keeps(parent, carrying)


def _keeps(call: ast.Call, carrying: Carrying) -> bool:
    """Whether a call within a constructor makes what it is given a part of the module."""
    if carrying.api_of(call.func) in KEEPING or getattr(call.func, "id", "") == "setattr":
        return True
    called = getattr(call.func, "attr", "")
    return called in _PUTS or called == "__init__"


def _is_run(attribute: str, carrying: Carrying) -> bool:
    """Whether more than what builds modules calls an attribute of this name, or goes through it."""
    return any(
        carrying.function(node) not in carrying.building and _runs(node, carrying.tree)
        for node in carrying.attributes.get(attribute, ())
    )


def _runs(node: ast.expr, tree: Tree) -> bool:
    """`self.net(x)`, `self.layers[i](x)`, `self.net.features(x)`, `for layer in self.layers`."""
    inner: ast.AST = node
    parent = tree.parents[inner]
    while isinstance(parent, ast.Subscript) and parent.value is inner:
        inner, parent = parent, tree.parents[parent]
    if isinstance(parent, ast.Attribute):
        inner, parent = parent, tree.parents[parent]
        if inner.attr in _OF_DATA:
            return False
    if isinstance(parent, ast.Call):
        if parent.func is inner:
            return True
        if getattr(parent.func, "id", "") not in _THROUGH:
            return False
        inner, parent = parent, tree.parents[parent]
    return isinstance(parent, (ast.For, ast.comprehension)) and parent.iter is inner


def _is_said(parameter: ast.arg, default: ast.expr | None) -> bool:
    """Whether the annotation or the default of a parameter says that it is no module."""
    if getattr(parameter.annotation, "id", "") in _PLAIN_TYPES:
        return True
    parts = [default] if not isinstance(default, (ast.Tuple, ast.List)) else default.elts
    return bool(parts) and all(
        isinstance(part, (ast.UnaryOp, ast.Constant)) and getattr(part, "value", 0) is not None
        for part in parts
    )
