"""Methods that change their tensor: the new value is bound, or copied where others see it."""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.file import FileEdit, Use
from isograd.knowledge.entry import Applicability, Entry
from isograd.knowledge.rewrite import NotRewritten
from isograd.scan.values import PARAMETER, Tensor

_IN_PLACE = "in_place"
_ALIAS = "{0} changes a tensor in place that {1} also names; the port binds a new one"
_VIEW = "{0} is a view, and changing it may not reach the tensor behind it"
_VIEW_ADVICE = "Write to the tensor itself: x[…] = …"
_ALIAS_ADVICE = "Use the new value there too, or {0}.copy_(…)."


class InPlace:
    """`x.add_(y)`: `x = x + y`, or `x.copy_(x + y)` where the tensor has other names."""

    kinds = (ast.Call,)

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the new value, and where it goes."""
        assert isinstance(node, ast.Call)
        use = file.use(node.func)
        if use is None or not use.is_member or not isinstance(node.func, ast.Attribute):
            return False
        entry = file.entry(use.api)
        if entry is None or entry.hazard != _IN_PLACE:
            return False
        if not entry.rewrite or entry.applicability is Applicability.HAND:
            return False
        file.uses += 1
        receiver = node.func.value
        call = file.call(node, file.argument(receiver))
        result = call if isinstance(call, NotRewritten) else file.rewritten(entry, call)
        if isinstance(result, NotRewritten):
            file.finding(node.func, "not-converted", result.reason, entry.advice, api=use.api)
            return True
        _write(node, receiver, result.code, use, entry, file)
        file.converted += 1
        return True


def _write(
    node: ast.Call, receiver: ast.expr, code: str, use: Use, entry: Entry, file: FileEdit
) -> None:
    target = _target(receiver, file)
    is_statement = file.tree.is_statement(node)
    if target is None:
        # A chain `x.mul_(2).add_(y)`: only its end is written to the name.
        layout.write(file, node, code)
        return
    place = file.text.raw(target)
    if not is_statement and _is_in_chain(node, file):
        layout.write(file, node, code)
        return
    if is_statement and isinstance(target, ast.Subscript):
        layout.write_statement(file, node, f"{place} = {code}")
    elif _must_copy(target, node, use, file):
        is_view = isinstance(use.owner, Tensor) and use.owner.is_view
        if is_view and not place.endswith(".data"):
            message = _VIEW.format(place)
            file.finding(node.func, "in-place-view", message, _VIEW_ADVICE, api=use.api)
        if place.endswith(".data"):
            written = place.removesuffix(".data")
            file.replace(node, f"{file.name('composites.write')}({written}, {code})")
        elif is_statement and isinstance(target, ast.Attribute) and target.attr == "grad":
            layout.write_statement(file, node, f"{place} = {code}")
        else:
            file.replace(node, f"{place}.copy_({code})")
    elif is_statement:
        layout.write_statement(file, node, f"{place} = {code}")
    elif isinstance(target, ast.Name) and _is_read_after(target, node, file):
        file.replace(node, f"({place} := {code})")
    else:
        layout.write(file, node, code)


def _target(receiver: ast.expr, file: FileEdit) -> ast.expr | None:
    """The name, attribute or element at the root of a chain of methods that change it."""
    node = receiver
    while isinstance(node, ast.Call):
        use = file.use(node.func)
        entry = file.entry(use.api) if use is not None and use.is_member else None
        if entry is None or entry.hazard != _IN_PLACE or not isinstance(node.func, ast.Attribute):
            return None
        node = node.func.value
    return node if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) else None


def _is_in_chain(node: ast.Call, file: FileEdit) -> bool:
    """Whether another in-place method is called on the result."""
    parent = file.tree.parents.get(node)
    if not isinstance(parent, ast.Attribute):
        return False
    use = file.use(parent)
    entry = file.entry(use.api) if use is not None and use.is_member else None
    return entry is not None and entry.hazard == _IN_PLACE


def _must_copy(target: ast.expr, node: ast.Call, use: Use, file: FileEdit) -> bool:
    """Whether the tensor has names that a new binding would not reach."""
    if use.owner is PARAMETER or isinstance(target, (ast.Attribute, ast.Subscript)):
        return True
    assert isinstance(target, ast.Name)
    if isinstance(use.owner, Tensor) and use.owner.is_view:
        return True
    function = file.tree.function(node)
    if _is_bound_by_loop(target.id, function or file.tree.module):
        return True
    if function is None:
        return _is_alias(target.id, file.tree.module)
    is_parameter = target.id in _parameters(function)
    if is_parameter:
        return not _is_forward(function, file)
    return _is_alias(target.id, function)


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    arguments = function.args
    return {part.arg for part in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}


def _is_forward(function: ast.FunctionDef | ast.AsyncFunctionDef, file: FileEdit) -> bool:
    is_method = isinstance(file.tree.parents.get(function), ast.ClassDef)
    return is_method and "forward" in function.name


def _is_bound_by_loop(name: str, function: ast.AST) -> bool:
    for node in ast.walk(function):
        if isinstance(node, (ast.For, ast.comprehension)):
            if any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(node.target)):
                return True
    return False


def _is_alias(name: str, function: ast.AST) -> bool:
    """Whether the name was bound to something that another name holds."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            if any(isinstance(part, ast.Name) and part.id == name for part in node.targets):
                if isinstance(node.value, (ast.Name, ast.Attribute, ast.Subscript)):
                    return True
    return False


