"""One file while it is converted: what passes ask, and what they write."""

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
from isograd.convert.analysis.dictionaries import passed
from isograd.convert.analysis.integers import is_integer
from isograd.convert.analysis.layers import Held, is_path
from isograd.convert.data_aliases import DataAliases, data_aliases
from isograd.convert.dtypes_of_python import dtypes_of_python
from isograd.convert.empty_tensors import empty_tensors
from isograd.convert.entries import Entries
from isograd.convert.generated import library
from isograd.convert.layers_passing import calls_that_pass
from isograd.convert.leaves import Place, leaves_of, place_of_leaf
from isograd.convert.lists_of_none import CONTAINERS, hold_none
from isograd.convert.located import Facts, Member
from isograd.convert.model import Finding, Level
from isograd.convert.names import ImportedNames, resolve
from isograd.convert.places import place
from isograd.convert.settings import LayersInPlace, Settings
from isograd.convert.spelling import Spelling
from isograd.convert.text import Text, comments, format_strings, narrow, wide
from isograd.convert.tree import Tree, is_none
from isograd.convert.use import Use
from isograd.knowledge.entry import Applicability, Entry
from isograd.knowledge.marks import mark, mark_first, packages_in
from isograd.knowledge.rewrite import Call, NotRewritten, Rewritten, reference, rewrite
from isograd.scan.names import TorchNames
from isograd.scan.values import ClassInfo

_MODULE = "torch.nn.Module"
_PARAMETER = "torch.nn.Parameter"
_FUNCTION = "torch.autograd.Function"
#: Handlers that a failing import reaches.
_FAILS = frozenset(("ImportError", "ModuleNotFoundError", "Exception", "BaseException"))


