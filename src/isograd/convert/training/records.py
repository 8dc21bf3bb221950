"""Dataclasses and named tuples of a project, and what a compiled step may make of them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from isograd.static_graph.scope import FileScope

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_PLAIN = ("builtins.object", "abc.ABC", "typing.Generic", "typing.NamedTuple")
#: What Python writes, and what no step asks for.
_UNASKED = frozenset("__getitem__ __repr__ __str__ __hash__ __class_getitem__".split())
_SETTINGS = frozenset("frozen repr eq order unsafe_hash slots".split())
_OF_FIELDS = frozenset("default repr hash compare metadata".split())
#: Attributes of tensors that are no methods: a field of such a name may be either's.
_OF_TENSORS = frozenset(
    "shape dtype device data grad ndim T mT H mH real imag is_leaf requires_grad grad_fn layout "
    "itemsize nbytes is_cuda is_sparse names".split()
)
_MOST_IMPORTS = 8


class RecordError(Exception):
    """Why a project's steps cannot hold its records, at a node of a file."""

    def __init__(self, file: str, node: ast.AST, reason: str) -> None:
        super().__init__(reason)
        self.file, self.node = file, node


@dataclass(frozen=True)
class Imports:
    """How a project's files import each other.

    file_of: the file that a module's dotted name means in a file; empty where it is none of the
    project's.  package_of: the dotted package of a file.
    """

    file_of: Callable[[str, str], str]
    package_of: Callable[[str], str]


@dataclass(frozen=True, eq=False)
class Record:
    """A class whose objects hold fields.

    node: its definition, in a file.  fields: their defaults, None where there is none.
    is_tuple: whether it is a named tuple.  problem: why no compiled step can make one.
    methods: by name, of the nearest class that has it, with that class and its file.
    """

    name: str
    file: str
    node: ast.stmt
    fields: Mapping[str, ast.expr | None]
    is_tuple: bool
    problem: str = ""
    methods: Mapping[str, tuple[str, ast.ClassDef, ast.FunctionDef]] = field(default_factory=dict)

    @property
    def has_elements(self) -> bool:
        """Whether it says itself what `record[key]` is."""
        return "__getitem__" in self.methods and not self.is_tuple

    def given(self, call: ast.Call) -> dict[str, ast.expr] | None:
        """What a call gives to each field, in the order of the fields; None where unknown."""
        if any(isinstance(one, ast.Starred) for one in call.args):
            return None
        if any(one.arg not in self.fields for one in call.keywords):
            return None
        if len(call.args) > len(self.fields):
            return None
        found = dict(zip(self.fields, call.args, strict=False))
        found |= {str(one.arg): one.value for one in call.keywords}
        if not _keeps_order(found, self.fields):
            return None
        whole = {name: found.get(name, default) for name, default in self.fields.items()}
        return None if None in whole.values() else whole  # type: ignore[return-value]


def _keeps_order(found: Mapping[str, ast.expr], fields: Mapping[str, ast.expr | None]) -> bool:
    """Whether values may be computed in the order of the fields: one alone may draw or change."""
    computing = [
        name for name, value in found.items()
        if any(isinstance(part, (ast.Call, ast.NamedExpr)) for part in ast.walk(value))
    ]  # fmt: skip
    return computing == [name for name in fields if name in computing]


