"""Which calls leave a network in the mode that it is in: `train()` or `eval()`."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from isograd.convert.file import FileEdit
from isograd.convert.training.model import Repeated
from isograd.convert.training.paths import calls_in, method_of, path_of, statement_call

#: Methods of a network that leave its mode as it is.
KEEPS_MODE = frozenset(
    "state_dict parameters named_parameters buffers modules named_modules zero_grad train".split()
)
_MODES = ("train", "eval")


def returns_in_training(call: ast.Call, networks: Collection[str], file: FileEdit) -> bool:
    """Whether a call of a function of the file leaves the networks that it is given in training.

    It changes no mode, or its last change of each network is `train()`.
    """
    return _returns(call, networks, file, frozenset())


def _returns(
    call: ast.Call, networks: Collection[str], file: FileEdit, inside: frozenset[str]
) -> bool:
    function = _function_of(call, file)
    if function is None or function.name in inside or function.args.vararg is not None:
        return False
    places = [part.arg for part in (*function.args.posonlyargs, *function.args.args)]
    is_spread = any(isinstance(value, ast.Starred) for value in call.args)
    if is_spread or len(call.args) > len(places):
        return False
    given = [*zip(places, call.args, strict=False), *((k.arg, k.value) for k in call.keywords)]
    return all(
        name is not None and _leaves(function, name, file, inside | {function.name})
        for name, value in given
        if path_of(value) in networks
    )


def _function_of(call: ast.Call, file: FileEdit) -> ast.FunctionDef | None:
    """The one function of the file that a name can mean."""
    if not isinstance(call.func, ast.Name):
        return None
    name = call.func.id
    found = [
        node
        for node in file.tree.binding
        if name in (getattr(node, "name", ""), getattr(node, "id", ""))
    ]
    one = found[0] if len(found) == 1 else None
    return one if isinstance(one, ast.FunctionDef) and one in file.tree.module.body else None


def _leaves(function: ast.FunctionDef, name: str, file: FileEdit, inside: frozenset[str]) -> bool:
    """Whether a function leaves the network in its parameter of this name in training."""
    changed: list[ast.Call] = []
    own = {part.arg for part in ast.walk(function.args) if isinstance(part, ast.arg)}
    if any(
        method in _MODES and path not in own
        for path, method in map(method_of, calls_in([function]))
    ):
        return False  # of a part, perhaps
    for node in ast.walk(function):
        if not (isinstance(node, ast.Name) and node.id == name):
            continue
        if not isinstance(node.ctx, ast.Load):
            return False
        parent = file.tree.parents[node]
        above = file.tree.parents[parent]
        if isinstance(parent, ast.Call):
            if parent.func is not node and not _returns(parent, (name,), file, inside):
                return False
        elif isinstance(parent, ast.Attribute):
            is_called = isinstance(above, ast.Call) and above.func is parent
            if is_called and isinstance(above, ast.Call) and parent.attr in _MODES:
                changed.append(above)
            elif is_called and parent.attr not in KEEPS_MODE:
                return False
        else:
            return False
    return not changed or _ends_in_training(function, name, changed)


def _ends_in_training(function: ast.FunctionDef, name: str, changed: list[ast.Call]) -> bool:
    """Whether `name.train()` comes behind all other changes, and on every way out."""
    last = next(
        (
            statement
            for statement in reversed(function.body)
            for call in [statement_call(statement)]
            if call is not None and method_of(call) == (name, "train") and not call.args
        ),
        None,
    )
    if last is None or any(call.lineno > last.lineno for call in changed):
        return False
    early = (ast.Return, ast.Yield, ast.YieldFrom)
    return not any(
        isinstance(node, early) and node.lineno < last.lineno for node in ast.walk(function)
    )


def is_given(call: ast.Call, networks: Collection[str]) -> bool:
    """Whether a call has one of the networks among its arguments."""
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    return any(path_of(value) in networks for value in values)


def may_change(call: ast.Call, networks: Collection[str], file: FileEdit) -> bool:
    """Whether a call may leave one of the networks in another mode."""
    path, method = method_of(call)
    if path in networks and method not in KEEPS_MODE:
        return True
    use = file.use(call.func)
    if use is not None and use.api.startswith("torch."):
        return False  # nothing of torch's sets the mode of what it is given
    if path == "self" or any(network.startswith(f"{path}.") for network in networks):
        return not _is_quiet(call, path, networks, file, frozenset())
    return is_given(call, networks) and not returns_in_training(call, networks, file)


def _is_quiet(
    call: ast.Call, path: str, networks: Collection[str], file: FileEdit, inside: frozenset[str]
) -> bool:
    """Whether a method of the object that has the networks changes no mode.

    path: the object's.  It is looked into where it is a method of the class around it.
    """
    kind = file.tree.owner(call)
    name = method_of(call)[1]
    found = [m for m in (kind.body if kind else ()) if getattr(m, "name", "") == name]
    method = found[0] if len(found) == 1 else None
    if path != "self" or not isinstance(method, ast.FunctionDef):
        # An object that is called, where the class inherits no method of that name.
        is_own = path == "self" and kind is not None and not kind.bases
        return is_own and not is_given(call, {*networks, path})
    if name in inside:
        return True
    for inner in calls_in([method]):
        of, called = method_of(inner)
        if called in _MODES or is_given(inner, {*networks, path}):
            return False
        if of == path and not _is_quiet(inner, path, networks, file, inside | {name}):
            return False
    return True


def a_call_may_change(
    networks: Collection[str], loop: Repeated, gone: Collection[ast.stmt], file: FileEdit
) -> bool:
    """Whether a call of a loop may leave a network in another mode than it was in.

    gone: statements that become part of the step.
    """
    return any(
        may_change(found, networks, file) and not _trains_again(statement, networks, loop, file)
        for statement in _within(loop, gone)
        for found in calls_in([statement])
    )


def _trains_again(
    statement: ast.stmt, networks: Collection[str], loop: Repeated, file: FileEdit
) -> bool:
    blocks = [*getattr(file.tree.parents[statement], "body", []), *loop.body]
    return any(
        method_of(call) == (network, "train") and not call.args
        for other in blocks
        for call in [statement_call(other)]
        if call is not None
        for network in networks
    )


def _within(loop: Repeated, gone: Collection[ast.stmt]) -> Iterator[ast.stmt]:
    """The plain statements of a loop, those in its conditions too."""
    for node in ast.walk(loop):
        if isinstance(node, (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign)):
            if node not in gone:
                yield node
