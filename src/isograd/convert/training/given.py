"""Values that a step is given and that hold a graph: gradients would end where they come in.

def fit(features, head, y, optimizer):
    loss = criterion(head(features), y)
    ...

fit(body(x), head, y, optimizer)    # body would never learn
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator

from isograd.convert.file import FileEdit
from isograd.convert.training.callers import Callers
from isograd.convert.training.freedom import CONTAINERS, TENSORS, is_detached
from isograd.convert.training.graphs import Graphs
from isograd.convert.training.index import Index
from isograd.convert.training.model import StepPlan
from isograd.convert.training.paths import (
    bound_by,
    calls_in,
    names_read,
    path_of,
    read_before_bound,
    read_by,
)


def graphs_given(
    index: Index,
    plans: Iterable[tuple[FileEdit, StepPlan]],
    reading: Callable[[str], FileEdit | None],
) -> Iterator[tuple[str, ast.AST, str]]:
    """The file, the place and the reason for each input of a step that may hold a graph.

    Also for each optimizer that is an object of another class.

    reading: what is known of a file, by its name.
    """
    graphs = Graphs(index, Callers(index), reading)
    for file, plan in plans:
        for node in _optimizers(plan):
            if (wrapper := graphs.wrapper(node)) is not None:
                where = f"{index.file(wrapper[0])}, line {wrapper[0].lineno}"
                said = f"{ast.unparse(node)} is a {wrapper[1]}, no optimizer of torch's: {where}"
                yield file.file, node, said
        is_function = isinstance(plan.loop, ast.FunctionDef)
        inside = {node for one in plan.computed for node in ast.walk(one)} if is_function else set()
        for node in (*_inputs(plan, file), *plan.names.settings):
            found = graphs.source(node, plan.loop, inside)
            if found is None or not (found.is_known or found.given):
                continue
            at = found.given or found.node
            where = f"line {at.lineno} ({ast.unparse(at)})"
            other = index.file(at)
            where = where if other == file.file else f"{other}, {where}"
            what = "is" if found.is_known else "may be"
            said = f"{ast.unparse(node)} {what} computed by a network before the step: {where}"
            yield file.file, node, said


def _inputs(plan: StepPlan, file: FileEdit) -> Iterator[ast.expr]:
    """The expressions of the forward part whose values come in from outside."""
    within = plan.loop.body if not isinstance(plan.loop, ast.FunctionDef) else ()
    known = set().union(*map(bound_by, within)) - _given_by_objects(within, plan, file)
    for part in (*plan.computed, plan.loss):
        if isinstance(part, ast.stmt):
            read = read_before_bound([part], known)
        else:
            read = read_by(part) - known
        for name in names_read(part):
            if name.id not in read or is_detached(name, file):
                continue
            node: ast.expr = name
            parent = file.tree.parents[node]
            while isinstance(parent, (ast.Attribute, ast.Subscript)) and parent.value is node:
                if path_of(node) in plan.names.inputs:
                    break
                node, parent = parent, file.tree.parents[parent]
            if path_of(node) in plan.names.inputs or name.id in _hoisted(plan):
                yield node


def _given_by_objects(statements: Iterable[ast.stmt], plan: StepPlan, file: FileEdit) -> set[str]:
    """The names outside of the forward part that hold what a method of an object returns.

    Whose method it is, is taken from its name (`Freedom`).
    """
    own = {node for one in plan.computed for node in ast.walk(one)}
    return {
        name
        for top in statements
        for node in ast.walk(top)
        if isinstance(node, ast.Assign) and node not in own
        if any(_is_of_object(call, file) for call in calls_in([node.value]))
        for name in bound_by(node)
    }


def _is_of_object(call: ast.Call, file: FileEdit) -> bool:
    is_method = isinstance(call.func, ast.Attribute) and file.use(call.func) is None
    return is_method and call.func.attr not in CONTAINERS | TENSORS  # type: ignore[attr-defined] # a method


def _optimizers(plan: StepPlan) -> Iterator[ast.expr]:
    """Where the statements of a step name its optimizers."""
    paths = {plan.optimizer, *plan.beside} - {""}
    for statement in (plan.update, *plan.removed):
        for node in ast.walk(statement):
            if isinstance(node, ast.expr) and path_of(node) in paths:
                yield node


def _hoisted(plan: StepPlan) -> set[str]:
    """The names of inputs that are expressions, and no paths."""
    parsed = (ast.parse(text, mode="eval").body for text in plan.names.inputs)
    return {name.id for node in parsed if not path_of(node) for name in names_read(node)}
