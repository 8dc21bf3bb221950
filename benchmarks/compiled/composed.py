"""Modules composed from the constructs of the table: renamed, in helpers, nested, two in a row.

Each is a class derived from `Base`, as `isograd.static_graph.check.frame` executes them.
"""

from __future__ import annotations

import ast
import random
from dataclasses import dataclass

from isograd.static_graph.rule import Construct
from isograd.static_graph.table import HEADER, constructs

_WORDS = (
    "kept parts state held pieces first values inner store chosen fused branch gate left right "
    "mixed scaled score memory window level track carry bank slot"
).split()
_RESERVED = frozenset(("fc", "fc2", "x", "y", "self", "IN", "PICK", "WATCH", "FWDTRAIN", "setup"))
_PLACES = ("as it is", "helper", "nested", "nested twice", "after another")
#: Every second module is built around a construct with a rule.
_EVERY = 2


@dataclass(frozen=True)
class Composed:
    """One module: its text with the header, and what it was made of."""

    name: str
    text: str
    made_of: str


def composed(number: int) -> Composed:
    """The module of a number; the same each time."""
    drawn = random.Random(f"composed {number}")
    table = constructs()
    ruled = [c for c in table if c.rule]
    plain = [c for c in table if not c.rule]
    construct = drawn.choice(ruled if number % _EVERY == 0 else plain)
    tree = ast.parse(construct.example)
    place = drawn.choice(_PLACES)
    made = [construct.code]
    _rename(tree, drawn)
    _unify(tree, "one")
    if place == "helper":
        _into_helper(tree, drawn)
    elif place != "as it is" and not _class_value(_last(tree), "WATCH"):
        if place == "after another":
            other = drawn.choice([c for c in plain if _is_simple(c)])
            made.append(other.code)
            before = ast.parse(other.example)
            _rename(before, drawn)
            _unify(before, "two")
            tree.body = [*before.body, *tree.body, _parent(_last(tree), _last(before), drawn)]
        else:
            tree.body.append(_parent(_last(tree), None, drawn))
            if place == "nested twice":
                tree.body.append(_parent(_last(tree), None, drawn))
    text = HEADER + ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    return Composed(f"composed-{number:03d}", text, f"{' and '.join(made)}, {place}")


def _is_simple(construct: Construct) -> bool:
    """Whether it maps one tensor to one of its shape."""
    last = _last(ast.parse(construct.example))
    plain = not any(_class_value(last, key) for key in ("IN", "PICK", "WATCH"))
    return plain and len(_construct(last).args.args) == 2


def _last(tree: ast.Module) -> ast.ClassDef:
    """The network: the last class that is a cell."""
    cells = [n for n in tree.body if isinstance(n, ast.ClassDef) and _has_construct(n)]
    return cells[-1]


def _has_construct(cls: ast.ClassDef) -> bool:
    return any(isinstance(n, ast.FunctionDef) and n.name == "construct" for n in cls.body)


def _construct(cls: ast.ClassDef) -> ast.FunctionDef:
    return next(n for n in cls.body if isinstance(n, ast.FunctionDef) and n.name == "construct")


def _class_value(cls: ast.ClassDef, key: str) -> object:
    for node in cls.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == key:
            return ast.literal_eval(node.value)
    return None


class _Renaming(ast.NodeTransformer):
    """Other names for local variables and for what is kept on self."""

    def __init__(self, names: dict[str, str], attributes: dict[str, str]) -> None:
        self._names, self._attributes = names, attributes

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self._names.get(node.id, node.id)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        node.attr = self._attributes.get(node.attr, node.attr)
        return node

    def visit_Nonlocal(self, node: ast.Nonlocal) -> ast.AST:
        node.names = [self._names.get(name, name) for name in node.names]
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if getattr(node.func, "id", "") in ("getattr", "hasattr", "setattr"):
            for part in node.args:
                if isinstance(part, ast.Constant) and part.value in self._attributes:
                    part.value = self._attributes[part.value]
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        if getattr(node.targets[0], "id", "") == "WATCH" and isinstance(node.value, ast.Tuple):
            for part in node.value.elts:
                if isinstance(part, ast.Constant):
                    part.value = self._attributes.get(part.value, part.value)
        return node


