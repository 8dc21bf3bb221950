"""Which of torch's layers a project cannot have as MindSpore's own, and which an expression holds.

A layer is MindSpore's unless something that the project does with it takes torch's class; the
answer names what that is.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from isograd.convert.analysis.attributes import child_added
from isograd.convert.analysis.bound_names import bound_names
from isograd.convert.analysis.just_made import just_made
from isograd.convert.facts import Facts
from isograd.convert.tree import Tree, defaults_of, is_none, is_type_of
from isograd.scan.values import Api

_UTILITIES = "torch.nn.utils."
_PACKING = tuple(
    f"{_UTILITIES}rnn.{name}" for name in ("pack", "PackedSequence", "pad_packed", "unpack")
)
#: Bases that bring no children of their own.
_PLAIN_BASES = frozenset(("torch.nn.Module", "torch.nn.Sequential"))
#: Layers of MindSpore's that take no float64.
_SINGLE = ("torch.nn.PReLU", "torch.nn.BatchNorm1d", "torch.nn.BatchNorm2d")
RECURRENT = frozenset(("torch.nn.RNN", "torch.nn.LSTM", "torch.nn.GRU"))


@dataclass(frozen=True)
class Layers:
    """The layers of a project.

    every: why all layers are the runtime's; empty where they are not.  why: of single classes.
    derived: classes of torch from which the project's own derive.  compared: classes that it
    compares with each other.  used: all that it names.  late: of those that are
    MindSpore's, what these read when they are made and torch's at each call, with the function of
    the runtime that sets it; empty where there is none.  asks_for_classes: whether a function may
    be given a layer's class, and ask whether it is one.  asks_for_instances: whether a layer may be
    asked whether it is an instance of a class that a variable holds.  asks_for_arguments: whether
    a file inspects what it is given, as `inspect.signature` does.  has_modes: whether anything
    is otherwise in training. without_weight: norms that are the runtime's where a call may make
    them without weight and bias.
    """

    every: str = ""
    why: Mapping[str, str] = field(default_factory=dict)
    derived: frozenset[str] = frozenset()
    compared: frozenset[str] = frozenset()
    used: frozenset[str] = frozenset()
    late: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    asks_for_classes: bool = False
    asks_for_instances: bool = False
    has_modes: bool = False
    unfreezes: bool = False
    without_weight: frozenset[str] = frozenset()
    asks_for_arguments: bool = False

    def is_runtime(self, api: str) -> bool:
        """Whether the runtime's class is written for a class of torch wherever it is made."""
        return bool(self.every) or api in self.why

    def set_late(self, name: str, apis: Collection[str]) -> dict[str, str]:
        """The classes of MindSpore's, of these or of all, that do not see an attribute that is set.

        Beside each the function of the runtime that sets it.
        """
        late = {} if self.every else self.late
        return {
            api: late[api][name]
            for api in sorted(apis or late)
            if name in late.get(api, ()) and api not in self.why
        }


def layers_of(
    facts: Iterable[Facts],
    settings: Mapping[str, Mapping[str, str]],
    read: Mapping[str, str] | None = None,
) -> Layers:
    """The decisions for a project, from the facts of all of its files.

    settings: as `Knowledge.layer_settings`.  read: why more classes are the runtime's.
    """
    found = list(facts)
    used: set[str] = set().union(*(one.apis for one in found))
    replaced = set().union(*(one.reparametrized for one in found))
    why = {
        api: "it is called by the names of torch's arguments"
        for one in found
        for api in one.named_calls
        if api
    }
    otherwise = set().union(*(one.made_otherwise for one in found))
    why |= dict.fromkeys(otherwise, "it is made with an argument that MindSpore's has not")
    if any(one.makes_doubles for one in found):
        why |= dict.fromkeys(_SINGLE, "MindSpore's takes no float64, which the project asks for")
    why |= dict.fromkeys(replaced, "a function of torch's replaces its parameters, by their names")
    why |= _changed_later(found, used, settings)
    why |= read or {}
    packing = next((api for api in sorted(used) if api.startswith(_PACKING)), "")
    if packing:
        why |= dict.fromkeys(RECURRENT, f"{packing} takes recurrent layers of torch's shape")
    derived = frozenset(
        base.name
        for one in found
        for info in one.classes.values()
        for base in info.bases
        if isinstance(base, Api)
    )
    return Layers(
        _of_every(found, replaced),
        why,
        derived,
        frozenset().union(*(one.compared for one in found)),
        frozenset(used),
        {api: settings[api] for api in sorted(used - why.keys()) if api in settings},
        _asks_for_classes(found),
        any(one.asking.of_variables for one in found),
        any(one.has_modes or one.modes_read for one in found),
        any(one.unfreezes for one in found),
        asks_for_arguments=any(one.asking.inspects for one in found),
    )


