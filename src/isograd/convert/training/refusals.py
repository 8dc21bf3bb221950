"""What of a file keeps a project's loops eager, whatever the loops are."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from isograd.convert.analysis.changed_lists import changes_of
from isograd.convert.analysis.methods import dicts_of_keywords, left_out
from isograd.convert.analysis.own_gradients import FUNCTIONS, own_gradient
from isograd.convert.analysis.own_lists import reversed_lists
from isograd.convert.file import FileEdit
from isograd.convert.passes.unrecorded_blocks import stopped_names
from isograd.convert.training.defaults import unfound_defaults
from isograd.static_graph.find import find_in_file
from isograd.static_graph.rule import SILENT
from isograd.static_graph.scope import FileScope
from isograd.static_graph.table import consequence, rules

#: The tensor itself, unless its second argument says that it learns.
VARIABLE = "torch.autograd.Variable"
#: Rules about objects that hold fields, and about dictionaries.
_RECORDS = ("dataclass", "named_tuple", "ordered_dict")


def kept_as_functions(tree: ast.Module) -> Iterator[ast.ClassDef]:
    """Classes derived from torch's Function that no cell can be."""
    file = FileScope(tree)
    for name, scope in file.classes.items():
        if any(base in FUNCTIONS for base in scope.bases):
            if own_gradient(scope.node, tree) is None:
                yield file.classes[name].node


def refusals(
    tree: ast.Module,
    by_hand: frozenset[int],
    is_record: Callable[[int, int], bool],
    reading: Callable[[], FileEdit | None],
) -> Iterator[tuple[ast.AST, str]]:
    """What of a file does not compile to the same, or learns outside of networks.

    by_hand: lines that read gradients for a step of their own.  is_record: whether the call at a
    place makes what is looked at with all that uses it.  reading: the file as passes see it.
    """
    file = FileScope(tree)
    backwards = {
        (call.lineno, call.col_offset)
        for function in ast.walk(tree)
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        for call in (*reversed_lists(function), *(one.call for one in changes_of(function)))
    }
    written_anew = {(d.lineno, d.col_offset) for d in dicts_of_keywords(tree)}  # type: ignore[attr-defined]
    written_anew |= backwards
    written_anew |= set(_entered_blocks(tree, reading))
    written_anew |= {(node.lineno, node.col_offset) for node in left_out(tree)}  # type: ignore[attr-defined]
    for place in find_in_file(file, is_torch=True):
        if (place.line, place.column) in written_anew or (place.code == "zip.strict" and place.cls):
            continue  # written anew
        if place.code.partition(".")[0] in _RECORDS and is_record(place.line, place.column):
            continue
        if consequence(place.code) in (*SILENT, "refused"):
            where = place.cls or place.function
            at = ast.Pass(lineno=place.line, col_offset=place.column)
            said = f"{where} is no part of a static graph ({place.code})"
            rule = rules()[place.code]
            yield at, f"{said}. {rule.message} {rule.advice}"
    yield from unfound_defaults(tree)
    frozen = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call) and freezes(node)}
    for node in ast.walk(tree):
        reason = "" if node in frozen else changes_what_learns(node)
        if reason and getattr(node, "lineno", 0) not in by_hand:
            yield (node.value if isinstance(node, ast.keyword) else node), reason


def _entered_blocks(
    tree: ast.Module, reading: Callable[[], FileEdit | None]
) -> Iterator[tuple[int, int]]:
    """Where `with torch.no_grad():` stands that is written so that a graph enters it."""
    blocks = [node for node in ast.walk(tree) if isinstance(node, ast.With)]
    file = reading() if blocks else None
    if file is not None:
        for block in blocks:
            if stopped_names(block, file) is not None:
                yield block.lineno, block.col_offset


def freezes(call: ast.AST) -> bool:
    """`teacher.requires_grad_(False)`: the same as the attribute, which a step looks at."""
    if isinstance(call, ast.Assign) and _is_false(call.value):
        return any(getattr(target, "attr", "") == "requires_grad" for target in call.targets)
    if not isinstance(call, ast.Call) or getattr(call.func, "attr", "") != "requires_grad_":
        return False
    given = [*call.args, *(part.value for part in call.keywords)]
    return len(given) == 1 and _is_false(given[0])


def changes_what_learns(node: ast.AST) -> str:
    """Why a node asks for recorded gradients; empty where it does not."""
    if isinstance(node, ast.keyword) and node.arg == "requires_grad":
        return "" if _is_false(node.value) else "a tensor learns that is no network's parameter"
    if isinstance(node, ast.Attribute) and node.attr in ("requires_grad_", "no_sync", "grad"):
        return f"{node.attr} reads or changes what is recorded"
    if isinstance(node, ast.Assign) and not _is_false(node.value):
        for target in node.targets:
            if isinstance(target, ast.Attribute) and target.attr == "requires_grad":
                return "what learns changes"
    return ""


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def variables_may_learn(tree: ast.Module | None) -> bool:
    """Whether a file may tell a `Variable` by its place that it learns; keywords are seen to."""
    if tree is None:
        return True
    last = VARIABLE.rpartition(".")[2]
    names = {
        part.asname or last
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for part in node.names
        if part.name.rpartition(".")[2] == last
    }
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return any(
        (getattr(call.func, "id", "") in names or getattr(call.func, "attr", "") == last)
        and (len(call.args) > 1 or any(isinstance(part, ast.Starred) for part in call.args))
        for call in calls
    )