@dataclass
class FileEdit:
    """What a pass sees of a file.  Spans and sources are in the form of `text.narrow`."""

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
    #: By their classes; None before anything asks.
    layers_in_place: dict[ast.AST | None, LayersInPlace] | None = None
    #: Packages of the project itself.
    own_roots: frozenset[str] = frozenset()
    uses: int = 0
    converted: int = 0

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
        self.named.update(dtypes_of_python(self.tree, self.use))

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

    @cached_property
    def _held(self) -> Held:
        return Held(self.tree, self.named, self.attribute_values)

    @cached_property
    def _lists_hold_none(self) -> bool:
        return hold_none(self.tree, self.api_of_call)

    def use(self, node: ast.AST) -> Use | None:
        """The API of torch that a name or an attribute names, or None."""
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

    # ---- what is written

    def replace(self, node: ast.AST, code: str) -> None:
        """Write a node anew; edits inside it are absorbed.  Brackets are the caller's concern."""
        start, end = self.text.span(node)
        if isinstance(node, ast.Attribute) and node not in self.named:
            self.keep_sources(node.value)
        if node in self.tree.formatted:
            code = self._quoted(code, start)
        if self.text.source(start, end) != code:
            self.text.replace(start, end, code)

    def keep_sources(self, node: ast.expr) -> None:
        """Keep how an expression and what it begins with are written, before it is written anew."""
        part = node
        while part not in self.sources_before:
            self.sources_before[part] = self.source(part)
            if isinstance(part, ast.Subscript):
                for inner in ast.walk(part.slice):
                    if isinstance(inner, ast.expr):
                        self.sources_before[inner] = self.source(inner)
            if isinstance(part, ast.Call):
                part = part.func
            elif isinstance(part, (ast.Attribute, ast.Subscript)):
                part = part.value

    def _quoted(self, code: str, at: int) -> str:
        """Code inside an f-string, without the quote that would end it."""
        before = bisect_left(self.format_strings, (at, "")) - 1
        if before < 0:
            return code
        quote = self.format_strings[before][1]
        other = "'" if quote.startswith('"') else '"'
        if len(quote) > 1:
            return code
        return code.replace(quote, other) if other not in code else code

    def is_in_place(self, node: ast.AST) -> bool:
        """Whether a node stands where the tree says: older Pythons misplace parts of f-strings."""
        if node not in self.tree.formatted:
            return True
        made = _parsed(self.text.raw(node))
        return made is not None and ast.dump(made) == ast.dump(node)

    def leave_out(self, node: ast.stmt) -> None:
        """Remove a statement with its line, or put `pass` where its block would be empty."""
        text = self.text
        start, end = text.span(node)
        parent = self.tree.parents[node]
        block = next(
            value
            for _, value in ast.iter_fields(parent)
            if isinstance(value, list) and any(item is node for item in value)
        )
        self.forget(node)
        assert node.end_lineno is not None
        line, stop = text.line_start(node.lineno), text.line_end(node.end_lineno)
        is_alone = not text.original[line:start].strip() and not text.original[end:stop].strip()
        is_last = all(item is node or item in self.removed for item in block)
        if is_alone and (not is_last or isinstance(parent, ast.Module)):
            text.replace(line, text.line_start(node.end_lineno + 1), "")
            self.removed.add(node)
        elif text.original[end:stop].lstrip().startswith("#") and isinstance(parent, ast.Module):
            text.replace(start, text.original.index("#", end), "")  # its comment stays
            self.removed.add(node)
        else:
            text.replace(start, end, "pass")

    def name(self, dotted: str) -> str:
        """A name such as `nn.Cell` or `composites.Conv2d` as this file writes it."""
        return self.spelling.name(dotted)

    def spelled(self, template: str) -> str:
        """Code that is written with the packages of templates, as this file writes it."""
        return self.spelling.spelled(mark(template))

    def unconverted(self, api: str, node: ast.AST | None = None) -> str:
        """An expression that imports, and says what is missing as soon as it is used."""
        raises = ", raises=True" if node is not None and self.is_guarded(node) else ""
        return f'{self.name("composites.unconverted")}("{api}"{raises})'

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

    def finding(
        self,
        node: ast.AST,
        code: str,
        message: str,
        advice: str = "",
        *,
        level: Level = Level.FINISH,
        api: str = "",
    ) -> None:
        """Report a place; what a person has to finish also gets a comment in the code."""
        line, column = node.lineno, node.col_offset  # type: ignore[attr-defined]
        start = self.text.line_start(line)
        before = self.text.original[start : start + column]
        shown = before if before.isascii() else before.encode("latin-1").decode(errors="replace")
        found = Finding(self.file, line, len(shown) + 1, code, message, advice, level, api)
        if found in self.findings:
            return
        self.findings.append(found)
        if level is Level.FINISH:
            said = self.comments.setdefault(self.tree.statement(node), [])
            if message not in said:
                said.append(message)

    def comments_between(self, start: int, end: int) -> list[str]:
        """The comments from one offset to another, in narrow form."""
        if "#" not in self.text.original[start:end]:
            return []
        first = bisect_left(self.comment_places, (start, ""))
        last = bisect_left(self.comment_places, (end, ""))
        return [text for _, text in self.comment_places[first:last]]

    def keep_comment(self, node: ast.AST, comment: str) -> None:
        """Move a comment that has lost its place above the statement."""
        self.kept.setdefault(self.tree.statement(node), []).append(comment)

    def forget(self, node: ast.AST) -> None:
        """No pass needs to look into this node: it is written."""
        self.done.update(ast.walk(node))

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
        return ChainMap(passing, self.named) if passing else self.named

    def holds_data(self, name: ast.expr) -> bool:
        """Whether a name holds a tensor's data that is written to."""
        if not isinstance(name, ast.Name) or not self.data_aliases.names:
            return False
        return (self.tree.function(name), name.id) in self.data_aliases.names

    def is_leaf(self, node: ast.expr) -> bool:
        """Whether a name or an attribute holds what a gradient is asked of."""
        if not isinstance(node, (ast.Name, ast.Attribute)) or not self.leaves:
            return False
        return place_of_leaf(node, self.tree) in self.leaves

    @cached_property
    def leaves(self) -> Collection[Place]:
        """Where the file binds what a gradient is asked of."""
        return leaves_of(self.tree) if "requires_grad" in self.text.original else ()

    @cached_property
    def empty_tensors(self) -> frozenset[ast.expr]:
        """The calls that make a tensor without elements of one axis."""
        return empty_tensors(self.tree, self.api_of_call)

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

    # ---- what the knowledge says

    def rewritten(self, entry: Entry, call: Call) -> Rewritten | NotRewritten:
        """A call in MindSpore's words, spelled as this file does."""
        if entry.applicability is Applicability.HAND:
            reason = entry.difference or f"{entry.api} has no counterpart in MindSpore"
            return NotRewritten(reason)
        result = rewrite(self.answers.marked(entry), call)
        if isinstance(result, NotRewritten):
            return result
        code = result.code if entry.rewrite else mark_first(result.code)
        is_runtime = "composites" in packages_in(code)
        return Rewritten(self.spelling.spelled(code), result.dropped, is_runtime)

    def value(self, entry: Entry) -> str:
        """The name that means a class or function that is passed around; empty if none."""
        if entry.applicability is Applicability.HAND and not entry.value:
            return ""
        return self.spelled(reference(entry))

    def layer(self, entry: Entry) -> str:
        """What makes MindSpore's own layer by torch's arguments; empty where nothing does."""
        if not entry.factory or self.settings.is_shaped(entry.api):
            return ""
        package, _, name = entry.factory.partition(".")
        if package != "cells":
            return self.name(entry.factory)
        if entry.api in self.settings.layers.compared:
            return self.name(f"composites.{name}")  # one for all files
        return self.factories.setdefault(name, self.spelling.unused(name))

    def call(self, node: ast.Call, receiver: str = "") -> Call | NotRewritten:
        """A call's arguments as they are written by now."""
        keywords: dict[str, str] = {}
        for keyword in node.keywords:
            if keyword.arg is not None:
                keywords[keyword.arg] = self.argument(keyword.value)
                continue
            known = passed(keyword.value, self.tree)
            if known is None or any(value in self.named for value in known.values()):
                text = narrow(ast.unparse(keyword.value))
                return NotRewritten(f"the arguments in **{text} are not known")
            keywords |= {name: self.argument(value) for name, value in known.items()}
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        return Call(
            tuple(self.argument(part) for part in node.args),
            keywords,
            receiver,
            frozenset(self.argument(part) for part in given if is_integer(part, self.tree)),
            frozenset(self.source(part) for part in given if self.is_parameter(part)),
        )

    def is_parameter(self, node: ast.expr) -> bool:
        """Whether an expression names a Parameter of a module: `m.weight`, `self.token`."""
        if not isinstance(node, ast.Attribute) or not is_path(node):
            return False
        held = [self.entry(api) for api in self.layers_held(node.value)]
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
                return all(self.api_of_call(value) == _PARAMETER for value in values)
        return False

    def argument(self, node: ast.expr) -> str:
        """An expression that stands as an argument; a generator keeps its brackets."""
        code = self.source(node)
        if code.startswith("(") and not isinstance(node, (ast.Tuple, ast.GeneratorExp)):
            inner = code[1:-1]
            made = _parsed(code)
            if made is not None and not isinstance(made, ast.Tuple) and _is_same(inner, made):
                return inner
        if isinstance(node, ast.GeneratorExp) and not code.startswith("("):
            return f"({code})"
        return code


def _parsed(code: str) -> ast.expr | None:
    try:
        return ast.parse(wide(code).strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None


def _is_same(code: str, made: ast.expr) -> bool:
    """Whether brackets around the code are all that was left out."""
    if "\n" in code:
        return False
    inner = _parsed(code)
    return inner is not None and ast.dump(inner) == ast.dump(made)