def _asks_for_classes(found: Iterable[Facts]) -> bool:
    """Whether a function that asks is given what may be a class, or not called by its name."""
    asking = frozenset().union(*(one.asking.functions for one in found))
    calls = set().union(*(one.calls for one in found)) if asking else set()
    return any((name, True) in calls or (name, False) not in calls for name in asking)


def _changed_later(
    found: Iterable[Facts], used: Collection[str], settings: Mapping[str, Mapping[str, str]]
) -> dict[str, str]:
    """Why layers whose settings are set after they are made are the runtime's, by class."""
    return {
        api: f"its {made.name} is set after it is made, which MindSpore's does not see"
        for one in found
        for made in one.sets.values()
        if made.owner is not None
        for api in ((made.owner,) if made.owner else used)
        if made.name in settings.get(api, ())
        if not (made.is_number and settings[api][made.name])
    }


def _of_every(found: Iterable[Facts], replaced: Collection[str]) -> str:
    """Why all layers of a project are the runtime's; empty where they are not."""
    if "" in replaced:
        return "a function of torch's replaces parameters of layers that are not known"
    if any("" in one.named_calls for one in found):
        return "layers that are not known are called by the names of torch's arguments"
    if any(one.reads_private for one in found):
        return "the dictionaries in which torch's modules keep their parameters are read"
    return ""