class Records:
    """The records of a project: `trees` by the names of their files."""

    def __init__(self, trees: Mapping[str, ast.Module], imports: Imports) -> None:
        self.scopes = {
            name: FileScope(tree, None, imports.package_of(name)) for name, tree in trees.items()
        }
        self._modules = imports.file_of
        self._known: dict[tuple[str, str], Record | None] = {}

    def may_make(self, file: str) -> bool:
        """Whether a file defines a class of records."""
        scope = self.scopes[file]
        return any(
            "dataclasses.dataclass" in one.decorators or "typing.NamedTuple" in one.bases
            for one in scope.classes.values()
        ) or any(
            isinstance(node, ast.Assign) and _makes_class(node.value, scope)
            for node in scope.tree.body
        )

    def lineage_of(self, record: Record) -> set[tuple[str, str]]:
        """The files and names of a record's class and of its bases in the project."""
        return {(file, cls.name) for file, cls in self._lineage(record.file, record.name)}

    def named(self, node: ast.AST, file: str) -> Record | None:
        """The record whose class an expression of a file names."""
        place = self.place(node, file)
        if place is None:
            return None
        if place not in self._known:
            self._known[place] = None  # a class that derives from itself is none
            self._known[place] = self._read(*place)
        return self._known[place]

    def place(self, node: ast.AST, file: str) -> tuple[str, str] | None:
        """The file and the name of the class that an expression names."""
        scope = self.scopes[file]
        if isinstance(node, ast.Name) and node.id not in scope.imports:
            return self._defined(file, node.id, "", 0)
        dotted = scope.qualified(node)
        module, _, name = dotted.rpartition(".")
        return self._defined(self._modules(file, module), name, file, 1) if module else None

    def _defined(self, file: str, name: str, origin: str, steps: int) -> tuple[str, str] | None:
        scope = self.scopes.get(file)
        if scope is None or file == origin or steps > _MOST_IMPORTS:
            return None
        if name in scope.classes or _assigned(name, scope) is not None:
            return file, name
        module, _, last = scope.imports.get(name, "").rpartition(".")
        return self._defined(self._modules(file, module), last, file, steps + 1) if module else None

    def _read(self, file: str, name: str) -> Record | None:
        scope = self.scopes[file]
        assigned = _assigned(name, scope)
        if assigned is not None:
            return _of_call(name, file, assigned, scope)
        own = scope.classes[name]
        if own.bases and "typing.NamedTuple" in own.bases:
            fields = dict(_annotated(own.node))
            return self._made(name, file, own.node, fields, is_tuple=True)
        if "dataclasses.dataclass" not in own.decorators:
            return None
        fields = {}
        for other, cls in reversed([*self._lineage(file, name)]):
            if "dataclasses.dataclass" in self.scopes[other].classes[cls.name].decorators:
                fields.update(_annotated(cls))
        return self._made(name, file, own.node, fields, is_tuple=False)

    def _made(
        self, name: str, file: str, node: ast.ClassDef, fields: dict[str, ast.expr | None],
        *, is_tuple: bool,
    ) -> Record:  # fmt: skip
        methods: dict[str, tuple[str, ast.ClassDef, ast.FunctionDef]] = {}
        problem = ""
        for other, cls in self._lineage(file, name):
            for part in cls.body:
                if isinstance(part, ast.FunctionDef):
                    methods.setdefault(part.name, (other, cls, part))
            problem = problem or self._problem(other, cls)
        plain: dict[str, ast.expr | None] = {}
        for key, value in fields.items():
            default, said = _default(value, self.scopes[file])
            plain[key] = default
            problem = problem or said or (f"a field is named {key}" if key in _OF_TENSORS else "")
        asked = [m for m in methods if m.startswith("__") and m not in _UNASKED]
        if is_tuple and "__getitem__" in methods:
            asked.append("__getitem__")
        problem = problem or (f"it has {asked[0]}" if asked else "")
        return Record(name, file, node, plain, is_tuple, problem, methods)

    def _problem(self, file: str, cls: ast.ClassDef) -> str:
        """What is not known of how a class makes objects."""
        scope = self.scopes[file]
        for one in cls.decorator_list:
            called = one.func if isinstance(one, ast.Call) else one
            if scope.qualified(called) != "dataclasses.dataclass":
                return f"{cls.name} has the decorator {ast.unparse(called)}"
            settings = [k.arg for k in one.keywords] if isinstance(one, ast.Call) else []
            if other := [str(s) for s in settings if s not in _SETTINGS]:
                return f"{cls.name} is a dataclass with {other[0]}"
        if cls.keywords:
            return f"{cls.name} has a metaclass"
        if len(cls.bases) > 1 and "typing.NamedTuple" not in scope.classes[cls.name].bases:
            return f"{cls.name} is derived from several classes"
        for base in cls.bases:
            plain = base.value if isinstance(base, ast.Subscript) else base
            place = self.place(plain, file)
            is_own = place is not None and place[1] in self.scopes[place[0]].classes
            if scope.qualified(plain) not in _PLAIN and not is_own:
                return f"{cls.name} is derived from {ast.unparse(base)}"
        if any(isinstance(part, ast.AnnAssign) and _is_special(part, scope) for part in cls.body):
            return f"{cls.name} has fields that are given otherwise"
        return ""

    def _lineage(self, file: str, name: str) -> Iterator[tuple[str, ast.ClassDef]]:
        """A class and its bases in the project, nearest first."""
        waiting, seen = [(file, name)], set[tuple[str, str]]()
        while waiting:
            place = waiting.pop(0)
            if place in seen or place[1] not in self.scopes[place[0]].classes:
                continue
            seen.add(place)
            node = self.scopes[place[0]].classes[place[1]].node
            yield place[0], node
            bases = (base.value if isinstance(base, ast.Subscript) else base for base in node.bases)
            waiting += [one for b in bases if (one := self.place(b, place[0])) is not None]


