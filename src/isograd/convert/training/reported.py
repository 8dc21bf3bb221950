"""What a method reports beside its value, behind the compiled step: `self.log("loss", loss)`.

The method becomes three: one computes, and returns what is to be reported as well; one reports; and
under the old name stands one that calls both.
"""

from __future__ import annotations

import ast
import copy
import textwrap
from collections.abc import Iterable, Iterator

from isograd.convert.file import FileEdit
from isograd.convert.training.changes import OF_CONTAINERS, changed_by
from isograd.convert.training.effects import effects_of
from isograd.convert.training.freedom import CONTAINERS, TENSORS
from isograd.convert.training.model import Reported
from isograd.convert.training.paths import (
    BUILTINS,
    bound_by,
    calls_in,
    method_of,
    path_of,
    read_by,
    root_of,
)

#: What is asked of networks and optimizers, and changes with a step.
_CHANGING = frozenset(
    "parameters named_parameters state_dict load_state_dict modules named_modules children "
    "named_children buffers named_buffers backward step zero_grad weight bias data grad forward "
    "train eval requires_grad_ apply".split()
)


def reported_by(call: ast.AST, methods: list[ast.FunctionDef], file: FileEdit) -> Reported | None:
    """What a call reports beside its value; None where that is nothing, or no end of its own.

    methods: all that the call may mean.
    """
    effects = [effects_of(method, file) for method in methods]
    if not isinstance(call, ast.Call) or not any(effects):
        return None
    statement = file.tree.statement(call)
    is_assigned = isinstance(statement, ast.Assign) and statement.value is call
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    path, name = method_of(call)
    if not is_assigned or not path or not isinstance(target, ast.Name) or call.keywords:
        return None
    both = list(zip(methods, effects, strict=True))
    if not all(_is_separable(*one, file) for one in both):
        return None
    given = [part.arg for part in methods[0].args.args[1:]]
    alike = all([p.arg for p in m.args.args[1:]] == given for m in methods)
    if not alike or len(call.args) != len(given) or not all(map(path_of, call.args)):
        return None
    needed = [p for p in given if any(p in _params_reported(*one) for one in both)]
    values = [path_of(a) for p, a in zip(given, call.args, strict=True) if p in needed]
    taken = {*file.tree.used, *file.tree.stored, *(f.name for f in file.tree.of(ast.FunctionDef))}
    own = _free("reported", taken)
    computes, reports = _free(f"{name}_computed", taken), _free(f"{name}_reported", taken)
    edits = [
        edit for one in both for edit in _edits(*one, (computes, reports), (given, needed), file)
    ]
    return Reported(
        call, target, own, f"{path}.{reports}({', '.join([*values, own])})",
        frozenset(root.partition(".")[0] for root in values),
        tuple(s for several in effects for s in several), tuple(edits),
    )  # fmt: skip


def reported_outputs(
    reported: list[Reported], forward: list[ast.stmt], outputs: list[str]
) -> list[str]:
    """What a step returns besides, so that it can be reported.

    The value is among it: a graph that returns constants alone is not run.
    """
    bound = set().union(*map(bound_by, forward))
    needed = {name for one in reported for name in (one.given & bound) | {one.target.id}}
    return [*sorted(needed - {*outputs}), *(one.name for one in reported)]


def without_effects(module: ast.Module, reported: Reported | None) -> ast.Module:
    """A module as the step sees it: what is reported behind the step is no part of it."""
    if reported is None:
        return module
    gone = {(s.lineno, s.col_offset) for s in reported.effects}
    module = copy.deepcopy(module)
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef):
            node.body = [s for s in node.body if (s.lineno, s.col_offset) not in gone]
    return module


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _values_reported(method: ast.FunctionDef, effects: list[ast.stmt]) -> list[str]:
    """The names of its own that a method reports."""
    bound = set().union(*map(bound_by, method.body))
    return sorted(set().union(*map(read_by, effects)) & bound) if effects else []


def _params_reported(method: ast.FunctionDef, effects: list[ast.stmt]) -> set[str]:
    own = {part.arg for part in method.args.args[1:]}
    read = set().union(*map(read_by, effects)) if effects else set()
    return (read & own) - {*_values_reported(method, effects)}


def _is_separable(method: ast.FunctionDef, effects: list[ast.stmt], file: FileEdit) -> bool:
    """Whether what a method reports can be reported behind it."""
    args = method.args
    if method.decorator_list or args.vararg or args.kwarg or args.kwonlyargs or args.posonlyargs:
        return False
    if not effects:
        return True
    last = method.body[-1]
    returns = [node for node in ast.walk(method) if isinstance(node, ast.Return)]
    if returns != [last] or last.value is None or not all(s in method.body for s in effects):  # type: ignore[attr-defined] # a return
        return False
    reported = {*_values_reported(method, effects)}
    for s in method.body:
        later = bound_by(s) | {path.partition(".")[0] for path in changed_by(s, file)}
        if later & reported and any(e.lineno < s.lineno for e in effects):
            return False  # it would be reported with its later value
        is_tensors = isinstance(s, ast.Assign) and not isinstance(s.value, _NO_TENSORS)
        if bound_by(s) & reported and not is_tensors:
            return False
    return bool(reported) and all(is_harmless(e, file) for e in effects)