@dataclass(frozen=True)
class Held:
    """Finds the classes of torch of which an expression of a file holds an instance.

    named, bound: as `FileEdit.named` and `FileEdit.attribute_values`.  What shows it: an isinstance
    around the place, a statement right before that binds it to a call of one, or that everything
    bound to it is a call of them.  A class that a parameter
    brings counts as the one that it has by default: another one's instance has other names, and
    asking it raises AttributeError.
    """

    tree: Tree
    named: Mapping[ast.AST, str]
    bound: Mapping[tuple[ast.AST, str], list[ast.expr]]
    #: The attributes of the classes that were asked for, as `_bound_otherwise` gives them.
    _otherwise: dict[ast.ClassDef, set[str]] = field(default_factory=dict)
    _classes: dict[ast.expr, frozenset[str]] = field(default_factory=dict)

    def classes(self, node: ast.expr) -> frozenset[str]:
        """The classes; empty where others may be."""
        if node not in self._classes:
            self._classes[node] = self._read(node) if is_path(node) else frozenset()
        return self._classes[node]

    def _read(self, node: ast.expr) -> frozenset[str]:
        found = self._apis(self.tested(node))
        if found:
            return found
        made = just_made(node, self.tree)
        found = frozenset() if made is None else self._made(self._behind(made))
        if found:
            return found
        if isinstance(node, ast.Name):
            values = bound_locally(node, self.tree) or self._child(node)
            return self._made([part for value in values for part in self._behind(value)])
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return self._made(self._values_of_attribute(node, node.value))
        return frozenset()

    def _values_of_attribute(self, node: ast.Attribute, owner: ast.Name) -> list[ast.expr]:
        """What `self.name`, or `m.name` behind an isinstance of a class here, is bound to."""
        classes: list[ast.ClassDef] = []
        if owner.id == "self":
            classes = [up for up in self.tree.above(node) if isinstance(up, ast.ClassDef)][:1]
        else:
            names = {getattr(part, "id", "") for part in self.tested(owner)}
            own = {one.name: one for one in self.tree.of(ast.ClassDef)}
            classes = [*(own[name] for name in names if name in own)]
            if len(classes) != len(names):
                return []
        if any(node.attr in self._bound_otherwise(one) for one in classes):
            return []
        return [value for one in classes for value in self.bound.get((one, node.attr), [])]

    def _bound_otherwise(self, owner: ast.ClassDef) -> set[str]:
        if owner not in self._otherwise:
            self._otherwise[owner] = _bound_otherwise(self.tree.walked(owner))
        return self._otherwise[owner]

    def _behind(self, value: ast.expr) -> list[ast.expr]:
        """What `self.conv` is bound to, where a name takes it; else the value."""
        if isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name):
            return self._values_of_attribute(value, value.value) or [value]
        return [value]

    def _child(self, node: ast.Name) -> list[ast.expr]:
        """What `c, bn = self._modules.values()` binds to a name, as the constructor adds it."""
        function = self.tree.function(node)
        owner = self.tree.parents.get(function) if function is not None else None
        if function is None or not isinstance(owner, ast.ClassDef):
            return []
        if bound_names(function, self.tree).stores[node.id] != 1:
            return []
        stores = [
            part
            for part in self.tree.walked(function)
            if isinstance(part, ast.Name) and part.id == node.id and isinstance(part.ctx, ast.Store)
        ]
        target = self.tree.parents.get(stores[0]) if stores else None
        taken = None if target is None else self.tree.parents.get(target)
        if not isinstance(target, ast.Tuple) or not isinstance(taken, ast.Assign):
            return []
        if not all(self.named.get(base, "") in _PLAIN_BASES for base in owner.bases):
            return []
        children = _children_in_order(owner) if _is_all_children(taken.value) else []
        if len(children) != len(target.elts):
            return []
        return [children[target.elts.index(stores[0])]]

    def _made(self, values: Collection[ast.expr]) -> frozenset[str]:
        found: set[str] = set()
        for value in values:
            if is_none(value):
                continue
            classes = self._classes_called(value) if isinstance(value, ast.Call) else frozenset()
            if not classes:
                return frozenset()
            found |= classes
        return frozenset(found)

    def _classes_called(self, call: ast.Call) -> frozenset[str]:
        """The class that a call calls: by its name, or by a variable that holds classes alone."""
        if call.func in self.named:
            return frozenset((self.named[call.func],))
        function = self.tree.function(call)
        if not isinstance(call.func, ast.Name) or function is None:
            return frozenset()
        values = list(bound_names(function, self.tree).values.get(call.func.id, ()))
        values += [value for value in (defaults_of(function).get(call.func.id),) if value]
        apis = {self.named.get(value, "") for value in values if not is_none(value)}
        return frozenset() if "" in apis else frozenset(apis)

    def _apis(self, classes: Collection[ast.expr]) -> frozenset[str]:
        apis = {self.named.get(part, "") for part in classes}
        return frozenset() if "" in apis else frozenset(apis)

    def tested(self, node: ast.expr) -> list[ast.expr]:
        """The classes of an `isinstance(node, …)` that holds where an expression is read."""
        up: ast.AST = node
        for part in self.tree.above(node):
            for test in _tests_before(up, part):
                found = self._classes_of_test(test, node)
                if found:
                    return found
            if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                break
            up = part
        return []

    def _classes_of_test(self, test: ast.expr, node: ast.expr) -> list[ast.expr]:
        """The classes in `isinstance(name, (A, B))`, `type(name) is A` or either of such tests.

        Also in `kind is A`, where `kind = type(name)`.
        """
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
            found = [self._classes_of_test(value, node) for value in test.values]
            return [part for one in found for part in one] if all(found) else []
        if isinstance(test, ast.Call) and getattr(test.func, "id", "") == "isinstance":
            if len(test.args) == 2 and ast.unparse(test.args[0]) == ast.unparse(node):
                return _parts(test.args[1])
        elif isinstance(test, ast.Compare) and len(test.ops) == 1:
            left = test.left
            kinds = bound_locally(left, self.tree) if isinstance(left, ast.Name) else [left]
            if not kinds or not all(map(is_type_of, kinds)):
                return []
            subjects = {ast.unparse(_subject(kind)) for kind in kinds}
            if subjects == {ast.unparse(node)} and isinstance(
                test.ops[0], (ast.Eq, ast.Is, ast.In)
            ):
                return _parts(test.comparators[0])
        return []


