"""What passes ask of one file while it is converted."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections import ChainMap
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property

from isograd.convert import types_and_settings
from isograd.convert.aliases import Scope
from isograd.convert.analysis.attributes import attribute_values
from isograd.convert.analysis.carrying import Carrying
from isograd.convert.analysis.dictionaries import MODULE_DICT, keys_of
from isograd.convert.analysis.emptiness import Emptiness
from isograd.convert.analysis.holdings import HeldValue
from isograd.convert.analysis.kept_on_self import OwnReads
from isograd.convert.analysis.layers import Held, is_path
from isograd.convert.data_aliases import DataAliases, data_aliases
from isograd.convert.dtypes_of_python import dtypes_of_python
from isograd.convert.empty_tensors import empty_tensors
from isograd.convert.entries import Entries
from isograd.convert.facts import Facts, Member
from isograd.convert.generated import library
from isograd.convert.layers_passing import calls_that_pass
from isograd.convert.leaves import Place, leaves_of, place_of_leaf
from isograd.convert.lists_of_none import CONTAINERS, hold_none
from isograd.convert.model import Finding
from isograd.convert.names import ImportedNames, resolve
from isograd.convert.places import place
from isograd.convert.returned_views import calls_that_view
from isograd.convert.runtime_uses import Reason
from isograd.convert.settings import LayersInPlace, Settings
from isograd.convert.spelling import Spelling
from isograd.convert.text import Text, comments, format_strings, wide
from isograd.convert.tree import Tree, is_none
from isograd.convert.use import Use
from isograd.knowledge.entry import Applicability, Entry
from isograd.scan.names import TorchNames
from isograd.scan.values import ANY_MODULE, ClassInfo, Made

_MODULE = "torch.nn.Module"
#: What stands in a layer's place, and has no attributes in either framework.
_WITHOUT_PARAMETERS = "torch.nn.Identity"
_PARAMETER = "torch.nn.Parameter"
_FUNCTION = "torch.autograd.Function"
#: Handlers that a failing import reaches.
_FAILS = frozenset(("ImportError", "ModuleNotFoundError", "Exception", "BaseException"))


@dataclass
class FileFacts:
    """What is known of a file.  Spans and sources are in the form of `text.narrow`."""

    file: str
    text: Text
    tree: Tree
    facts: Facts
    imported: ImportedNames
    names: TorchNames
    answers: Entries
    spelling: Spelling
    settings: Settings
    named: dict[ast.AST, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    #: Whether a function's name may hold integers, as far as it was asked.
    integer_names: dict[tuple[ast.AST | None, str], bool] = field(default_factory=dict)
    #: Comments to write, by the statement that they are about.
    comments: dict[ast.stmt, list[str]] = field(default_factory=dict)
    kept: dict[ast.stmt, list[str]] = field(default_factory=dict)
    done: set[ast.AST] = field(default_factory=set)
    #: Statements that are left out.
    removed: set[ast.stmt] = field(default_factory=set)
    #: What stays unconverted in statements that run when the file is imported.
    left_at_import: dict[ast.stmt, tuple[ast.expr, str]] = field(default_factory=dict)
    #: Of what an expression that is written anew begins with: its source is now that of the whole.
    sources_before: dict[ast.expr, str] = field(default_factory=dict)
    scopes: dict[ast.AST, Scope] = field(default_factory=dict)
    #: The names of which each function asks a tensor's methods, where something asked for them.
    tensors: dict[ast.AST, frozenset[str]] = field(default_factory=dict)
    #: What is written into in a function or the module; whether as it is only done to a tensor.
    writes: dict[ast.AST, dict[str, bool]] = field(default_factory=dict)
    #: The functions of which a result is written into; None before anything asks.
    written_results: frozenset[str] | None = None
    #: The nodes that write or give another name; None before anything asks.
    writing: Sequence[ast.AST] | None = None
    #: What is imported from numpy and scipy, and what they made; None before anything asks.
    names_of_numpy: frozenset[str] | None = None
    has_arrays: bool | None = None
    made_by_numpy: Mapping[str, Set[ast.AST | None]] | None = None
    #: How attributes of layers are read in the port; `{}` is the layer.
    layer_names: dict[ast.expr, str] = field(default_factory=dict)
    #: The functions of `runtime/cells.py` that the port holds, by the names that it gives them.
    factories: dict[str, str] = field(default_factory=dict)
    #: Why runtime functions are written, by their names.
    reasons: dict[str, Reason] = field(default_factory=dict)
    #: Those that the port makes a class of: torch's name for it and the port's.
    factory_classes: dict[str, tuple[str, str]] = field(default_factory=dict)
    #: The calls that make buffers, by class and name, of the classes that were asked for.
    buffers: dict[ast.ClassDef, dict[str, ast.Call]] = field(default_factory=dict)
    #: What passes read as names of what they keep on self, by method and attribute.
    kept_names: dict[ast.AST, dict[str, OwnReads]] = field(default_factory=dict)
    #: By their classes; None before anything asks.
    layers_in_place: dict[ast.AST | None, LayersInPlace] | None = None
    #: Packages of the project itself.
    own_roots: frozenset[str] = frozenset()
    uses: int = 0
    converted: int = 0
    #: What `use` has found.
    _uses: dict[ast.AST, Use | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = self.imported.torch
        own = {
            node.name: node
            for node in self.tree.module.body
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name in known
        }
        for node in self.tree.of(ast.Name):
            if node.id not in known or self.tree.binds(node.id, node):
                continue
            if node.id not in own or not self._is_behind(node, own[node.id]):
                part, api = resolve(node, self.tree, known[node.id], self.names)
                self.named[part] = api
        self.named.update(dtypes_of_python(self.tree, self._use))
        for call in self.tree.of(ast.Call) if self.facts.operators else ():
            if method := self.facts.operators.get(place(call.func)):
                self.named[call.func] = method

    def _is_behind(self, node: ast.Name, definition: ast.ClassDef | ast.FunctionDef) -> bool:
        """Whether a name is read when the file has defined it anew: `class Dataset(Dataset)`."""
        return self.tree.function(node) is not None or node.lineno > (definition.end_lineno or 0)

    # ---- what is there

    def is_shaped(self, api: str) -> bool:
        """Whether a class stands as a torch-shaped one in this file."""
        return self.settings.is_shaped(api) or (api in CONTAINERS and self._lists_hold_none)

    def layers_held(self, node: ast.expr) -> frozenset[str]:
        """The classes of torch of which an expression holds an instance; empty: others, too."""
        return self._held.classes(node)

    def held(self, node: ast.expr) -> frozenset[HeldValue] | None:
        """What the project puts where an attribute of a layer is read; None: others, too."""
        term = self.facts.holding.owners.get(place(node))
        return None if term is None else self.settings.holdings.find(term)

    def layers_followed(self, node: ast.expr, name: str) -> frozenset[str]:
        """The layers of torch with an attribute that an expression holds; empty: others, too."""
        apis: set[str] = set()
        for one in self.held(node) or ():
            if not isinstance(one, Made) or one == ANY_MODULE:
                return frozenset()
            entry = self.entry(one.api)
            if entry is None or name in dict(entry.attributes):
                apis.add(one.api)
        return frozenset(apis)

    @cached_property
    def _held(self) -> Held:
        return Held(self.tree, self.named, self.attribute_values)

    @cached_property
    def apis(self) -> frozenset[str]:
        """The APIs of torch that the file names."""
        return frozenset(self.named.values())

    @cached_property
    def _lists_hold_none(self) -> bool:
        return hold_none(self.tree, self.api_of_call)

    @cached_property
    def module_dict_keys(self) -> frozenset[str]:
        """The keys with which the file makes dictionaries of modules."""
        made = [c for c in self.tree.of(ast.Call) if self.api_of_call(c) == MODULE_DICT]
        return frozenset(key for call in made for given in call.args[:1] for key in keys_of(given))

    def use(self, node: ast.AST) -> Use | None:
        """The API of torch that a name or an attribute names, or None; looked up once."""
        if node not in self._uses:
            self._uses[node] = self._use(node)
        return self._uses[node]

    def _use(self, node: ast.AST) -> Use | None:
        api = self.named.get(node)
        if api is not None:
            assert isinstance(node, ast.expr)
            return Use(api, node)
        if not isinstance(node, ast.Attribute):
            return None
        found: Member | None = self.facts.members.get(place(node))
        if found is None:
            return None
        return Use(found.api, node, True, found.is_sure, found.owner)

    def api_of_call(self, node: ast.AST) -> str:
        """The API that a call calls by its name; empty where it is none."""
        if not isinstance(node, ast.Call):
            return ""
        return self.named.get(node.func, "")

    def entry(self, api: str) -> Entry | None:
        """What is known of an API."""
        return self.answers.entry(api)

    def stands_for(self, api: str) -> bool:
        """Whether something of MindSpore's replaces an API."""
        if (
            api in types_and_settings.TYPES
            or api in types_and_settings.DECORATORS
            or api in types_and_settings.ANSWERS
        ):
            return True
        entry = self.entry(api)
        return entry is not None and entry.applicability is not Applicability.HAND

    def is_ported_module_member(self, use: Use) -> bool:
        """Whether a method of modules is one of the class that replaces nn.Module in the port."""
        head, _, name = use.api.rpartition(".")
        if head != _MODULE:
            return False
        if name in types_and_settings.OF_CELLS:
            return True
        return self.settings.is_shaped(_MODULE) and name in library().members("Module")

    def class_info(self, node: ast.AST) -> ClassInfo | None:
        """What is known of a class that the file defines."""
        return self.facts.classes.get(place(node))

    def is_module_class(self, node: ast.AST) -> bool:
        """Whether a class is a module, or mixed into one."""
        info = self.class_info(node)
        if info is None or info.root == _FUNCTION:
            return False
        return info.is_module or info in self.settings.mixed

    @cached_property
    def carrying(self) -> Carrying:
        """Which modules of the file get their mode from the module around them."""
        return Carrying(
            self.tree,
            lambda node: self.named.get(node, ""),
            lambda api: self.names.kind(api) == "M",
            self.is_module_class,
            self.facts.built,
            lambda name: self.settings.starting.is_taken(name, self.file),
        )

    def source(self, node: ast.AST) -> str:
        """The node's text with the edits inside it."""
        return self.text.source(*self.text.span(node))

    def is_in_place(self, node: ast.AST) -> bool:
        """Whether a node stands where the tree says: older Pythons misplace parts of f-strings."""
        if node not in self.tree.formatted:
            return True
        made = parsed(self.text.raw(node))
        return made is not None and ast.dump(made) == ast.dump(node)

    def is_guarded(self, node: ast.AST) -> bool:
        """Whether the code goes on where an import fails here."""
        inner = node
        for part in self.tree.above(node):
            if isinstance(part, ast.Try) and inner in part.body:
                for handler in part.handlers:
                    if handler.type is None or any(
                        isinstance(name, ast.Name) and name.id in _FAILS
                        for name in ast.walk(handler.type)
                    ):
                        return True
            if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                return False
            inner = part
        return False

    def comments_between(self, start: int, end: int) -> list[str]:
        """The comments from one offset to another, in narrow form."""
        if "#" not in self.text.original[start:end]:
            return []
        first = bisect_left(self.comment_places, (start, ""))
        last = bisect_left(self.comment_places, (end, ""))
        return [text for _, text in self.comment_places[first:last]]

    @cached_property
    def data_aliases(self) -> DataAliases:
        """The names that hold tensors' data and are written to."""
        if ".data" not in self.text.original and ".detach()" not in self.text.original:
            return DataAliases()
        return data_aliases(self.tree, self.named)

    @cached_property
    def attribute_values(self) -> Mapping[tuple[ast.AST, str], list[ast.expr]]:
        """What the classes' attributes are bound to."""
        return attribute_values(self.tree)

    @cached_property
    def views(self) -> Mapping[ast.AST, str]:
        """The torch APIs that names and attributes mean, `self.drop` of a dropout among them.

        For whether a value is one with another (`aliases`).
        """
        passing = calls_that_pass(self.tree, self.named, self.attribute_values)
        passing |= calls_that_view(self.tree, self.named)
        return ChainMap(passing, self.named) if passing else self.named

    def holds_data(self, name: ast.expr) -> bool:
        """Whether a name holds a tensor's data that is written to."""
        if not isinstance(name, ast.Name) or not self.data_aliases.names:
            return False
        return (self.tree.function(name), name.id) in self.data_aliases.names

    def is_leaf(self, node: ast.expr) -> bool:
        """Whether a name or an attribute may hold what a gradient is asked of.

        Of another path the class may be the same: `m.layers[-1].w` is a layer's `self.w`.
        """
        if isinstance(node, ast.Attribute):
            return node.attr in self.attributes_of_leaves
        if not isinstance(node, ast.Name) or not self.leaves:
            return False
        return place_of_leaf(node, self.tree) in self.leaves

    @cached_property
    def leaves(self) -> Collection[Place]:
        """Where the file binds what a gradient is asked of."""
        return leaves_of(self.tree) if "requires_grad" in self.text.original else ()

    @cached_property
    def attributes_of_leaves(self) -> frozenset[str]:
        """The attributes, of whatever object, that the file binds to such tensors."""
        return frozenset(name.rpartition(".")[2] for _, name in self.leaves if "." in name)

    @cached_property
    def empty_tensors(self) -> frozenset[ast.expr]:
        """The calls that make a tensor without elements of one axis."""
        return empty_tensors(self.tree, self.api_of_call)

    @cached_property
    def emptiness(self) -> Emptiness:
        """Which expressions may be tensors without elements."""
        facts = self.facts

        def api_of(node: ast.AST) -> str:
            use = self.use(node)
            return use.api if use is not None else ""

        return Emptiness(self.tree, api_of, facts.selections, self.empty_tensors)

    @cached_property
    def format_strings(self) -> list[tuple[int, str]]:
        """Each f-string with its offset and its quotes."""
        return format_strings(self.text)

    @cached_property
    def comment_places(self) -> list[tuple[int, str]]:
        """Each comment with its offset."""
        if "#" not in self.text.original:
            return []
        return comments(self.text)

    def is_parameter(self, node: ast.expr) -> bool:
        """Whether an expression names a Parameter of a module: `m.weight`, `self.token`."""
        if not isinstance(node, ast.Attribute) or not is_path(node):
            return False
        apis = self.layers_held(node.value) or self.layers_followed(node.value, node.attr)
        held = [self.entry(api) for api in apis - {_WITHOUT_PARAMETERS}]
        if held:
            return node.attr in ("weight", "bias") and all(
                entry is not None and node.attr in dict(entry.attributes) for entry in held
            )
        if getattr(node.value, "id", "") != "self":
            return False
        for owner in self.tree.above(node):
            values = self.attribute_values.get((owner, node.attr), [])
            values = [value for value in values if not is_none(value)]
            if values and isinstance(owner, ast.ClassDef):
                is_buffer = (owner.name, node.attr) in self.settings.buffers  # in another branch
                return not is_buffer and all(map(self._makes_parameter, values))
        return False

    def _makes_parameter(self, value: ast.expr) -> bool:
        return self.api_of_call(value) == _PARAMETER


def parsed(code: str) -> ast.expr | None:
    """The expression that code is, in narrow or wide form; None where it is none."""
    try:
        return ast.parse(wide(code).strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None
