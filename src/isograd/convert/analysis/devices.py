"""Whether an expression can hold nothing but a device of torch's: an object, a text or a number."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from isograd.convert.analysis.given_arguments import Function, given_for
from isograd.convert.tree import Tree, is_none
from isograd.convert.use import Use

#: What of torch's makes a device or is one.
DEVICES = frozenset(("torch.Tensor.device", "torch.device"))
#: What an annotation says of a device, by torch's names and by Python's; texts and numbers are
#: devices where something is moved to them.
_ANNOTATED = frozenset(("torch.device", "torch.types.Device"))
_PLAIN = frozenset(("str", "int"))
#: Annotations that list what may be there.
_LISTING = frozenset(("Optional", "Union"))


@dataclass(frozen=True)
class Devices:
    """Where devices are looked for.

    use_of: what of torch's an expression names, None for nothing; named: the names of torch's.
    is_taken: whether another file takes a name, or calls a method of this name.
    asked: names that are looked at, of which one may be bound to itself
    (`where = where if fits else "cpu"`).
    """

    tree: Tree
    use_of: Callable[[ast.expr], Use | None]
    named: Mapping[ast.AST, str]
    is_taken: Callable[[str], bool] = lambda _: True
    asked: tuple[str, ...] = ()


def is_device(value: ast.expr, of: Devices) -> bool:
    """Whether an argument of `to` is a device, as all texts and numbers are there.

    A name is one where all that its scope binds to it is, and no argument brings it.
    """
    if isinstance(value, ast.Constant):
        return isinstance(value.value, (str, int)) and not isinstance(value.value, bool)
    if isinstance(value, ast.JoinedStr):
        return True
    if isinstance(value, ast.IfExp):
        return is_device(value.body, of) and is_device(value.orelse, of)
    if isinstance(value, ast.BoolOp):
        return all(is_device(part, of) for part in value.values)
    if isinstance(value, ast.BinOp):
        return isinstance(value.op, (ast.Add, ast.Mod)) and _is_text(value.left)
    if is_asked(value, of, is_sure=isinstance(value, ast.Attribute)):
        return True
    if isinstance(value, ast.Call):
        return getattr(value.func, "id", "") == "str" and "str" not in of.tree.stored
    return isinstance(value, ast.Name) and _is_name_of_one(value, of)


def _is_text(value: ast.expr) -> bool:
    is_constant = isinstance(value, ast.Constant) and isinstance(value.value, str)
    return is_constant or isinstance(value, ast.JoinedStr)


def is_asked(value: ast.expr | None, of: Devices, *, is_sure: bool = False) -> bool:
    """A device that is made, or what is asked of something that is called a tensor's `device`.

    is_sure: only where it is known to be a tensor.
    """
    if value is None:
        return False
    use = of.use_of(value.func if isinstance(value, ast.Call) else value)
    return use is not None and use.api in DEVICES and (use.is_sure or not is_sure)


def is_name_of_device(name: ast.Name, of: Devices) -> bool:
    """Whether a name of the function holds nothing but devices: `device = x.device`.

    What is asked of something that is called a tensor's `device` there is one, whatever it is of.
    """
    scope = of.tree.scope(name)
    values = [_bound_to(store, of) for store in _stores(name.id, scope, of)]
    is_given = _parameter(name.id, scope) is not None
    return bool(values) and not is_given and all(is_asked(value, of) for value in values)


def _is_name_of_one(name: ast.Name, of: Devices) -> bool:
    if name.id in of.asked:
        return True
    if _is_brought(name, of):
        return False
    of = replace(of, asked=(*of.asked, name.id))
    scope: ast.AST = of.tree.scope(name)
    while True:
        parameter = _parameter(name.id, scope)
        stores = _stores(name.id, scope, of)
        if parameter is not None:
            annotation = parameter.annotation
            if annotation is None and isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
                return not stores and _is_given_devices(parameter.arg, scope, of)
            return not stores and annotation is not None and _says_device(annotation, of)
        if stores or scope is of.tree.module:
            values = [_bound_to(store, of) for store in stores]
            return bool(values) and all(v is not None and is_device(v, of) for v in values)
        scope = of.tree.scope(scope)


def _is_given_devices(name: str, method: Function, of: Devices) -> bool:
    """Whether all calls of a method, which are the file's, give a parameter what is a device.

    `self.mask(n, x.device)`: of something that is called a tensor's `device`, whatever it is of.
    """
    if of.is_taken(method.name) or not isinstance(of.tree.parents.get(method), ast.ClassDef):
        return False
    named = [part for part in of.tree.of(ast.Attribute) if part.attr == method.name]
    given = {call.func: value for call, value in given_for(name, method, of.tree)}
    return bool(named) and all(part in given and _is_found(given[part], of) for part in named)


def _is_found(value: ast.expr, of: Devices) -> bool:
    return is_asked(value, of) or (isinstance(value, ast.Name) and is_name_of_device(value, of))


def _is_brought(name: ast.Name, of: Devices) -> bool:
    """Whether an import or the argument of a lambda may bring what a name holds."""
    imports = of.tree.of(ast.Import, ast.ImportFrom)
    brought = {part.asname or part.name for node in imports for part in node.names}
    lambdas = (node for node in of.tree.above(name) if isinstance(node, ast.Lambda))
    return not brought.isdisjoint((name.id, "*")) or any(
        _parameter(name.id, node) is not None for node in lambdas
    )


def _parameter(name: str, scope: ast.AST) -> ast.arg | None:
    """The parameter of a function that has a name."""
    arguments = getattr(scope, "args", None)
    parts = ast.walk(arguments) if arguments is not None else ()
    return next((part for part in parts if isinstance(part, ast.arg) and part.arg == name), None)


def _says_device(annotation: ast.expr, of: Devices) -> bool:
    """`torch.device`, `str`, and any of these or None."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            return _says_device(ast.parse(annotation.value, mode="eval").body, of)
        except SyntaxError:
            return False
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        sides = (annotation.left, annotation.right)
        return all(is_none(side) or _says_device(side, of) for side in sides)
    if isinstance(annotation, ast.Subscript):
        base = annotation.value
        name = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
        parts = getattr(annotation.slice, "elts", [annotation.slice])
        return name in _LISTING and all(is_none(p) or _says_device(p, of) for p in parts)
    if isinstance(annotation, ast.Name) and annotation.id in _PLAIN:
        return annotation.id not in of.tree.stored
    return of.named.get(annotation, "") in _ANNOTATED