def _subject(kind: ast.expr) -> ast.expr:
    """`x` of `type(x)` and of `x.__class__`."""
    return kind.args[0] if isinstance(kind, ast.Call) else kind.value  # type: ignore[attr-defined]


def is_path(node: ast.expr) -> bool:
    """`a.b.c`, which costs nothing to read again."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _is_all_children(node: ast.expr) -> bool:
    """`self._modules.values()` or `self.children()`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return ast.unparse(node.func) in ("self._modules.values", "self.children")


def _children_in_order(owner: ast.ClassDef) -> list[ast.expr]:
    """The modules that a constructor adds by their names alone, in order; none if it has others."""
    found: list[ast.expr] = []
    for part in owner.body:
        for inner in ast.walk(part):
            is_attribute = isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store)
            if is_attribute and getattr(inner.value, "id", "") == "self":  # type: ignore[attr-defined]
                return []
        if isinstance(part, ast.FunctionDef) and part.name == "__init__":
            calls = [one.value for one in part.body if isinstance(one, ast.Expr)]
            found = [child[1] for call in calls if (child := child_added(call)) is not None]
    added = sum(child_added(part) is not None for part in ast.walk(owner))
    return found if added == len(found) else []


def _bound_otherwise(nodes: list[ast.AST]) -> set[str]:
    """The attributes bound by more than plain assignments: loops, `with`, unpacking.

    nodes: of the class.
    """
    plain = {
        id(target)
        for statement in nodes
        if isinstance(statement, (ast.Assign, ast.AnnAssign))
        for target in getattr(statement, "targets", [getattr(statement, "target", None)])
    }
    return {
        part.attr
        for part in nodes
        if isinstance(part, ast.Attribute)
        and isinstance(part.ctx, ast.Store)
        and id(part) not in plain
    }


def bound_locally(node: ast.Name, tree: Tree) -> list[ast.expr]:
    """All values of a name in its function; none where anything but an assignment binds it."""
    bound = bound_names(tree.function(node) or tree.module, tree)
    values = bound.values.get(node.id, [])
    is_all = bound.stores[node.id] == len(values) and node.id not in bound.arguments
    return list(values) if is_all else []


def _tests_before(inner: ast.AST, part: ast.AST) -> list[ast.expr]:
    """What is true where `inner`, right below `part`, is evaluated."""
    if isinstance(part, (ast.If, ast.While)) and inner in part.body:
        return _conjuncts(part.test)
    if isinstance(part, ast.IfExp) and inner is part.body:
        return _conjuncts(part.test)
    if isinstance(part, ast.BoolOp) and isinstance(part.op, ast.And):
        before = part.values[: next(i for i, value in enumerate(part.values) if value is inner)]
        return [one for value in before for one in _conjuncts(value)]
    if isinstance(part, (ast.ListComp, ast.GeneratorExp, ast.SetComp)) and inner is part.elt:
        return [one for loop in part.generators for value in loop.ifs for one in _conjuncts(value)]
    return []


def _conjuncts(test: ast.expr) -> list[ast.expr]:
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return [part for value in test.values for part in _conjuncts(value)]
    return [test]


def _parts(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return [part for item in node.elts for part in _parts(item)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return [*_parts(node.left), *_parts(node.right)]
    return [node]