def _is_read_after(target: ast.Name, node: ast.Call, file: FileEdit) -> bool:
    """Whether the name is read behind the call, before the function ends."""
    function = file.tree.function(node)
    statement = file.tree.statement(node)
    if function is None:
        return False
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        bound = statement.targets[0]
        if isinstance(bound, ast.Name) and bound.id == target.id:
            return False
    end = file.text.span(node)[1]
    for part in ast.walk(function):
        if isinstance(part, ast.Name) and part.id == target.id and isinstance(part.ctx, ast.Load):
            if file.text.span(part)[0] >= end:
                return True
    return False


def changes_its_input(node: ast.Call) -> bool:
    """Whether `inplace=True` is written out."""
    return any(
        keyword.arg == "inplace"
        and isinstance(keyword.value, ast.Constant)
        and keyword.value.value is True
        for keyword in node.keywords
    )


def bind_input(node: ast.Call, code: str, file: FileEdit) -> bool:
    """Bind the result to the first argument's name too, where that is read again; False: it is not.

    What else holds the tensor is told.
    """
    target = node.args[0]
    if file.tree.is_statement(node) and isinstance(target, (ast.Name, ast.Attribute)):
        layout.write_statement(file, node, f"{file.text.raw(target)} = {code}")
        return True
    if not isinstance(target, ast.Name):
        return False
    _tell_aliases(target.id, node, f"`{file.text.raw(node.func)}(…)`", file)
    if not _is_read_after(target, node, file):
        return False
    layout.write_statement(file, node, f"({target.id} := {code})")
    return True


class InPlaceLayers:
    """`self.relu(x)` of an `nn.ReLU(inplace=True)`: x is the result from then on."""

    kinds = (ast.Call,)

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Bind the result to the input's name where that is read again."""
        assert isinstance(node, ast.Call)
        function = node.func
        if not (isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)):
            return False
        if function.value.id != "self" or len(node.args) != 1:
            return False
        if function.attr not in _layers_in_place(node, file):
            return False
        return bind_input(node, file.source(node), file)


def _layers_in_place(node: ast.Call, file: FileEdit) -> frozenset[str]:
    """The attributes of the class around a node that are layers made with `inplace=True`."""
    owner = next((part for part in file.tree.above(node) if isinstance(part, ast.ClassDef)), None)
    if owner is None:
        return frozenset()
    if owner not in file.layers_in_place:
        file.layers_in_place[owner] = frozenset(
            target.attr
            for part in ast.walk(owner)
            if isinstance(part, ast.Assign)
            and isinstance(part.value, ast.Call)
            and part.value.func in file.named
            and changes_its_input(part.value)
            for target in part.targets
            if isinstance(target, ast.Attribute)
        )
    return file.layers_in_place[owner]


class AugmentedAssignments:
    """`x += y` binds a new tensor in a port; where another name holds the old one, that is told."""

    kinds = (ast.AugAssign,)

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Find the other name."""
        assert isinstance(node, ast.AugAssign)
        target = node.target
        if not isinstance(target, ast.Name) or not file.facts.is_tensor(target):
            return False
        _tell_aliases(target.id, node, f"`{target.id} {_sign(node)}= …`", file)
        return False


def _tell_aliases(name: str, node: ast.expr | ast.stmt, what: str, file: FileEdit) -> None:
    """Tell each other name of a tensor that is changed in place, if it is read afterwards."""
    function = file.tree.function(node)
    if function is None:
        return
    for other in _other_names(name, node, function):
        message, advice = _ALIAS.format(what, other), _ALIAS_ADVICE.format(name)
        file.finding(node, "in-place-alias", message, advice)


def _sign(node: ast.AugAssign) -> str:
    signs = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
    return signs.get(node.op.__class__, "")


def _other_names(name: str, node: ast.expr | ast.stmt, function: ast.AST) -> list[str]:
    """Names that were bound to this one before, and are read after."""
    held: dict[str, int] = {}
    for part in ast.walk(function):
        if isinstance(part, ast.Assign) and isinstance(part.value, ast.Name):
            if part.value.id == name and part.lineno < node.lineno:
                for bound in part.targets:
                    if isinstance(bound, ast.Name):
                        held[bound.id] = max(part.lineno, held.get(bound.id, 0))
    found = []
    for other, line in held.items():
        rebound = any(
            isinstance(part, ast.Assign)
            and line < part.lineno <= node.lineno
            and any(isinstance(b, ast.Name) and b.id in (name, other) for b in part.targets)
            for part in ast.walk(function)
        )
        is_read = any(
            isinstance(part, ast.Name)
            and part.id == other
            and isinstance(part.ctx, ast.Load)
            and part.lineno > node.lineno
            for part in ast.walk(function)
        )
        if is_read and not rebound:
            found.append(other)
    return found
