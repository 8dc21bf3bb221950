"""What compiled steps do with a project's dataclasses, named tuples and dictionaries.

The static graph holds no objects that are made in it.  Their making and the reading of their fields
are written as the runtime's functions, which do what was written where Python runs and work on
tuples where a graph is compiled.  What is not known to be the same there keeps all steps eager.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from isograd.convert.training import record_writing as write
from isograd.convert.training.index import Index
from isograd.convert.training.record_dictionaries import (
    is_ordered_dictionary,
    returns_dictionary,
    tells_ordered,
)
from isograd.convert.training.record_elements import (
    element_methods,
    elements_read,
    may_be_record,
    run_by,
)
from isograd.convert.training.record_writing import Written
from isograd.convert.training.records import Imports, Record, RecordError, Records
from isograd.scan.names_in_place import changes_in_place
from isograd.static_graph.scope import below

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_ENTRIES = ("forward", "__call__")
#: They ask an object for what a tuple does not answer as it does.
_ASKING = frozenset(f"builtins.{n}" for n in "hasattr getattr setattr delattr vars type".split())
_COPYING = ("dataclasses.", "copy.")
#: Classes of which a graph's tuple is an instance, and a dataclass's object is none.
_TUPLES = ("builtins.tuple", "builtins.object", "collections.abc.", "typing.")
#: Attributes of named tuples that a tuple has not.
_OF_NAMED_TUPLES = frozenset("_asdict _replace _fields _make _field_defaults".split())


def records_written(trees: Mapping[str, ast.Module], imports: Imports) -> dict[str, Written]:
    """What is written in each file; nothing where no step makes a record or a dictionary.

    trees: of all files, their loops written anew.  Raises RecordError where steps have to stay
    eager.
    """
    uses = _Uses(trees, Records(trees, imports), Index.of(trees.items()))
    uses.find()
    return uses.found()


@dataclass
class _Uses:
    """The functions that are compiled, and the records that they make.

    made: the calls that make one.  written: what is written in place of nodes, by file.
    """

    trees: Mapping[str, ast.Module]
    records: Records
    index: Index
    made: dict[ast.Call, Record] = field(default_factory=dict)
    compiled: list[tuple[str, _Function]] = field(default_factory=list)
    written: dict[str, Written] = field(default_factory=dict)

    def find(self) -> None:
        """Find what is compiled, and which records that makes."""
        functions = self.index.functions
        starts = [f for name in _ENTRIES for f in functions.get(name, ()) if self.index.owner(f)]
        starts += [one for _, maker in self._makers() for one in write.inner(maker, is_step=False)]
        starts += self._handed_on()
        reached = {*starts, *self.index.reached(starts)}
        placed = [(self.index.file(one), one) for one in reached]
        self.compiled = sorted(placed, key=lambda pair: (pair[0], pair[1].lineno))
        for file, function in self.compiled:
            for call in (node for node in run_by(function) if isinstance(node, ast.Call)):
                if (record := self.records.named(call.func, file)) is not None:
                    self.made[call] = record

    def found(self) -> dict[str, Written]:
        """What is written; raises RecordError where a record is used in no known way."""
        self.kinds = list(dict.fromkeys(self.made.values()))
        self.of_records = {method for one in self.kinds for _, _, method in one.methods.values()}
        self.places = {n: at for k in self.kinds if k.is_tuple for at, n in enumerate(k.fields)}
        self.fields = {name for one in self.kinds for name in one.fields}
        is_ordered = self._write_dictionaries()
        self._look_at_classes()
        for file, function in self.compiled if self.made else ():
            if function not in self.of_records:
                self._look_at(file, function)
        if self.places:
            self._look_at_named_tuples()
        self._look_at_elements()
        if self.made or is_ordered or self._returns_dictionary():
            for file, maker in self._makers():
                self._write_steps(file, maker)
        return self.written

    def _write_steps(self, file: str, maker: ast.FunctionDef) -> None:
        """What leaves a step is no tuple any more where it was none."""
        scope = self.records.scopes[file]
        shown = [
            part
            for forward in write.inner(maker, is_step=False)
            for part in write.returned(forward)
            if may_be_record(part, forward, scope, self.index)
        ]
        if self.made or shown:
            for node, made in write.steps(maker, shown):
                self._write(file, node, made)

    def _write_dictionaries(self) -> bool:
        """`OrderedDict()` in what is compiled is `{}`, unless something asks which one it is."""
        found = [
            (file, node)
            for file, function in self.compiled
            for node in run_by(function)
            if isinstance(node, ast.Call) and is_ordered_dictionary(node, self.records.scopes[file])
        ]
        scopes = (self.records.scopes[name] for name in self.trees)
        if not found or tells_ordered(self.trees.values(), scopes):
            return False
        for file, node in found:
            self._write(file, node, write.dictionary(node))
        return True

    def _returns_dictionary(self) -> bool:
        """Whether anything that is compiled returns a dictionary."""
        return any(
            returns_dictionary(one, self.records.scopes[file]) for file, one in self.compiled
        )

    def _write(self, file: str, node: ast.AST, made: write.Made) -> None:
        self.written.setdefault(file, {})[node] = made

    def _makers(self) -> Iterator[tuple[str, ast.FunctionDef]]:
        """The functions that make steps."""
        for file, tree in self.trees.items():
            for node in tree.body:
                if isinstance(node, ast.FunctionDef) and write.is_maker(node):
                    yield file, node

    def _handed_on(self) -> Iterator[_Function]:
        """Functions that are read as values: what calls them is not seen."""
        for name, functions in self.index.functions.items():
            reads = self.index.reads.get(name, ())
            if not all(self._is_called(node) or self._is_given_to_loader(node) for node in reads):
                yield from functions

    def _is_given_to_loader(self, node: ast.expr) -> bool:
        """Whether a function puts batches together, outside of all steps."""
        parent = self.index.parents[node]
        call = self.index.parents.get(parent) if isinstance(parent, ast.keyword) else parent
        if not isinstance(call, ast.Call):
            return False
        scope = self.records.scopes[self.index.file(call)]
        return scope.qualified(call.func).startswith("torch.utils.data.")

    def _is_called(self, node: ast.AST) -> bool:
        parent = self.index.parents[node]
        return isinstance(parent, ast.Call) and parent.func is node

    # ---- classes

    def _look_at_classes(self) -> None:
        """Every class and every place where an object is made has to be known."""
        names: dict[str, Record] = {}
        places: dict[str, int] = {}
        for call, one in self.made.items():
            where, given = self.index.file(call), one.given(call)
            if one.problem:
                raise RecordError(where, call, f"{one.name} is made in a step, and {one.problem}")
            if names.setdefault(one.name, one) is not one:
                raise RecordError(where, call, f"two classes are named {one.name}")
            if given is None:
                raise RecordError(where, call, f"what {one.name} is made of is not known")
            for place, name in enumerate(one.fields if one.is_tuple else ()):
                if places.setdefault(name, place) != place:
                    raise RecordError(where, call, f"{name} has another place in another tuple")
            self._write(where, call, write.making(one, given))
        for one in self.kinds:
            self._write(one.file, one.node, write.noting(one))

    # ---- functions

    def _look_at(self, file: str, function: _Function) -> None:
        for node in run_by(function):
            if isinstance(node, ast.Attribute) and not self._is_apart(node, file):
                self._look_at_attribute(file, node)
            if isinstance(node, ast.Call):
                self._look_at_call(file, node)
            elif isinstance(node, (ast.Name, ast.Attribute)) and not self._is_called(node):
                self._look_at_name(file, node)

    def _look_at_attribute(self, file: str, node: ast.Attribute) -> None:
        methods = {m for one in self.kinds for m in one.methods if not m.startswith("__")}
        if node.attr in methods or node.attr in ("__dict__", "__class__"):
            raise RecordError(file, node, f"{ast.unparse(node)} may be read of a record in a step")
        if node.attr not in self.fields or self._is_called(node):
            return  # called, it is no field of a tensor's
        self._read_field(file, node)

    def _read_field(self, file: str, node: ast.Attribute) -> None:
        if not isinstance(node.ctx, ast.Load) or is_changed(node, self.index.parents):
            raise RecordError(file, node, f"{ast.unparse(node)} may change a record in a step")
        if any(isinstance(one, ast.JoinedStr) for one in self.index.above(node)):
            raise RecordError(file, node, f"{ast.unparse(node)} of a record stands in a text")
        self._write(file, node, write.reading(node, self.places.get(node.attr)))

    def _is_apart(self, node: ast.Attribute, file: str) -> bool:
        """Whether what an attribute is read of is surely nothing that a step has made."""
        root: ast.expr = node.value
        while isinstance(root, (ast.Attribute, ast.Subscript)):
            root = root.value
        return isinstance(root, ast.Name) and self._is_own(root, file)

    def _is_own(self, root: ast.Name, file: str) -> bool:
        """Whether a name is that of a method's object, or of a module or class."""
        function = self.index.function(root)
        while function is not None:
            if self.index.owner(function) is not None and _parameters(function)[:1] == [root.id]:
                return function not in self.of_records and not _stores(function, root.id)
            if root.id in _parameters(function) or _stores(function, root.id):
                return False
            function = self.index.function(function)
        scope = self.records.scopes[file]
        return root.id in scope.imports or root.id in scope.classes

    def _look_at_call(self, file: str, call: ast.Call) -> None:
        called = self.records.scopes[file].qualified(call.func)
        if called == "builtins.isinstance" and len(call.args) == 2:
            self._look_at_question(file, call)
            return
        asked = call.args[0] if call.args else None
        while isinstance(asked, (ast.Attribute, ast.Subscript)):
            asked = asked.value
        is_own = isinstance(asked, ast.Name) and self._is_own(asked, file)
        if called.startswith(_COPYING) or (called in _ASKING and not is_own):
            raise RecordError(file, call, f"{ast.unparse(call)} may ask a record in a step")

    def _look_at_question(self, file: str, call: ast.Call) -> None:
        """`isinstance(x, tuple)`: while compiled, a dataclass's object is one."""
        asked, kinds = call.args
        parts = kinds.elts if isinstance(kinds, ast.Tuple) else [kinds]
        own = {place for one in self.kinds for place in self.records.lineage_of(one)}
        if any(self.records.place(part, file) in own for part in parts):
            raise RecordError(file, call, f"{ast.unparse(call)} asks for a record in a step")
        if all(one.is_tuple for one in self.kinds):
            return
        if not any(self._may_be_tuple(part, file) for part in parts):
            return
        if not isinstance(asked, ast.Name):
            raise RecordError(file, call, f"{ast.unparse(call)} may ask a record in a step")
        self._write(file, call, write.asking(call, asked.id))

    def _may_be_tuple(self, kind: ast.expr, file: str) -> bool:
        """Whether a tuple may be an instance of a class."""
        scope = self.records.scopes[file]
        name = scope.qualified(kind)
        is_known = "." in name or self.records.place(kind, file) is not None
        return name.startswith(_TUPLES) or not is_known

    def _look_at_name(self, file: str, node: ast.expr) -> None:
        record = self.records.named(node, file)
        if record is not None and record in self.kinds:
            raise RecordError(file, node, f"{record.name} is handed on in a step")

    # ---- named tuples, and elements of dataclasses

    def _look_at_named_tuples(self) -> None:
        """Behind a step a named tuple is a tuple: all of the project reads it so."""
        for file, tree in self.trees.items():
            for node in below(tree):
                if not isinstance(node, ast.Attribute) or node in self.written.get(file, {}):
                    continue
                function = self.index.function(node)
                if node.attr in _OF_NAMED_TUPLES:
                    raise RecordError(file, node, f"{ast.unparse(node)} is none of a tuple's")
                is_read = node.attr in self.places and isinstance(node.ctx, ast.Load)
                if is_read and not self._is_called(node) and function not in self.of_records:
                    if not self._is_apart(node, file):
                        self._read_field(file, node)

    def _look_at_elements(self) -> None:
        """`record[1]` where a dataclass says what that is."""
        if not any(one.has_elements for one in self.kinds):
            return
        found = [
            (file, node)
            for file, function in self.compiled
            if function not in self.of_records
            for node in elements_read(function, self.records.scopes[file], self.index)
        ]
        for file, node in found:
            self._write(file, node, write.element(node))
        for file, part, made in element_methods(self.kinds) if found else ():
            self._write(file, part, made)


def is_changed(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether what a node reads is written to: `x.y[0] = 1`, `x.y += 1`, `x.y.add_(1)`."""
    parent: ast.AST = parents[node]
    while isinstance(parent, (ast.Subscript, ast.Attribute)) and parent.value is node:
        if not isinstance(parent.ctx, ast.Load):
            return True
        name = getattr(parent, "attr", "")
        if changes_in_place(name):
            return True
        node, parent = parent, parents[parent]
    return isinstance(parent, ast.AugAssign) and parent.target is node


def _parameters(function: _Function) -> list[str]:
    args = function.args
    named = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    return [part.arg for part in named if part is not None]


def _stores(function: _Function, name: str) -> bool:
    return any(
        isinstance(part, ast.Name) and part.id == name and not isinstance(part.ctx, ast.Load)
        for part in below(function)
    )
