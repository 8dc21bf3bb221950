"""Which expressions of a file may hold a special number: `x.masked_fill(mask, float("-inf"))`."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from isograd.convert.aliases import Scope
from isograd.convert.tree import Tree, imported_from, pairs_of

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_PACKAGES = ("torch", "math", "numpy")
#: What answers questions, or gives new tensors, of what holds any number.
_QUESTIONS = frozenset(
    """nan_to_num isinf isfinite isnan argmax argmin argsort size dim numel len range isinstance
    one_hot bernoulli multinomial Categorical ne eq gt lt ge le zeros_like ones_like rand_like
    randn_like empty_like new_zeros new_ones""".split()
)
#: Expressions that hold what one of their parts holds.
_MADE_OF_PARTS = (
    *(ast.UnaryOp, ast.BinOp, ast.IfExp, ast.BoolOp, ast.Tuple, ast.List, ast.Dict, ast.Starred),
    *(ast.ListComp, ast.GeneratorExp),
)
_DEEPEST = 40


@dataclass(frozen=True)
class Special:
    """A number that arises where it is written.

    written: its texts for `float(…)`.  constants: its names.  ending: what gives none of what holds
    it.  pattern: a text without this writes none.
    """

    written: frozenset[str]
    constants: frozenset[str]
    ending: frozenset[str]
    pattern: re.Pattern[str]


INFINITY = Special(
    frozenset(("inf", "-inf", "infinity", "-infinity")),
    frozenset("inf infty Inf PINF NINF".split()),
    _QUESTIONS
    | frozenset(
        """softmax softmin sigmoid tanh exp gumbel_softmax clamp clip logsumexp
        scaled_dot_product_attention""".split()
    ),
    re.compile(r"\b(?:inf|infty|infinity|[PN]INF)\b", re.IGNORECASE),
)
NAN = Special(
    frozenset(("nan", "-nan", "+nan")),
    frozenset("nan NaN NAN".split()),
    _QUESTIONS | frozenset("nansum nanmean nanmedian nanquantile".split()),
    re.compile(r"\bnan\b", re.IGNORECASE),
)


@dataclass
class Infinities:
    """scope_of: the bindings around a node.  api_of: the API of torch that a function names.

    elsewhere: functions of the project's files that may return it.  special: which number.
    """

    tree: Tree
    scope_of: Callable[[ast.AST], Scope]
    api_of: Callable[[ast.AST], str]
    elsewhere: frozenset[str] = frozenset()
    special: Special = INFINITY
    _known: dict[ast.AST, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._packages = imported_from(self.tree, _PACKAGES)

    def results(self) -> frozenset[str]:
        """The file's functions of which a result may hold it."""
        functions = self.tree.of(*_FUNCTIONS)
        return frozenset(one.name for one in functions if self._returns(one, _DEEPEST))

    def may(self, node: ast.AST | None, depth: int = _DEEPEST) -> bool:
        """Whether a value may be the number, or hold it; no in a circle."""
        if node is None or depth == 0:
            return False
        if node not in self._known:
            self._known[node] = False
            self._known[node] = self._may(node, depth - 1)
        return self._known[node]

    def _may(self, node: ast.AST, depth: int) -> bool:
        if isinstance(node, ast.Name):
            return self._of_name(node, depth)
        if isinstance(node, ast.Attribute):
            return self._of_attribute(node, depth)
        if isinstance(node, ast.Call):
            return self._of_call(node, depth)
        if isinstance(node, ast.Compare):
            return False
        if isinstance(node, ast.Subscript):
            return self.may(node.value, depth)
        if isinstance(node, _MADE_OF_PARTS):
            parts = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
            parts = parts[1:] if isinstance(node, ast.IfExp) else parts
            return any(self.may(part, depth) for part in parts)
        return False

    def _of_name(self, node: ast.Name, depth: int) -> bool:
        """By what reaches the name, and by what was written into it since."""
        if node.id in self.special.constants and node.id in self._packages:
            return True
        scope = self.scope_of(node)
        statements = scope.statements_of(node.id, node)
        if any(self.may(value, depth) for one in statements for value in _values(one, node.id)):
            return True
        if any(
            self._writes(write, depth) and _is_same(statements, scope.statements_of(node.id, write))
            for write in _writes_into(node.id, scope)
        ):
            return True
        if statements or node.id not in scope.parameters:
            module = self.tree.values_of_module.get(node.id, ())
            is_outer = not statements and node.id not in scope.bound
            return is_outer and any(self.may(value, depth) for value in module)
        return any(self.may(given, depth) for given in self._given(node.id, scope.node))

    def _writes(self, write: ast.stmt, depth: int) -> bool:
        """Whether a statement puts the number into a tensor."""
        if isinstance(write, (ast.Assign, ast.AugAssign)):
            return self.may(write.value, depth)
        call = getattr(write, "value", None)
        given = [*call.args, *(part.value for part in call.keywords)] if call else []
        return any(self.may(part, depth) for part in given)

    def _of_attribute(self, node: ast.Attribute, depth: int) -> bool:
        if not isinstance(node.value, ast.Name):
            return self.may(node.value, depth)
        if node.attr in self.special.constants and node.value.id in self._packages:
            return True
        if self.may(node.value, depth):
            return True
        for part in self.tree.of(ast.Assign):
            for target in part.targets:
                if isinstance(target, ast.Attribute) and target.attr == node.attr:
                    if self.may(part.value, depth):
                        return True
        return any(
            getattr(call.args[0], "value", None) == node.attr and self.may(call.args[1], depth)
            for call in self.tree.of(ast.Call)
            if getattr(call.func, "attr", "") == "register_buffer" and len(call.args) > 1
        )

    def _of_call(self, node: ast.Call, depth: int) -> bool:
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        given = [*node.args, *(part.value for part in node.keywords)]
        if name == "float" and not self.api_of(node.func):
            text = given[0].value if given and isinstance(given[0], ast.Constant) else ""
            return isinstance(text, str) and text.strip().lower() in self.special.written
        own = [one for one in self.tree.of(*_FUNCTIONS) if one.name == name]
        if own:
            return any(self._returns(one, depth) for one in own)
        if name in self.elsewhere and not self.api_of(node.func):
            return True
        if name in self.special.ending:
            return False
        receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
        is_class = any(one.name == name for one in self.tree.of(ast.ClassDef))
        if self.api_of(node.func) or is_class or not _is_plain(receiver):
            return any(self.may(part, depth) for part in (*given, receiver))
        forwards = [one for one in self.tree.of(*_FUNCTIONS) if one.name == "forward"]
        return "forward" in self.elsewhere or any(self._returns(one, depth) for one in forwards)

    def _returns(self, function: ast.AST, depth: int) -> bool:
        return any(
            self.may(part.value, depth)
            for part in self.tree.walked(function)
            if isinstance(part, ast.Return) and self.tree.function(part) is function
        )

    def _given(self, name: str, function: ast.AST) -> Iterator[ast.expr]:
        """What the file's calls of a function, by its name, give a parameter."""
        if not isinstance(function, _FUNCTIONS):
            return
        places = [part.arg for part in (*function.args.posonlyargs, *function.args.args)]
        is_method = self.tree.parents.get(function).__class__ is ast.ClassDef
        for call in self.tree.of(ast.Call):
            called = getattr(call.func, "attr", getattr(call.func, "id", ""))
            if called == function.name:
                names = places[1:] if is_method else places
                given = dict(zip(names, call.args, strict=False))
                given |= {part.arg: part.value for part in call.keywords if part.arg}
                if name in given:
                    yield given[name]


