"""Whether a module that is being built takes one that exists, and may be in inference.

torch's modules keep the mode of what they are handed.  `set_train()` of the whole would change it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, replace

from isograd.convert.analysis.carrying import Carrying
from isograd.convert.places import Place, place
from isograd.convert.tree import Tree, defaults_of, pairs_of
from isograd.scan.values import Api, ClassInfo, Foreign, FunctionInfo, Items, Plain, Tensor, Value

#: Calls of torch's that keep the modules which they are given.
KEEPING = frozenset(
    f"torch.nn.{name}"
    for name in """Sequential ModuleList ModuleDict DataParallel
    parallel.DistributedDataParallel TransformerEncoder TransformerDecoder""".split()
)
_LAYERS = "torch.nn."
#: Layers that take modules, or functions that may be some.
_MAY_KEEP = "torch.nn.Transformer"
#: Slots of a constructor for what has no name in it, and for what may be anywhere.
MORE = "*"
_NAMED = "**"
_PLAIN_TYPES = frozenset("int float str bool bytes".split())
_PUTS = frozenset("append extend insert add_module register_module".split())
#: Methods of what holds data.
_OF_DATA = frozenset(dir(dict)) | frozenset(dir(str)) | frozenset(dir(list))
#: What goes through its arguments.
_THROUGH = frozenset("enumerate zip reversed list".split())
_COLLECTING = frozenset("OrderedDict dict list tuple set reversed zip".split())
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_DISPLAYS = (ast.Tuple, ast.List, ast.Set, ast.Dict, ast.Starred)
#: The names without which no text sets a mode.
MODES = ("eval", "train")


@dataclass(frozen=True)
class Constructor:
    """What a class's constructor makes parts of the module, as far as they are modules.

    names: of its parameters behind the first, in their order.  by_name: those without a place.
    keeps: those that become parts; `*` and `**` for what none of them takes.  hands: those that
    the base's constructor takes, each with its place or name there.  inherits: there is no own one.
    """

    names: tuple[str, ...] = ()
    by_name: frozenset[str] = frozenset()
    keeps: frozenset[str] = frozenset()
    hands: frozenset[tuple[str, int | str]] = frozenset()
    inherits: bool = False

    def keeps_in(self, slot: int | str) -> bool:
        """Whether what a call gives in a place, by a name, or in `*` somewhere, becomes a part."""
        if slot == MORE:
            return bool(self.keeps)
        if isinstance(slot, int):
            return (self.names[slot] if slot < len(self.names) else MORE) in self.keeps
        is_own = slot in self.names or slot in self.by_name
        return (slot if is_own else _NAMED) in self.keeps


NOTHING = Constructor()
#: Of a class of which nothing is known.
ANYTHING = Constructor(keeps=frozenset((MORE, _NAMED)))


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


def constructors_of(
    carrying: Carrying, classes: Mapping[Place, ClassInfo]
) -> dict[ClassInfo, Constructor]:
    """The constructors of the modules that a file defines; classes: the file's."""
    carrying = replace(carrying, is_taken=lambda name: False)  # methods that only build are its own
    found: dict[ClassInfo, Constructor] = {}
    for node in carrying.tree.of(ast.ClassDef):
        made = [part for part in node.body if getattr(part, "name", "") == "__init__"]
        if not carrying.is_module(node) or place(node) not in classes:
            continue
        own = made[0] if made else None
        if len(made) == 1 and isinstance(own, ast.FunctionDef):
            found[classes[place(node)]] = _constructor(own, carrying)
        elif not made and not node.decorator_list and not node.keywords:
            found[classes[place(node)]] = Constructor(inherits=True)
    return found


def constructor_of(
    value: Value, constructors: Mapping[ClassInfo, Constructor], derived: tuple[Value, ...] = ()
) -> Constructor:
    """What a class keeps, what its bases keep included; derived: the classes that ask for it."""
    if isinstance(value, Api):
        is_layer = value.name.startswith(_LAYERS) and not value.name.startswith(_MAY_KEEP)
        return NOTHING if is_layer and value.name not in KEEPING else ANYTHING
    if not isinstance(value, ClassInfo) or value in derived:
        return ANYTHING
    own = constructors.get(value)
    if own is None:
        is_mixed_in = not value.is_module and not value.bases and "__init__" not in value.methods
        return NOTHING if is_mixed_in else ANYTHING
    if not own.inherits and not own.hands:
        return own
    bases = [constructor_of(base, constructors, (*derived, value)) for base in value.bases]
    if not own.inherits:
        handed = {name for name, slot in own.hands if any(base.keeps_in(slot) for base in bases)}
        return replace(own, keeps=own.keeps | handed, hands=frozenset())
    if len(bases) == 1:
        return bases[0]
    return ANYTHING if any(base.keeps for base in bases) else NOTHING


