"""Whether a project reads the names, the order or the number of what a `state_dict()` holds.

One that is saved, copied, returned, or given to `load_state_dict` may have MindSpore's names.  As
soon as one is read, all of the project have torch's: a program compares them with each other.
"""

from __future__ import annotations

import ast
import functools
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from isograd.convert.places import Place, place
from isograd.convert.tree import pairs_of
from isograd.static_graph.scope import children

#: A file without this text has none.
WORD = ".state_dict("
_METHOD = "torch.nn.Module.state_dict"
#: Functions that keep or take over what they are given, whatever its names are.
_KEEPS = frozenset("save load_state_dict".split())
_COPIES = frozenset("deepcopy copy".split())
#: What optimizers' dictionaries hold, and networks' do not.
_OF_OPTIMIZERS = frozenset(("state", "param_groups"))
#: Modules whose functions of these names are meant, whatever the project defines.
_MODULES = frozenset(("torch", "copy"))
#: Functions that look at no names.
_LOOKS_ELSEWHERE = frozenset("isinstance type id".split())
#: What asks whether there is anything at all.
_CONDITIONS = (ast.If, ast.While, ast.Assert, ast.UnaryOp, ast.Expr)
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module)
#: Values that are followed before the answer is yes.
_MOST = 2000


def _is_of_network(
    members: Mapping[Place, Any], unknown: Collection[Place], node: ast.Attribute
) -> bool:
    """Whether an attribute is the `state_dict` of what is a network, or may be one."""
    found = members.get(place(node))
    if found is not None:
        return bool(found.api == _METHOD)
    return node.attr == "state_dict" and place(node) in unknown