def _values(statement: ast.AST, name: str) -> Iterator[ast.expr]:
    """What a statement binds to a name."""
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            for one, value in pairs_of(target, statement.value):
                names = [part.id for part in ast.walk(one) if isinstance(part, ast.Name)]
                if name in names:
                    yield value
    elif isinstance(statement, (ast.AnnAssign, ast.NamedExpr)) and statement.value is not None:
        yield statement.value


def _writes_into(name: str, scope: Scope) -> Iterator[ast.stmt]:
    """The statements that change the elements of what a name holds."""
    for node in scope.nodes:
        if isinstance(node, ast.Assign):
            roots = [t.value for t in node.targets if isinstance(t, ast.Subscript)]
        elif isinstance(node, ast.AugAssign):
            roots = [node.target.value if isinstance(node.target, ast.Subscript) else node.target]
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            function = node.value.func
            roots = []
            if isinstance(function, ast.Attribute) and function.attr.endswith("_"):
                roots.append(function.value)
        else:
            continue
        if any(_root(one) == name for one in roots):
            yield node


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Subscript, ast.Attribute, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_same(some: list[ast.AST], others: list[ast.AST]) -> bool:
    """Whether two places may see what one statement bound, or a parameter."""
    return (not some and not others) or any(one in others for one in some)


def _is_plain(receiver: ast.expr | None) -> bool:
    """Whether a call is of a name or of an attribute of one, `net(x)` and `self.net(x)`."""
    return receiver is None or isinstance(receiver, ast.Name)