def _constructor(function: ast.FunctionDef, carrying: Carrying) -> Constructor:
    given = function.args
    places = [part.arg for part in (*given.posonlyargs, *given.args)][1:]
    by_name = {part.arg for part in given.kwonlyargs}
    defaults = defaults_of(function)
    named = {
        part.arg: part.arg
        for part in (*given.posonlyargs, *given.args, *given.kwonlyargs)
        if part.arg in by_name.union(places)
        if not _is_said(part, defaults.get(part.arg))
    }
    named |= {part.arg: MORE for part in (given.vararg,) if part is not None}
    named |= {part.arg: _NAMED for part in (given.kwarg,) if part is not None}
    keeps, hands = set[str](), set[tuple[str, int | str]]()
    for node in carrying.tree.walked(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in named:
            outer = _outermost(node, carrying)
            slot = None if outer is None else _slot_of_base(outer, carrying)
            if slot is not None:
                hands.add((named[node.id], slot))
            elif outer is not None and _is_kept(outer, carrying):
                keeps.add(named[node.id])
    return Constructor(tuple(places), frozenset(by_name), frozenset(keeps), frozenset(hands))


def _outermost(node: ast.expr, carrying: Carrying) -> ast.expr | None:
    """The expression whose value is, or holds, that of a name; None for a mere condition."""
    while True:
        parent = carrying.tree.parents[node]
        holder = carrying.tree.parents[parent] if isinstance(parent, ast.keyword) else parent
        if isinstance(holder, ast.IfExp) and holder.test is node:
            return None
        is_collected = isinstance(holder, ast.Call) and node is not holder.func
        if is_collected and getattr(holder.func, "id", "") not in _COLLECTING:  # type: ignore[attr-defined]
            return node
        if not is_collected and not isinstance(holder, (*_DISPLAYS, ast.IfExp, ast.BoolOp)):
            return node
        assert isinstance(holder, ast.expr)
        node = holder


def _slot_of_base(node: ast.expr, carrying: Carrying) -> int | str | None:
    """Where the base's constructor takes a value: `super().__init__(width, net=node)`."""
    parent = carrying.tree.parents[node]
    keyword = parent if isinstance(parent, ast.keyword) else None
    call = carrying.tree.parents[parent] if keyword is not None else parent
    if not isinstance(call, ast.Call) or getattr(call.func, "attr", "") != "__init__":
        return None
    assert isinstance(call.func, ast.Attribute)
    owner = call.func.value
    if not isinstance(owner, ast.Call) or getattr(owner.func, "id", "") != "super":
        return None
    if keyword is not None:
        return keyword.arg or MORE
    before = call.args[: call.args.index(node) + 1]
    return MORE if any(isinstance(one, ast.Starred) for one in before) else len(before) - 1


def _is_kept(node: ast.expr, carrying: Carrying) -> bool:
    """Whether what a constructor is given becomes a part of the module, itself or in a list."""
    parent = carrying.tree.parents[node]
    if isinstance(parent, ast.keyword):
        parent = carrying.tree.parents[parent]
    if isinstance(parent, ast.Assign):
        pairs = [pair for target in parent.targets for pair in pairs_of(target, parent.value)]
        names = {target.attr for target, _ in pairs if isinstance(target, ast.Attribute)}
        return any(_is_run(name, carrying) for name in names)
    return (
        isinstance(parent, ast.Call) and node is not parent.func and _keeps(node, parent, carrying)
    )


def _keeps(node: ast.expr, call: ast.Call, carrying: Carrying) -> bool:
    """Whether a call within a constructor makes what it is given a part of the module."""
    if getattr(call.func, "id", "") == "setattr":
        return node not in call.args[:2]
    if carrying.api_of(call.func) in KEEPING:
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
    taken = None
    if isinstance(parent, ast.Call):
        if parent.func is inner:
            return True
        called = getattr(parent.func, "id", "")
        if called not in _THROUGH:
            return False
        taken = parent.args.index(inner) if called == "zip" else None  # type: ignore[arg-type]
        inner, parent = parent, tree.parents[parent]
    if not isinstance(parent, (ast.For, ast.comprehension)) or parent.iter is not inner:
        return False
    target = parent.target
    if taken is not None and isinstance(target, ast.Tuple):
        target = next(iter(target.elts[taken : taken + 1]), target)
    return not isinstance(target, ast.Name) or not _is_ordered(target.id, parent, tree)


def _is_ordered(name: str, loop: ast.AST, tree: Tree) -> bool:
    """Whether a loop only asks which of two of its items is greater, which modules refuse."""
    is_ordered = False
    for part in tree.walked(loop if isinstance(loop, ast.For) else tree.parents[loop]):
        if isinstance(part, ast.Call) and getattr(part.func, "id", "") == name:
            return False
        if isinstance(part, ast.Compare) and isinstance(part.ops[0], _ORDER):
            is_ordered |= name in {
                getattr(one, "id", "") for one in (part.left, part.comparators[0])
            }
    return is_ordered


def _is_said(parameter: ast.arg, default: ast.expr | None) -> bool:
    """Whether the annotation or the default of a parameter says that it is no module."""
    if getattr(parameter.annotation, "id", "") in _PLAIN_TYPES:
        return True
    parts = [default] if not isinstance(default, (ast.Tuple, ast.List)) else default.elts
    return bool(parts) and all(
        isinstance(part, (ast.UnaryOp, ast.Constant)) and getattr(part, "value", 0) is not None
        for part in parts
    )