def _stores(name: str, scope: ast.AST, of: Devices) -> list[ast.AST]:
    """What binds a name in a scope, or in an inner one that says it is this one's."""
    found = []
    for part in of.tree.binding:
        is_named = getattr(part, "id", getattr(part, "name", "")) == name
        if is_named and not of.tree.is_in_class_body(part):
            own = of.tree.scope(part)
            if own is scope or _is_handed_out(name, own):
                found.append(part)
    return found


def _is_handed_out(name: str, scope: ast.AST) -> bool:
    """Whether a function says that a name is one of the scopes around it."""
    return any(
        isinstance(part, (ast.Global, ast.Nonlocal)) and name in part.names
        for part in ast.walk(scope)
        if not isinstance(scope, ast.Module)
    )


def _bound_to(store: ast.AST, of: Devices) -> ast.expr | None:
    """What an assignment binds to a name, also in `b, n, device = *x.shape, x.device`."""
    if not isinstance(store, ast.Name):
        return None  # a function or a class
    parent = of.tree.parents[store]
    if isinstance(parent, ast.Assign):
        return parent.value
    assign = of.tree.parents.get(parent)
    if not isinstance(parent, ast.Tuple) or not isinstance(assign, ast.Assign):
        return None
    if not isinstance(assign.value, ast.Tuple):
        return None
    behind = parent.elts[parent.elts.index(store) :]
    values = assign.value.elts[-len(behind) :]
    if len(values) < len(behind) or any(
        isinstance(part, ast.Starred) for part in (*values, *behind)
    ):
        return None
    return values[0]
