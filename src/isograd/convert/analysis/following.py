"""Where a value of one file goes: into a module that is being built, or beyond what is known."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from isograd.convert.places import place
from isograd.convert.tree import Tree, is_none, pairs_of

if TYPE_CHECKING:
    from isograd.convert.analysis.carrying import Carrying

_Function = ast.FunctionDef | ast.AsyncFunctionDef
#: Steps after which a question is answered with no.
_MOST_STEPS = 400
_CONSTRUCTORS = ("__init__", "__post_init__")
#: Methods that put a module into the list, the container or the module that they are called on.
_PUTS = frozenset("append extend insert add_module register_module setdefault update".split())
#: Methods of modules that return the module itself.
_RETURNS_ITSELF = frozenset(
    "to cuda cpu float half double bfloat16 type apply requires_grad_ train".split()
)
#: Functions whose result holds what they are given.
_HOLDS = frozenset("list tuple dict OrderedDict zip enumerate reversed deepcopy".split())
_UTILITIES = "torch.nn.utils."
_PARTS = (
    ast.Starred,
    ast.List,
    ast.Tuple,
    ast.Set,
    ast.Dict,
    ast.ListComp,
    ast.SetComp,
    ast.GeneratorExp,
    ast.DictComp,
)


class Walk:
    """One question; it ends at a bounded number of steps."""

    def __init__(self, file: Carrying) -> None:
        self.file = file
        self.steps = 0
        self.known: dict[tuple[str, ast.AST], bool] = {}

    def _ask(self, kind: str, node: ast.AST, ask: Callable[[], bool]) -> bool:
        """An answer, once; yes within a cycle, and no where it takes too long."""
        self.steps += 1
        if self.steps > _MOST_STEPS:
            return False
        if (kind, node) not in self.known:
            self.known[kind, node] = True
            self.known[kind, node] = ask()
        return self.known[kind, node]

    # ---- modules

    def carries(self, node: ast.expr, *, listed: bool = False) -> bool:
        """Whether a value becomes part of a module that is being built.

        listed: whether it is an element of a list, which no module registers.
        """
        kind = "element" if listed else "module"
        return self._ask(kind, node, lambda: self._carries(node, listed))

    def _carries(self, node: ast.expr, listed: bool) -> bool:
        parent = self.file.tree.parents.get(node)
        if isinstance(parent, (ast.IfExp, ast.BoolOp)):
            if isinstance(parent, ast.IfExp) and parent.test is node:
                return False
            return self.carries(parent, listed=listed)
        if isinstance(parent, _PARTS):
            return self.carries(parent, listed=True)
        if isinstance(parent, ast.keyword):
            around = self.file.tree.parents[parent]
            return isinstance(around, ast.Call) and self._given(node, around, listed)
        if isinstance(parent, ast.Call) and node is not parent.func:
            return self._given(node, parent, listed)
        if isinstance(parent, ast.Attribute):
            call = self.file.tree.parents.get(parent)
            is_itself = parent.attr in _RETURNS_ITSELF
            return is_itself and isinstance(call, ast.Call) and self.carries(call, listed=listed)
        if isinstance(parent, (ast.Assign, ast.AnnAssign)):
            targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
            pairs = [pair for one in targets for pair in pairs_of(one, node)]
            return any(self._bound(target, listed) for target, _ in pairs)
        if isinstance(parent, ast.AugAssign):
            return self._held_by(parent.target)
        if isinstance(parent, ast.Return):
            return self._returned(parent)
        if isinstance(parent, ast.For) and parent.iter is node:
            return all(self._bound(one, listed=False) for one in _names(parent.target))
        return False

    def _given(self, node: ast.expr, call: ast.Call, listed: bool) -> bool:
        """Whether the argument of a call becomes part of a module."""
        file, called = self.file, call.func
        api = file.api_of(called)
        if file.is_container(api):
            return True
        if api.startswith(_UTILITIES):
            return self.carries(call, listed=listed)
        if isinstance(called, ast.Attribute):
            if called.attr in _PUTS and not api:
                return self._held_by(called.value)
            if called.attr in _CONSTRUCTORS:
                return self._passed_up(node, call, listed)
        name = getattr(called, "id", getattr(called, "attr", ""))
        if name == "setattr" and file.is_self(call.args[0]):
            return file.is_builder(call) and not listed
        if name in _HOLDS:
            return self.carries(call, listed=True if name != "deepcopy" else listed)
        return self._into_function(node, call, "module", listed)

    def _passed_up(self, node: ast.expr, call: ast.Call, listed: bool) -> bool:
        """`super().__init__(layer)`: to a container of torch's, or to a class of the file."""
        owner = self.file.owner(self.file.tree.function(call))
        if owner is None:
            return False
        apis = [self.file.api_of(base) for base in owner.bases]
        if any(self.file.is_container(api) for api in apis if api != "torch.nn.Module"):
            return True
        names = {getattr(base, "id", "") for base in owner.bases}
        made = [
            one
            for one in self.file.functions.get("__init__", [])
            if getattr(self.file.owner(one), "name", "") in names
        ]
        is_plain = isinstance(getattr(call.func, "value", None), ast.Call)
        return len(made) == 1 and self._parameter(node, call, made[0], is_plain, "module", listed)

    def _into_function(self, node: ast.expr, call: ast.Call, kind: str, listed: bool) -> bool:
        """Whether a function of the file that is given a value does with it what is asked."""
        function, has_self = self._target(call)
        if function is None:
            return False
        return self._parameter(node, call, function, has_self, kind, listed)

    def _target(self, call: ast.Call) -> tuple[_Function | None, bool]:
        """The function of the file that a call runs, and whether its first parameter is bound."""
        file, called = self.file, call.func
        if isinstance(called, ast.Attribute) and file.is_self(called.value):
            found = file.functions.get(called.attr, [])
            return (found[0] if len(found) == 1 and not file.is_taken(called.attr) else None), True
        if not isinstance(called, ast.Name):
            return None, False
        classes = [
            one
            for one in file.functions.get("__init__", [])
            if getattr(file.owner(one), "name", "") == called.id
        ]
        found = [one for one in file.functions.get(called.id, []) if file.owner(one) is None]
        if len(classes) + len(found) != 1:
            return None, False
        return (classes or found)[0], bool(classes)

    def _parameter(
        self,
        node: ast.expr,
        call: ast.Call,
        function: _Function,
        has_self: bool,
        kind: str,
        listed: bool,
    ) -> bool:
        """Whether the parameter that gets an argument does with it what is asked."""
        given = [*function.args.posonlyargs, *function.args.args]
        name = next((part.arg for part in call.keywords if part.value is node), "")
        if not name:
            if any(isinstance(part, ast.Starred) for part in call.args) or node not in call.args:
                return False
            position = call.args.index(node) + has_self
            name = given[position].arg if position < len(given) else ""
        names = {part.arg for part in (*given, *function.args.kwonlyargs)}
        if name not in names:
            return False
        reads = self.file.reads_in(function, name)
        if kind == "class":
            return all(self.is_inside(read) for read in reads)
        return self._all_carried(reads, listed)

    def _bound(self, target: ast.expr, listed: bool) -> bool:
        """Whether what a value is bound to is part of a module, or becomes one."""
        file = self.file
        if isinstance(target, ast.Name):
            if file.tree.is_in_class_body(target):
                return False
            reads = file.reads_in(file.tree.scope(target), target.id)
            return self._all_carried(reads, listed)
        if isinstance(target, ast.Attribute):
            return not listed and _is_of_self(target, file) and file.is_builder(target)
        return isinstance(target, ast.Subscript) and self._held_by(target.value)

    def _all_carried(self, reads: list[ast.Name], listed: bool) -> bool:
        carried = False
        for read in reads:
            if self._is_harmless(read):
                continue
            if not self.carries(read, listed=listed):
                return False
            carried = True
        return carried

    def _is_harmless(self, read: ast.Name) -> bool:
        """Whether a variable is read for its attributes, its length or its truth, or filled."""
        parent = self.file.tree.parents.get(read)
        if isinstance(parent, ast.Attribute):
            around = self.file.tree.parents.get(parent)
            is_called = isinstance(around, ast.Call) and around.func is parent
            return not is_called or parent.attr in _PUTS
        if isinstance(parent, ast.Call) and parent.func is not read:
            return getattr(parent.func, "id", "") in ("len", "isinstance", "range", "id")
        if isinstance(parent, (ast.If, ast.While, ast.Compare, ast.UnaryOp)):
            return True
        if isinstance(parent, ast.IfExp):
            return parent.test is read
        return isinstance(parent, ast.AugAssign) or isinstance(
            getattr(parent, "ctx", None), ast.Store
        )

    def _held_by(self, holder: ast.expr) -> bool:
        """Whether what is put into a list, a container or a module is part of one being built."""
        file = self.file
        while isinstance(holder, ast.Subscript):
            holder = holder.value
        if file.is_self(holder):
            return file.is_builder(holder)
        if isinstance(holder, ast.Attribute) and _is_of_self(holder, file):
            return file.is_builder(holder) and self._is_container(holder)
        if not isinstance(holder, ast.Name):
            return False
        reads = file.reads_in(file.tree.scope(holder), holder.id)
        return self._all_carried(reads, listed=True)

    def _is_container(self, holder: ast.Attribute) -> bool:
        """Whether `self.blocks` is a container of torch's wherever it is set."""
        owner = self.file.owner(self.file.tree.function(holder))
        found = [] if owner is None else self.file.values.get((owner, holder.attr), [])
        calls = [one for one in found if isinstance(one, ast.Call)]
        is_made = all(self.file.is_module_call(one) for one in calls)
        return bool(calls) and is_made and all(one in calls or is_none(one) for one in found)

    def _returned(self, node: ast.Return) -> bool:
        """Whether every call of a function hands what it returns to a module."""
        file = self.file
        function = file.tree.function(node)
        if function is None or file.is_taken(function.name):
            return False
        if any(getattr(part, "id", "") != "staticmethod" for part in function.decorator_list):
            return False
        return self._ask("returned", function, lambda: self._calls_are_carried(function))

    def _calls_are_carried(self, function: _Function) -> bool:
        file = self.file
        reads: list[ast.Name] | list[ast.Attribute]
        if file.owner(function) is not None:
            reads = file.attributes.get(function.name, [])
        else:
            reads = file.loads.get(function.name, [])
        return bool(reads) and all(self._is_carried_call(read) for read in reads)

    def _is_carried_call(self, read: ast.expr) -> bool:
        call = self.file.tree.parents.get(read)
        return isinstance(call, ast.Call) and call.func is read and self.carries(call)

    # ---- classes

    def is_inside(self, node: ast.expr) -> bool:
        """Whether a class that is named here makes nothing but parts of modules."""
        return self._ask("class", node, lambda: self._is_inside(node))

    def _is_inside(self, node: ast.expr) -> bool:
        file, parent = self.file, self.file.tree.parents.get(node)
        if isinstance(parent, ast.Call):
            return self._class_of_call(node, parent)
        if isinstance(parent, ast.keyword):
            around = file.tree.parents[parent]
            return isinstance(around, ast.Call) and self._into_function(
                node, around, "class", False
            )
        if isinstance(parent, ast.Assign) and all(isinstance(t, ast.Name) for t in parent.targets):
            return all(self._variable_is_inside(target) for target in parent.targets)
        if isinstance(parent, ast.arguments):
            return self._default_is_inside(node, parent)
        if isinstance(parent, (ast.IfExp, ast.BoolOp)):
            return (isinstance(parent, ast.IfExp) and parent.test is node) or self.is_inside(parent)
        return is_type(node, parent, file.tree)

    def _class_of_call(self, node: ast.expr, call: ast.Call) -> bool:
        if call.func is node:
            return place(call) in self.file.built or self.carries(call)
        if getattr(call.func, "id", "") in ("isinstance", "issubclass", "super"):
            return True
        return self._into_function(node, call, "class", False)

    def _variable_is_inside(self, target: ast.expr) -> bool:
        file = self.file
        assert isinstance(target, ast.Name)
        if file.tree.is_in_class_body(target):
            reads = file.attributes.get(target.id, [])
            return not file.is_taken(target.id) and all(self.is_inside(one) for one in reads)
        scope = file.tree.scope(target)
        if isinstance(scope, ast.Module) and file.is_taken(target.id):
            return False
        return all(self.is_inside(read) for read in file.reads_in(scope, target.id))

    def _default_is_inside(self, node: ast.expr, arguments: ast.arguments) -> bool:
        """Whether the parameter of which a class is the default makes parts alone."""
        function = self.file.tree.parents.get(arguments)
        if not isinstance(function, _Function):
            return False
        places = [part.arg for part in (*arguments.posonlyargs, *arguments.args)][::-1]
        named = [part.arg for part in arguments.kwonlyargs]
        pairs = [*zip(places, arguments.defaults[::-1], strict=False)]
        pairs += [p for p in zip(named, arguments.kw_defaults, strict=True) if p[1] is not None]  # type: ignore[misc]
        name = next((name for name, value in pairs if value is node), "")
        return all(self.is_inside(read) for read in self.file.reads_in(function, name))


def is_type(node: ast.AST, parent: ast.AST | None, tree: Tree) -> bool:
    """Whether a class is named as a type: a base, an annotation, a test, or for its attributes."""
    if isinstance(parent, (ast.Attribute, ast.Compare)):
        return True
    if isinstance(parent, ast.ClassDef):
        return node in parent.bases
    inner: ast.AST = node
    for part in tree.above(node):
        if isinstance(part, (ast.arg, ast.AnnAssign)):
            return inner is part.annotation
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return inner is part.returns
        if isinstance(part, ast.Call):
            is_test = getattr(part.func, "id", "") in ("isinstance", "issubclass")
            return is_test and inner in part.args[1:]
        if isinstance(part, ast.stmt):
            return False
        inner = part
    return False


def _is_of_self(node: ast.Attribute, file: Carrying) -> bool:
    """`self.a` or `self.a.b`."""
    inner: ast.expr = node
    while isinstance(inner, (ast.Attribute, ast.Subscript)):
        inner = inner.value
    return file.is_self(inner)


def _names(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, (ast.Tuple, ast.List)):
        for one in target.elts:
            yield from _names(one)
    else:
        yield target