@dataclass
class _Project:
    """What is looked up by its name, over all files."""

    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)
    sources: list[ast.Call] = field(default_factory=list)
    loads: dict[str, list[ast.Name]] = field(default_factory=lambda: defaultdict(list))
    attributes: dict[str, list[ast.Attribute]] = field(default_factory=lambda: defaultdict(list))
    calls: dict[str, list[ast.Call]] = field(default_factory=lambda: defaultdict(list))
    functions: dict[str, list[_Function]] = field(default_factory=lambda: defaultdict(list))
    modules: set[str] = field(default_factory=set)

    def add(self, tree: ast.Module, is_source: Callable[[ast.Attribute], bool]) -> None:
        """One more file."""
        for node in self._below(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self.loads[node.id].append(node)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                self.attributes[node.attr].append(node)
            elif isinstance(node, ast.Call):
                self.calls[_called(node)].append(node)
                if isinstance(node.func, ast.Attribute) and is_source(node.func):
                    self.sources.append(node)
            elif isinstance(node, ast.Import):
                named = (part for part in node.names if part.name in _MODULES)
                self.modules |= {part.asname or part.name for part in named}
            elif isinstance(node, _Function):
                self.functions[_class_of(node, self.parents) or node.name].append(node)

    def _below(self, tree: ast.Module) -> Iterator[ast.AST]:
        """All nodes of a file, each behind the one around it, which is noted."""
        nodes: list[ast.AST] = [tree]
        for node in nodes:
            inner = children(node)
            self.parents.update(dict.fromkeys(inner, node))
            nodes += inner
            yield node

    def scope(self, node: ast.AST) -> ast.AST:
        """The function around a node, or the module."""
        found = self.parents[node]
        while not isinstance(found, _SCOPES):
            found = self.parents[found]
        return found

    def is_below(self, node: ast.AST, scope: ast.AST) -> bool:
        """Whether a node stands in a function or module."""
        while node is not scope and node in self.parents:
            node = self.parents[node]
        return node is scope


def _called(call: ast.Call) -> str:
    return str(getattr(call.func, "attr", getattr(call.func, "id", "")))


def _class_of(function: _Function, parents: dict[ast.AST, ast.AST]) -> str:
    """The class that a constructor makes an instance of."""
    owner = parents.get(function)
    is_constructor = isinstance(owner, ast.ClassDef) and function.name == "__init__"
    return owner.name if is_constructor and isinstance(owner, ast.ClassDef) else ""


@dataclass(frozen=True)
class StateFile:
    """A file of the project, which is read only where a state may get to it.

    text: its text.  read: its tree, with the members and the unknown attributes in it.
    """

    text: Callable[[], str]
    read: Callable[[], tuple[ast.Module, dict[Place, Any], set[Place]]]


def may_read_states(files: Iterable[StateFile]) -> bool:
    """Whether anything but saving, copying and loading may be done with a network's state."""
    project, left, names = _Project(), list(files), {re.escape(WORD)}
    while True:
        wanted = re.compile("|".join(sorted(names)))
        found = [file for file in left if wanted.search(file.text())]
        left = [file for file in left if file not in found]
        for file in found:
            tree, members, unknown = file.read()
            project.add(tree, functools.partial(_is_of_network, members, unknown))
        walk = _Walk(project)
        is_read = any(walk.reads(source, held=False) for source in project.sources)
        if not found or walk.names <= names:
            return is_read
        names |= walk.names


class _Walk:
    """Follows values by the names that they are bound to, in whichever file."""

    def __init__(self, project: _Project) -> None:
        self.project = project
        self.known: set[tuple[ast.AST, bool]] = set()
        #: Patterns of what any file of the project may hold: a definition, a call, an attribute.
        self.names: set[str] = set()

    def _functions(self, name: str) -> list[_Function]:
        self.names.add(rf"\b(?:def|class)\s+{name}\b")
        return self.project.functions[name]

    def _attributes(self, name: str) -> list[ast.Attribute]:
        self.names.add(rf"\.\s*{name}\b")
        return self.project.attributes[name]

    def reads(self, node: ast.expr, *, held: bool) -> bool:
        """Whether a state is read.  held: whether the node is what holds it."""
        if (node, held) in self.known:
            return False
        self.known.add((node, held))
        if len(self.known) > _MOST:
            return True
        parent = self.project.parents[node]
        if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
            targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
            pairs = [pair for target in targets for pair in pairs_of(target, node)]
            is_passed_on = isinstance(parent, ast.NamedExpr) and self.reads(parent, held=held)
            return is_passed_on or any(self._bound(target, held) for target, _ in pairs)
        if isinstance(parent, ast.Call) and node is not parent.func:
            return self._given(node, parent, held)
        if isinstance(parent, ast.keyword):
            call = self.project.parents[parent]
            return not isinstance(call, ast.Call) or self._given(node, call, held, parent.arg)
        if isinstance(parent, (ast.Dict, ast.List, ast.Tuple)):
            return self._displayed(node, parent, held)
        if isinstance(parent, (ast.IfExp, ast.BoolOp, ast.Await)):
            is_test = isinstance(parent, ast.IfExp) and node is parent.test
            return not is_test and self.reads(parent, held=held)
        if isinstance(parent, (ast.Attribute, ast.Subscript)):
            return self._asked(node, parent, held)
        if isinstance(parent, ast.Return):
            return any(self.reads(use, held=held) for use in self._callers(parent))
        if isinstance(parent, ast.Compare):
            return not all(isinstance(part, (ast.Is, ast.IsNot)) for part in parent.ops)
        return not isinstance(parent, _CONDITIONS)

    def _displayed(self, node: ast.expr, display: ast.expr, held: bool) -> bool:
        """`{'model': state}`, `a, b = state, loss`."""
        parent = self.project.parents[display]
        if isinstance(parent, ast.Assign) and isinstance(display, (ast.Tuple, ast.List)):
            pairs = [pair for target in parent.targets for pair in pairs_of(target, display)]
            own = [target for target, value in pairs if value is node]
            if own:
                return any(self._bound(target, held) for target in own)
        is_merged = isinstance(display, ast.Dict) and not any(
            value is node and key is not None
            for key, value in zip(display.keys, display.values, strict=True)
        )
        return is_merged or self.reads(display, held=True)

    def _asked(self, node: ast.expr, parent: ast.Attribute | ast.Subscript, held: bool) -> bool:
        """`state.copy()`, `checkpoint['model']`; anything else is a reading."""
        call = self.project.parents[parent]
        if isinstance(parent, ast.Attribute):
            is_copy = parent.attr == "copy" and isinstance(call, ast.Call)
            return not (is_copy and isinstance(call, ast.Call) and not self.reads(call, held=held))
        key = parent.slice
        if held and node is parent.value and not isinstance(parent.ctx, ast.Load):
            return False  # one more of what is held
        if node is not parent.value or not isinstance(key, ast.Constant):
            return True
        if not held:
            return key.value not in _OF_OPTIMIZERS
        return self.reads(parent, held=False) or self.reads(parent, held=True)

    def _bound(self, target: ast.expr, held: bool) -> bool:
        """What is done with what a name, an attribute or an element is bound to."""
        project = self.project
        if isinstance(target, ast.Name):
            scope = project.scope(target)
            uses: Iterator[ast.expr] = (
                use for use in project.loads[target.id] if project.is_below(use, scope)
            )
            return any(self.reads(use, held=held) for use in uses)
        if isinstance(target, ast.Attribute):
            return any(self.reads(use, held=held) for use in self._attributes(target.attr))
        if isinstance(target, ast.Subscript):
            return self._bound(target.value, True)
        return True

    def _given(
        self, node: ast.expr, call: ast.Call, held: bool, keyword: str | None = None
    ) -> bool:
        """What a function does with its argument."""
        name, owner = _called(call), getattr(call.func, "value", None)
        is_of_module = isinstance(owner, ast.Name) and owner.id in self.project.modules
        functions = [] if is_of_module else self._functions(name)
        if name in _LOOKS_ELSEWHERE or (name in _KEEPS and not functions):
            return False
        if name in _COPIES and not functions:
            return self.reads(call, held=held)
        if name == "load_state_dict":
            held = True  # it may be what another class holds: by constant names
        names = [_parameter(function, call, node, keyword) for function in functions]
        return not names or any(
            not given or self._read_within(function, given, held)
            for function, given in zip(functions, names, strict=True)
        )

    def _read_within(self, function: _Function, name: str, held: bool) -> bool:
        uses = (use for use in self.project.loads[name] if self.project.is_below(use, function))
        return any(self.reads(use, held=held) for use in uses)

    def _callers(self, node: ast.Return) -> list[ast.expr]:
        """The calls of a function; what reads it, where it may be a property."""
        function = self.project.scope(node)
        if not isinstance(function, _Function):
            return []
        read = self._attributes(function.name) if function.decorator_list else []
        self.names.add(rf"\b{function.name}\s*\(")
        return [*self.project.calls[function.name], *read]


def _parameter(function: _Function, call: ast.Call, node: ast.expr, keyword: str | None) -> str:
    """The parameter that gets an argument; empty where that is not known."""
    own = [part.arg for part in (*function.args.posonlyargs, *function.args.args)]
    if keyword is not None:
        return (
            keyword if keyword in (*own, *(part.arg for part in function.args.kwonlyargs)) else ""
        )
    if node not in call.args or any(isinstance(part, ast.Starred) for part in call.args):
        return ""
    is_method = own[:1] in (["self"], ["cls"])
    number = call.args.index(node) + is_method
    return own[number] if number < len(own) else ""