def _rename(tree: ast.Module, drawn: random.Random) -> None:
    """Give local variables and attributes of self other names, the same throughout."""
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    arguments = {a.arg for f in functions for a in ast.walk(f) if isinstance(a, ast.arg)}
    top = {n.id for s in tree.body for n in ast.walk(s) if _is_stored(n) and _is_assigned(s)}
    local = {n.id for f in functions for n in ast.walk(f) if _is_stored(n)}
    globals_ = {name for n in ast.walk(tree) if isinstance(n, ast.Global) for name in n.names}
    kept = {
        n.attr
        for n in ast.walk(tree)
        if isinstance(n, ast.Attribute)
        and isinstance(n.ctx, ast.Store)
        and getattr(n.value, "id", "") == "self"
    }
    names = sorted(local - arguments - top - globals_ - _RESERVED)
    attributes = sorted(kept - _RESERVED - {"training"})
    words = drawn.sample(_WORDS, min(len(_WORDS), len(names) + len(attributes)))
    pairs = iter(words)
    _Renaming(
        dict(zip(names, pairs, strict=False)),
        {name: f"{word}_" for name, word in zip(attributes, pairs, strict=False)},
    ).visit(tree)


def _is_stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _is_assigned(node: ast.stmt) -> bool:
    return isinstance(node, (ast.Assign, ast.AnnAssign, ast.ClassDef))


def _unify(tree: ast.Module, mark: str) -> None:
    """Names at the top that no other construct's file has."""
    kinds = (ast.ClassDef, ast.FunctionDef)
    names = {n.name: f"{n.name}_{mark}" for n in tree.body if isinstance(n, kinds)}
    _Renaming(names, {}).visit(tree)
    for node in tree.body:
        if isinstance(node, kinds):
            node.name = names[node.name]


def _into_helper(tree: ast.Module, drawn: random.Random) -> None:
    """Move the body of construct into a method that it calls."""
    cls = _last(tree)
    construct = _construct(cls)
    if construct.decorator_list or construct.args.vararg or construct.args.kwarg:
        return
    name = f"{drawn.choice(_WORDS)}_of"
    given = ", ".join(a.arg for a in construct.args.args[1:])
    helper = ast.FunctionDef(name, construct.args, construct.body, [], None)
    if hasattr(construct, "type_params"):
        helper.type_params = []
    construct.body = ast.parse(f"return self.{name}({given})").body
    cls.body.append(helper)


def _parent(inner: ast.ClassDef, before: ast.ClassDef | None, drawn: random.Random) -> ast.stmt:
    """A network that calls another, behind a further one where that is given."""
    arguments = _construct(inner).args
    given = [a.arg for a in arguments.args[1:]]
    values = {key: _class_value(inner, key) for key in ("IN", "PICK", "FWDTRAIN")}
    lines = [f"    {key} = {value!r}" for key, value in values.items() if value is not None]
    first, second = drawn.sample(_WORDS, 2)
    made = [f"self.{first} = {inner.name}()"]
    made += [f"self.{second} = {before.name}()"] if before is not None else []
    through = f"self.{second}({given[0]})" if before is not None else f"{given[0]} * 1.0"
    text = (
        f"class {inner.name}_{first.capitalize()}(Base):\n"
        + "".join(f"{line}\n" for line in lines)
        + "    def setup(self):\n"
        + "".join(f"        {line}\n" for line in made)
        + f"    def construct({', '.join(['self', *given])}):\n"
        + f"        {given[0]} = {through}\n"
        + f"        return self.{first}({', '.join(given)})\n"
    )
    return ast.parse(text).body[0]
