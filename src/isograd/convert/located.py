"""Scan's reading of a file, with each member of a tensor or module at its node of the tree."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping

from isograd.convert.analysis.attribute_sets import attribute_set
from isograd.convert.analysis.buffers import WORD, buffers_of, may_be_module
from isograd.convert.analysis.carrying import Carrying
from isograd.convert.analysis.class_questions import WORDS, given_to, questions
from isograd.convert.analysis.comparisons import compared
from isograd.convert.analysis.complex_numbers import (
    makes_complex,
    may_write_complex,
    writes_complex,
)
from isograd.convert.analysis.given_tensors import times_repeated
from isograd.convert.analysis.handed_in import (
    MODES,
    constructors_of,
    is_no_module,
    may_leave_training,
)
from isograd.convert.analysis.holding import Reader
from isograd.convert.analysis.mode_reads import WORD as MODE
from isograd.convert.analysis.mode_reads import modes_read
from isograd.convert.analysis.named_arguments import (
    called_by_name,
    is_made_in_place,
    made_otherwise,
)
from isograd.convert.analysis.private import PRIVATE, of_modules, only_reads
from isograd.convert.analysis.starting import asked_modules, elsewhere_of, leaves_training, looks_up
from isograd.convert.analysis.unrecorded_functions import computes_in_modes, sets_own_modes
from isograd.convert.doubles import DOUBLES
from isograd.convert.facts import Facts, Member
from isograd.convert.heard import Heard
from isograd.convert.places import place
from isograd.convert.training.written_names import WRITTEN
from isograd.convert.tree import Tree, read_tree
from isograd.scan.names import torch_names
from isograd.scan.names_in_place import SPECIAL, operator_method
from isograd.scan.sources import Source
from isograd.scan.state import REFERENCE, UNSURE, ModuleSummary, Project, State
from isograd.scan.statements import Statements
from isograd.scan.values import (
    ANY_MODULE,
    SELECTING,
    TENSOR,
    Api,
    ClassInfo,
    Foreign,
    Instance,
    Made,
    Plain,
    Scope,
    Tensor,
    Value,
    is_module,
)
from isograd.scan.walker import BUILTINS

_ANNOTATION = "annotation"
_UTILITIES = "torch.nn.utils."
#: Functions that put other parameters in place of a layer's own, by torch's names.
_REPARAMETRIZING = (
    *(f"{_UTILITIES}{name}" for name in
      ("weight_norm", "remove_weight_norm", "spectral_norm", "remove_spectral_norm",
       "parametriz", "parametrize", "prune", "fusion")),
)  # fmt: skip
_SCALER = "torch.amp.GradScaler"
#: Methods that nothing plain has: what has one is a number at first, `total = 0; total += loss`.
_OF_NO_NUMBER = frozenset("backward zero_grad to cuda cpu detach numpy".split())
#: Layers, and what holds them, that behave otherwise in training.
WITH_MODES = re.compile(
    r"torch\.nn\.(\w*Dropout\w*|\w*BatchNorm\w*|InstanceNorm\w*|RReLU|RNN|LSTM|GRU|Transformer\w*|"
    r"MultiheadAttention|Module\.(train|eval|training))$"
)
#: Lists of modules, which MindSpore indexes by numbers of Python's alone.
MODULE_LISTS = ("torch.nn.ModuleList", "torch.nn.Sequential")
#: The first part of what a file imports from.
_IMPORTS = re.compile(r"^[ \t]*(?:from|import)[ \t]+(\.|\w+)", re.MULTILINE)
_KINDS = frozenset(
    (ast.Name, ast.Attribute, ast.Call, ast.Dict, ast.Assign, ast.FunctionDef,
     ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
)  # fmt: skip


class _Located(Statements):
    """Remembers the members of what is known, by their nodes."""

    def __init__(self, state: State, facts: Facts, names: frozenset[str]) -> None:
        super().__init__(state)
        self.facts = facts
        self.watched = names | PRIVATE
        self._in_annotation = 0

    def _record_attribute(self, node: ast.Attribute, owner: Value, api: str) -> None:
        super()._record_attribute(node, owner, api)
        head, _, last = api.rpartition(".")
        is_class = head == _SCALER or self.state.names.kind(head) in ("c", "M", "O", "S")
        is_member = is_class and last == SPECIAL.get(node.attr, node.attr)
        if is_member and owner.__class__ is not Api and self.state.origin is None:
            self.facts.members[place(node)] = Member(api, is_sure=True, owner=owner)

    def bitwise(self, node: ast.BinOp | ast.UnaryOp, operands: tuple[Value, ...]) -> None:
        self.facts.operands[place(node)] = operands

    def computed(self, node: ast.BinOp, left: Value, right: Value) -> None:
        if isinstance(left, Tensor) or isinstance(right, Tensor):
            self.facts.made_of_tensors.add(place(node))
            if not isinstance(node.op, (ast.Add, ast.Mult)):
                return
            self.facts.operands[place(node)] = (left, right)
            if (times := times_repeated(node, left, right)) is not None:
                self.facts.repeated.add(place(times))

    def called(
        self,
        node: ast.Call,
        value: Value,
        owner: Value,
        arguments: list[Value],
        keywords: dict[str, Value],
    ) -> Value:
        self.facts.works_in_place |= is_made_in_place(node, value)
        self.facts.named_calls |= called_by_name(value, keywords)
        self.facts.made_otherwise |= made_otherwise(node, value, arguments)
        if isinstance(value, Api) and value.name.startswith(_REPARAMETRIZING):
            module = arguments[0] if arguments else keywords.get("module")
            known = isinstance(module, Made) and module != ANY_MODULE
            self.facts.reparametrized.add(module.api if known else "")  # type: ignore[union-attr]
        elif isinstance(value, ClassInfo) and value.is_module:
            before = self.facts.built.setdefault(place(node), value)
            self.facts.built[place(node)] = value if before is value else None
            if getattr(node.func, "id", getattr(node.func, "attr", "")) == value.name:
                self.facts.made.add(value.name)  # no `cls()`, which its own methods say
            self._keep_arguments(node, arguments, keywords)
        elif isinstance(value, Foreign) and (method := operator_method(value.name)):
            if arguments and (arguments[0] is None or isinstance(arguments[0], Tensor)):
                is_known = arguments[0] is not None
                api = f"torch.Tensor.{method}" if is_known else ""
                self.facts.operators[place(node.func)] = api
        word = getattr(node.func, "id", "")
        if word == "setattr" and len(node.args) == len(arguments) == 3:
            name = str(getattr(node.args[1], "value", ""))
            self._keep_set(node, arguments[0], name, node.args[2])
            if may_be_module(arguments[0]) and may_be_module(arguments[2]):
                is_known = is_module(arguments[0]) or is_module(arguments[2])
                self.facts.sets_of_children[place(node)] = is_known
        if word in ("getattr", "hasattr", "setattr") and arguments:
            self.facts.owners[place(node)] = arguments[0]
        self.facts.calls.add(given_to(node, (*arguments, *keywords.values())))
        self.facts.looks_up |= looks_up(node, value, arguments)
        self.facts.asked_modules |= asked_modules(node, arguments, self.state.project)
        if isinstance(owner, Instance) and leaves_training(node) and self._is_constructed(owner):
            self.facts.in_inference.add(owner.of.name)
        return super().called(node, value, owner, arguments, keywords)

    def _keep_arguments(
        self, node: ast.Call, arguments: list[Value], keywords: dict[str, Value]
    ) -> None:
        """Keep which arguments of a call are no modules."""
        given = list(zip(node.args, arguments, strict=False))
        given += [(k.value, keywords[k.arg]) for k in node.keywords if k.arg in keywords]
        self.facts.no_modules.update(place(part) for part, value in given if is_no_module(value))

    def _keep_set(self, node: ast.AST, owner: Value, name: str, value: ast.expr | None) -> None:
        if name in self.watched:
            self.facts.layer_owners[place(node)] = owner
        if may_be_module(owner):
            self.facts.sets_of_modules.add(place(node))
        if getattr(getattr(node, "value", None), "id", "") == "self":
            return
        made = attribute_set(owner, name, value)
        if made is not None:
            self.facts.sets[place(node)] = made

    def added(self, node: ast.expr, value: Value) -> None:
        self.facts.values[place(node)] = value

    def changed(self, target: ast.Attribute) -> None:
        self._keep_set(target, self._owner(target.value), target.attr, None)

    def _is_constructed(self, owner: Instance) -> bool:
        """Whether the constructor of an instance is what is read now."""
        inner = self.state.functions[-1] if self.state.functions else None
        return inner is not None and inner.owner is owner.of and inner.name == "__init__"

    def picked(self, node: ast.Subscript, owner: Value, index: Value) -> None:
        if owner is not None and owner.api in MODULE_LISTS:  # type: ignore[union-attr]
            self.facts.lists.add(place(node.value))
        if isinstance(index, Tensor):
            self.facts.picked.add(place(node))
            self.facts.selections[place(node)] = owner is None and index in SELECTING

    def met(self, node: ast.Attribute, owner: Value) -> None:
        if node.attr in PRIVATE:
            self.facts.owners[place(node)] = owner
            if node.attr == "_parameters":
                self.facts.private.add(place(node))
            return
        self.facts.layer_owners[place(node)] = owner
        if owner.__class__ is Made and isinstance(node.ctx, ast.Load):
            self.facts.read_of_layers.add((owner.api, node.attr))

    def _bind_attribute(self, target: ast.Attribute, value: Value) -> None:
        owner = self._owner(target.value)
        if target.attr == "training":
            self.facts.has_modes = True
        self._keep_set(target, owner, target.attr, self.assigned)
        if self.assigned is not None:
            self.facts.values[place(target)] = value
        super()._bind_attribute(target, value)

    def annotation_value(self, node: ast.expr | None) -> Value:
        self._in_annotation += 1
        found = super().annotation_value(node)
        self._in_annotation -= 1
        return found

    def _method(self, node: ast.Attribute) -> tuple[Value, Value]:
        found, owner = super()._method(node)
        if node.attr in ("forward", "extra_repr") or _is_of_modules(node, owner):
            self.facts.owners[place(node)] = owner
        if getattr(node.value, "id", "") != "self":
            self.facts.called.add(node.attr)
        is_number_at_first = owner.__class__ is Plain and node.attr in _OF_NO_NUMBER
        if (found is None and owner is None) or is_number_at_first:
            self.facts.unknown.add(place(node))
        return found, owner

    def _read(self, node: ast.Attribute, found: Value) -> Value:
        return TENSOR if node.attr == "grad" else super()._read(node, found)

    def _of_unknown(self, node: ast.Attribute) -> Value:
        self.facts.unknown.add(place(node))
        return super()._of_unknown(node)

    def record(self, line: int, column: int, api: str, how: str, node: ast.AST) -> None:
        if self._in_annotation and how is REFERENCE:
            how = _ANNOTATION
        super().record(line, column, api, how, node)
        if how is UNSURE and self.state.origin is None:
            function = node.func if isinstance(node, ast.Call) else node
            self.facts.members.setdefault(place(function), Member(api, is_sure=False))
        elif isinstance(node, ast.Call) and api.startswith("torch.Tensor."):
            self.facts.members[place(node.func)] = Member(api, is_sure=True)


def locate(
    source: Source,
    project: Project,
    *,
    name: str = "",
    package: str = "",
    attributes: frozenset[str] = frozenset(),
    mixed: Mapping[str, ClassInfo] | None = None,
) -> tuple[Facts, ModuleSummary]:
    """Read one file; returns what its conversion needs, and what other files may import.

    attributes: names of what torch's layers hold.  mixed: classes that other files mix in.
    """
    facts = Facts()
    summary = ModuleSummary(name, is_package=bool(name) and name == package)
    state = State(torch_names(), project, summary, package, Heard(facts), source.text)
    state.mixed.update(mixed or {})
    state.env = Scope(BUILTINS)
    state.env["__name__"] = state.env["__file__"] = Plain()
    state.env.update(WRITTEN)
    walker = _Located(state, facts, attributes)
    walker.pending = []
    walker.body(source.tree.body)
    walker.finish(state.env)
    facts.apis = frozenset(api for _, _, api, _ in state.uses)
    if any(how is REFERENCE and api.startswith(_REPARAMETRIZING) for _, _, api, how in state.uses):
        facts.reparametrized.add("")
    facts.modes_read = modes_read(source.tree) if MODE in source.text else frozenset()
    facts.has_modes = facts.has_modes or any(map(WITH_MODES.match, facts.apis))
    facts.private = of_modules(facts.private, facts.owners)
    facts.reads_private = bool(facts.private) and not only_reads(source.tree, facts.private)
    facts.compared = compared(source.tree, state)
    if any(word in source.text for word in WORDS):
        facts.asking = questions(source.tree, state)
    if WORD in source.text:
        facts.buffers = buffers_of(source.tree)
    facts.makes_doubles = not DOUBLES.isdisjoint(facts.apis)
    facts.makes_complex = any(map(makes_complex, facts.apis)) or (
        may_write_complex(source.text) and writes_complex(source.tree)
    )
    takes = _takes_of_project(source.text, project)
    _of_tree(source, state, facts, attributes, takes=takes)
    summary.exports = {
        key: value
        for key, value in state.env.items()
        if value is not None and value.__class__ is not Plain
    }
    return facts, summary


def _is_of_modules(node: ast.Attribute, owner: Value) -> bool:
    """Whether a list of modules is changed as lists are."""
    is_change = node.attr in ("pop", "insert", "extend")
    return is_change and isinstance(owner, Made) and owner.api in MODULE_LISTS


def _apis(state: State) -> Callable[[ast.AST], str]:
    """The API of torch that stands at a node."""
    apis = {(line, column): api for line, column, api, _ in state.uses}
    return lambda node: apis.get((node.lineno, node.col_offset), "")  # type: ignore[attr-defined]


def _of_tree(
    source: Source, state: State, facts: Facts, attributes: frozenset[str], *, takes: bool
) -> None:
    """What is read off a tree with parents; takes: whether the file may import the project's."""
    has_modules = any(info.is_module for info in facts.classes.values())
    may_leave = any(word in source.text for word in MODES)
    if not (takes or has_modules or may_leave or facts.sets_of_modules):
        return
    tree = read_tree(source.tree, _KINDS)
    facts.leaves_training = may_leave and may_leave_training(tree)
    carrying = _carrying(tree, state, facts)
    found, known = (lambda node: facts.classes.get(place(node))), state.env.__getitem__
    reader = Reader(tree, carrying.api_of, found, known, carrying.is_container)
    facts.holding = reader.read(attributes)
    functions = tree.of(ast.FunctionDef, ast.AsyncFunctionDef) if may_leave else []
    modes = [one for one in functions if one.name in MODES and carrying.owner(one) is not None]
    facts.computes_in_modes = any(map(computes_in_modes, modes))
    facts.sets_own_modes = any(map(sets_own_modes, modes))
    facts.constructors = constructors_of(carrying, facts.classes) if has_modules else {}
    if takes:
        facts.elsewhere = elsewhere_of(tree, carrying, known)


def _takes_of_project(text: str, project: Project) -> bool:
    """Whether a file may import other files of the project."""
    return any(
        root.startswith(".") or project.has(root)
        for root in {found[1] for found in _IMPORTS.finditer(text)}
    )


def _carrying(tree: Tree, state: State, facts: Facts) -> Carrying:
    """Which calls build modules; nothing is known yet of what others take of the file."""

    def is_module_class(node: ast.ClassDef) -> bool:
        info = facts.classes.get(place(node))
        return info is not None and info.is_module

    return Carrying(
        tree,
        _apis(state),
        lambda api: state.names.kind(api) == "M",
        is_module_class,
        facts.built,
        lambda name: True,
    )