#: What a compiled step need not return.
_NO_TENSORS = (
    ast.Dict,
    ast.DictComp,
    ast.Set,
    ast.SetComp,
    ast.Lambda,
    ast.JoinedStr,
    ast.Constant,
)


def is_harmless(effect: ast.stmt, file: FileEdit) -> bool:
    """Whether a call neither reads what a step changes nor changes what it computes.

    Attributes that it sets are looked at with all that changes between steps.
    """
    waiting: list[ast.AST] = [effect]
    seen: set[ast.AST] = set()
    while waiting:
        one = waiting.pop()
        seen.add(one)
        if any(getattr(node, "attr", "") in _CHANGING for node in ast.walk(one)):
            return False
        if any(_is_whole(node, file) for node in ast.walk(one)):
            return False
        for call in calls_in([one]):
            defined = [*_defined(call, file)]
            if not defined and not _is_known(call, file):
                return False
            waiting += [function for function in defined if function not in seen]
    return True


def _is_whole(node: ast.AST, file: FileEdit) -> bool:
    """Whether an object is handed on or called as a whole."""
    if not (isinstance(node, ast.Name) and node.id == "self"):
        return False
    return not isinstance(file.tree.parents[node], ast.Attribute)


def _defined(call: ast.Call, file: FileEdit) -> Iterator[ast.FunctionDef]:
    name = getattr(call.func, "id", "") or getattr(call.func, "attr", "")
    return (function for function in file.tree.of(ast.FunctionDef) if function.name == name)


def _is_known(call: ast.Call, file: FileEdit) -> bool:
    """Whether a call is one of Python's, of a container, a tensor or an imported package."""
    use, root = file.use(call.func), root_of(call.func)
    if use is not None and use.api.startswith("torch."):
        return not use.api.startswith(("torch.nn.Module", "torch.optim")) and use.api[-1] != "_"
    if isinstance(call.func, ast.Name):
        return call.func.id in BUILTINS and call.func.id not in file.tree.stored
    if (
        isinstance(call.func, ast.Attribute)
        and call.func.attr in CONTAINERS | OF_CONTAINERS | TENSORS
    ):
        return True
    is_import = root is not None and root.id in _imported(file)
    return is_import and isinstance(call.func, ast.Attribute)


def _imported(file: FileEdit) -> set[str]:
    """Names of packages other than torch's."""
    return {
        (part.asname or part.name).partition(".")[0]
        for node in file.tree.module.body
        if isinstance(node, ast.Import)
        for part in node.names
        if not part.name.startswith("torch")
    }


def _edits(
    method: ast.FunctionDef,
    effects: list[ast.stmt],
    names: tuple[str, str],
    arguments: tuple[list[str], list[str]],
    file: FileEdit,
) -> Iterable[tuple[int, int, str]]:
    """The method under another name, returning what is reported; the other two behind it."""
    text, (computes, reports), (given, needed) = file.text, names, arguments
    me, indent = method.args.args[0].arg, " " * method.col_offset
    everything = ", ".join(given)
    reported = _values_reported(method, effects)
    if effects:
        start = text.span(method)[0]
        at = text.original.index(method.name, start + len("def"))
        yield at, at + len(method.name), computes
        for s in effects:
            first, stop = text.line_start(s.lineno), text.line_start((s.end_lineno or 0) + 1)
            yield first, stop, ""
        last = method.body[-1]
        assert isinstance(last, ast.Return)
        assert last.value is not None
        first, stop = text.span(last.value)
        left, right = ("", "") if path_of(last.value) else ("(", ")")
        yield first, first, left
        yield stop, stop, f"{right}, ({', '.join(reported)},)"
        sources = [textwrap.dedent(" " * s.col_offset + _source(s, file)) for s in effects]
        body = "\n".join([f"({', '.join(reported)},) = reported", *sources])
        kept = [
            f"def {method.name}({', '.join([me, *given])}):",
            f'    """What {computes} computes, reporting what it reports."""',
            f"    value, reported = {me}.{computes}({everything})",
            f"    {me}.{reports}({', '.join([*needed, 'reported'])})",
            "    return value",
        ]
    else:
        body = "pass"
        kept = [
            f"def {computes}({', '.join([me, *given])}):",
            f"    return {me}.{method.name}({everything}), ()",
        ]
    reporting = [
        f"def {reports}({', '.join([me, *needed, 'reported'])}):",
        textwrap.indent(body, "    "),
    ]
    new = "\n\n".join(["\n".join(reporting), "\n".join(kept)])
    end = text.span(method)[1]
    yield end, end, "\n\n" + textwrap.indent(new, indent)


def _source(node: ast.AST, file: FileEdit) -> str:
    return file.text.original[slice(*file.text.span(node))]