def _assigned(name: str, scope: FileScope) -> ast.Assign | None:
    """The statement that makes a class of a call: `Pair = namedtuple("Pair", "a b")`."""
    for node in scope.tree.body:
        if isinstance(node, ast.Assign) and _makes_class(node.value, scope):
            if [getattr(target, "id", "") for target in node.targets] == [name]:
                return node
    return None


def _makes_class(value: ast.expr, scope: FileScope) -> bool:
    makers = ("collections.namedtuple", "typing.NamedTuple")
    return isinstance(value, ast.Call) and scope.qualified(value.func) in makers


def _of_call(name: str, file: str, node: ast.Assign, scope: FileScope) -> Record:
    call = node.value
    assert isinstance(call, ast.Call)
    names = _names(call, scope)
    said = getattr(call.args[0], "value", None) if call.args else None
    problem = "" if said == name and names else "its fields are not known"
    defaults: list[ast.expr] = []
    for one in call.keywords:
        if one.arg == "defaults" and isinstance(one.value, (ast.Tuple, ast.List)):
            defaults = one.value.elts
        elif one.arg != "module":
            problem = problem or f"it is made with {one.arg}"
    fields: dict[str, ast.expr | None] = dict.fromkeys(names)
    for key, value in zip(reversed(names), reversed(defaults), strict=False):
        fields[key], said_of = _default(value, scope)
        problem = problem or said_of
    if own := [key for key in names if key in _OF_TENSORS]:
        problem = problem or f"a field is named {own[0]}"
    return Record(name, file, node, fields, is_tuple=True, problem=problem)


def _names(call: ast.Call, scope: FileScope) -> list[str]:
    given = call.args[1] if len(call.args) == 2 else None
    if isinstance(given, ast.Constant) and isinstance(given.value, str):
        return given.value.replace(",", " ").split()
    if not isinstance(given, (ast.List, ast.Tuple)):
        return []
    is_pairs = scope.qualified(call.func) == "typing.NamedTuple"
    firsts = [
        part.elts[0] if is_pairs and isinstance(part, ast.Tuple) and part.elts else part
        for part in given.elts
    ]
    found = [part.value for part in firsts if isinstance(part, ast.Constant)]
    return found if len(found) == len(given.elts) and all(isinstance(n, str) for n in found) else []  # type: ignore[return-value]


def _annotated(cls: ast.ClassDef) -> Iterator[tuple[str, ast.expr | None]]:
    for part in cls.body:
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            yield part.target.id, part.value


def _is_special(part: ast.AnnAssign, scope: FileScope) -> bool:
    """`InitVar`, `KW_ONLY`, `ClassVar`, also where the annotation is a text."""
    note: ast.expr = part.annotation
    if isinstance(note, ast.Constant) and isinstance(note.value, str):
        try:
            note = ast.parse(note.value, mode="eval").body
        except SyntaxError:
            return True
    plain = note.value if isinstance(note, ast.Subscript) else note
    special = ("dataclasses.InitVar", "dataclasses.KW_ONLY", "typing.ClassVar")
    return scope.qualified(plain) in special


def _default(value: ast.expr | None, scope: FileScope) -> tuple[ast.expr | None, str]:
    """A field's default as an expression that may stand anywhere; and why it may not."""
    if isinstance(value, ast.Call) and scope.qualified(value.func) == "dataclasses.field":
        if other := [str(k.arg) for k in value.keywords if k.arg not in _OF_FIELDS]:
            return None, f"a field has {other[0]}"
        value = next((k.value for k in value.keywords if k.arg == "default"), None)
    if value is None or _is_constant(value):
        return value, ""
    return None, f"a field's default is {ast.unparse(value)}"


def _is_constant(value: ast.expr) -> bool:
    if isinstance(value, ast.Tuple):
        return all(map(_is_constant, value.elts))
    inner = value.operand if isinstance(value, ast.UnaryOp) else value
    return isinstance(inner, ast.Constant)
