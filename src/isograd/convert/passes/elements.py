"""Elements of a tensor as a port writes them, and which tensor owns them."""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.aliases import Scope
from isograd.convert.data_aliases import is_data
from isograd.convert.file import FileEdit
from isograd.convert.indexes import is_ellipsis, parts_of
from isograd.convert.origins import Reach, origin_of_write
from isograd.convert.passes.module_contents import registered_buffers
from isograd.convert.passes.reach_of_writes import (
    LOST_ADVICE,
    can_be_bound,
    is_in_forward,
    scope_of,
    tell,
)
from isograd.convert.places import place as place_of
from isograd.convert.tree import first_argument, names_of
from isograd.scan.values import PARAMETER, Tensor

#: What may be a tensor of positions or a mask in an index.
_MASKS = (ast.Compare, ast.List, ast.ListComp)
_UNKNOWN_INDEX = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.BinOp, ast.UnaryOp)
_COMPILED = (
    "{0} and {1} share memory in torch; within a compiled step this change does not reach {1}"
)
_CALLERS = "{0} is an argument: within a compiled step its caller does not see this change"
_CALLERS_ADVICE = "Return it, and bind what the caller holds to what is returned."
_PARAMETER = "torch.nn.Parameter"
#: What an attribute is asked of without brackets.
POSTFIX = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)


def written_place(target: ast.expr, file: FileEdit) -> str:
    """A target as it is written to: the source of an attribute is what it is read as (`p.grad`)."""
    if isinstance(target, ast.Attribute) and target in file.layer_names:
        return file.layer_names[target].format(written_place(target.value, file))
    if isinstance(target, ast.Attribute) and isinstance(target.value, POSTFIX):
        return f"{written_place(target.value, file)}.{target.attr}"
    is_read_so = isinstance(target, (ast.Subscript, ast.Call))
    return _source(target, file) if is_read_so else file.text.raw(target)


def _source(node: ast.expr, file: FileEdit) -> str:
    """The source of a part of a target, behind what it begins as well."""
    return file.sources_before.get(node) or file.source(node)


def unshared(value: ast.expr, to: ast.expr, file: FileEdit) -> str:
    """What all of a tensor is overwritten with; MindSpore would let both share one storage.

    Of a smaller tensor all rows would share one.
    """
    code, (root, reach) = file.argument(value), origin_of_write(value, file.views)
    is_new = isinstance(value, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Constant, ast.List)) or (
        isinstance(value, ast.Call) and file.use(value.func) is not None
    )
    is_path = not any(isinstance(part, ast.Call) for part in ast.walk(to))  # it is read again
    if is_new and root is value and reach is Reach.ALONE:
        if is_path and _may_be_smaller(value, to, file):
            return f"{file.name('ops.broadcast_to')}({code}, {file.source(to)}.shape)"
        return code
    place = f", {file.source(to)}" if is_path else ""
    return f"{file.name('composites.unshared')}({code}{place})"


def _may_be_smaller(value: ast.expr, to: ast.expr, file: FileEdit) -> bool:
    """Whether a tensor that is computed need not have the shape of what it is written to."""
    if isinstance(value, ast.UnaryOp):
        return _may_be_smaller(value.operand, to, file)
    if isinstance(value, ast.BinOp):
        sides = (value.left, value.right)
        is_known = place_of(value) in file.facts.made_of_tensors
        return is_known and all(ast.unparse(one) != ast.unparse(to) for one in sides)
    if not isinstance(value, ast.Call):
        return False
    use, alike = file.use(value.func), first_argument(value, "input")
    if use is None or not isinstance(file.names.result(use.api, [], {}), Tensor):
        return False
    is_alike = alike is not None and ast.unparse(alike) == ast.unparse(to)
    return not (is_alike and use.api.endswith("_like"))


def owner_of_data(node: ast.expr, file: FileEdit) -> str:
    """p of `p.data`, without what `.data` was written as by then."""
    assert isinstance(node, ast.Attribute)
    return written_place(node.value, file)


def may_be_parameter(name: str, node: ast.AST, file: FileEdit) -> bool:
    """Whether a name may hold a Parameter, which `p[…] = …` would leave as a view of itself.

    An optimizer, or loading a checkpoint, can then not write to it ("Check view and inplace
    failed").
    """
    return scope_of(node, file).is_from_outside(name, node)


def may_be_positions(index: ast.expr, at: ast.AST, file: FileEdit) -> bool:
    """Whether a part of an index may be a tensor: not what a loop counts."""
    scope = scope_of(at, file)
    for part in parts_of(index):
        if not isinstance(part, _UNKNOWN_INDEX):
            continue
        names = [name.id for name in ast.walk(part) if isinstance(name, ast.Name)]
        if names and not all(map(scope.counts, names)):
            return True
    return False


def is_by_position(index: ast.expr, at: ast.AST, file: FileEdit) -> bool:
    """Whether a write by an index makes a new tensor, which no view sees that was taken before.

    So do `x[...] = y`, masks and positions in MindSpore 2.10; numbers and slices write into x.
    """
    return any(
        is_ellipsis(part) or isinstance(part, _MASKS) or may_be_positions(part, at, file)
        for part in parts_of(index)
    )


def holds_all(name: ast.Name, file: FileEdit) -> bool:
    """Whether a name is a list or a dictionary of tensors' data."""
    return (file.tree.function(name), name.id) in file.data_aliases.containers


def elements(target: ast.Subscript, file: FileEdit, *, stored: bool = False) -> str:
    """`x[0]` that a Parameter can be written by."""
    held = owner_of_element(target, file)
    name = file.name("composites.stored_elements" if stored else "composites.elements")
    return f"{name}({held})[{_source(target.slice, file)}]"


def rebinds(owner: ast.expr, node: ast.AST, file: FileEdit) -> bool:
    """Whether a name is bound to the tensor that was written to, as a compiled step needs it.

    The tensor is the same one elsewhere.  What a compiled step leaves as it was is reported.
    """
    if not _is_rebound(owner, node, file):
        return False
    assert isinstance(owner, ast.Name)
    if file.settings.compiles_steps:
        scope = scope_of(node, file)
        sight = scope.sight(owner.id, node)
        if sight.is_argument and not sight.name and not _returns(owner.id, scope):
            message = _CALLERS.format(owner.id)
            file.finding(node, "in-place-view", message, _CALLERS_ADVICE)
        if sight.reach is not Reach.ALONE and sight.name:
            message = _COMPILED.format(owner.id, sight.name)
            file.finding(node, "in-place-view", message, LOST_ADVICE)
    return True


def _returns(name: str, scope: Scope) -> bool:
    """Whether a function returns what a name holds, which its caller may take then."""
    return any(
        isinstance(part, ast.Return) and part.value is not None and name in names_of(part.value)
        for part in scope.nodes
    )


def _is_rebound(owner: ast.expr, node: ast.AST, file: FileEdit) -> bool:
    if not isinstance(owner, ast.Name) or owner.id in ("self", "cls"):
        return False
    scope = scope_of(node, file)
    if isinstance(scope.node, ast.Module) or not can_be_bound(owner.id, node, file):
        return False
    if owner.id not in scope.bound and owner.id not in scope.parameters:
        return False
    is_compiled = file.settings.compiles_steps or is_in_forward(node, file)
    return is_compiled or not may_be_parameter(owner.id, node, file)


def write_elements(
    target: ast.Subscript,
    node: ast.expr | ast.stmt,
    code: str,
    file: FileEdit,
    *,
    stored: bool = False,
) -> None:
    """Write a statement that puts values into elements of a tensor's data, or of a tensor.

    stored: whether the gradient goes to the values, as by `x[0] = value`.
    """
    owner = place_owner(target)
    call = "composites.store" if stored else "composites.write_elements"
    if rebinds(owner, node, file):
        held = owner_of_element(target, file)
        new = f"{held} = {file.name(call)}({held}, {key_of(target.slice, file)}, {code})"
        layout.write_statement(file, node, new)
    elif is_in_forward(node, file):  # which the static graph does not see as `elements(…)[…] =`
        held, key = owner_of_element(target, file), key_of(target.slice, file)
        if is_buffer(owner, file):
            new = f"{held}.copy_({file.name('composites.with_elements')}({held}, {key}, {code}))"
        else:
            new = f"{file.name(call)}({held}, {key}, {code})"
        layout.write_statement(file, node, new)
    else:
        layout.write_statement(file, node, f"{elements(target, file, stored=stored)} = {code}")


def is_buffer(owner: ast.expr, file: FileEdit) -> bool:
    """Whether this is `self.mean`, a buffer, which the static graph writes to by `copy_`.

    Not where the class makes a Parameter of that name as well, which `copy_` refuses to write to.
    """
    kind = file.tree.owner(owner)
    if kind is None or not isinstance(owner, ast.Attribute):
        return False
    is_own = isinstance(owner.value, ast.Name) and owner.value.id == "self"
    if not is_own or owner.attr not in registered_buffers(kind, file):
        return False
    values = file.attribute_values.get((kind, owner.attr), ())
    return all(file.api_of_call(value) != _PARAMETER for value in values)


def place_owner(target: ast.Subscript) -> ast.expr:
    """x of `x[0]` and of `x.data[0]`, as it is written in torch."""
    owner = target.value
    if is_data(owner):
        assert isinstance(owner, ast.Attribute)
        return owner.value
    return owner


def owner_of_element(target: ast.Subscript, file: FileEdit) -> str:
    """x of `x[0]` and of `x.data[0]`."""
    owner = target.value
    return owner_of_data(owner, file) if is_data(owner) else _source(owner, file)


def key_of(index: ast.expr, file: FileEdit) -> str:
    """An index as an argument."""
    if not isinstance(index, ast.Tuple):
        return _key(index, file)
    parts = ", ".join(_key(part, file) for part in index.elts)
    return f"({parts}{',' if len(index.elts) == 1 else ''})"


def _key(index: ast.expr, file: FileEdit) -> str:
    """A part of an index as an argument: a slice has no signs outside of brackets."""
    if not isinstance(index, ast.Slice):
        return _source(index, file)
    ends = [index.lower, index.upper] + [index.step] * (index.step is not None)
    written = ", ".join("None" if end is None else _source(end, file) for end in ends)
    return f"slice({written})"


def is_written_by_elements(
    target: ast.Subscript, node: ast.Assign | ast.AugAssign, file: FileEdit
) -> bool:
    """Whether an element may be a Parameter's: of `.data`, or of a weight where nothing learns."""
    owner = target.value
    if is_data(owner):
        return not is_another(owner, file)
    if file.holds_data(owner) or is_quiet_leaf(owner, file):
        return True
    if is_recorded(owner, file) and is_by_position(target.slice, node, file):
        return True
    root = origin_of_write(owner, file.views)[0]
    if isinstance(owner, ast.Subscript) and isinstance(root, ast.Name) and holds_all(root, file):
        return True
    if file.facts.values.get(place_of(owner)) is PARAMETER:
        return True
    is_weight = isinstance(owner, ast.Attribute) and owner.attr in ("weight", "bias")
    return is_weight and is_without_gradient(node, file)


def is_another(node: ast.AST, file: FileEdit) -> bool:
    """Whether `x.data` is known to be of something that is no tensor."""
    use = file.use(node)
    return use is not None and use.api != "torch.Tensor.data"


def is_without_gradient(node: ast.AST, file: FileEdit) -> bool:
    """Whether a node stands in a block or a function that records no gradients."""
    for part in file.tree.above(node):
        switches: list[ast.expr] = []
        if isinstance(part, (ast.With, ast.AsyncWith)):
            switches = [item.context_expr for item in part.items]
        elif isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
            switches = list(part.decorator_list)
        for switch in switches:
            named = switch.func if isinstance(switch, ast.Call) else switch
            if file.named.get(named, "") in ("torch.no_grad", "torch.inference_mode"):
                return True
    return False


def is_recorded(node: ast.expr, file: FileEdit) -> bool:
    """Whether a name may hold what was computed before a block that records no gradients.

    What the block changes in place keeps its gradient in torch: a new tensor would have none.
    """
    if not isinstance(node, ast.Name) or not is_without_gradient(node, file):
        return False
    scope = scope_of(node, file)
    inner: ast.AST = node
    for part in file.tree.above(node):
        if isinstance(part, (ast.With, ast.AsyncWith)) and is_without_gradient(inner, file):
            inside = {id(below) for below in ast.walk(part)}
            before = scope.statements_of(node.id, node)
            return any(id(statement) not in inside for statement in before)
        inner = part
    return False


def write_recorded(
    name: ast.Name,
    code: str,
    node: ast.expr | ast.stmt,
    file: FileEdit,
    composition: str = "composites.write",
) -> None:
    """Write a statement that changes in place what was computed before gradients were left out."""
    scope = scope_of(node, file)
    # The memory itself is written to, which other names see unless the port copied for them.
    sight = scope.sight(name.id, node, is_whole=False)
    bindings = scope.bindings_of(sight.name) if sight.reach is Reach.LOST else []
    if any(origin.is_copied for binding in bindings for origin in binding.origins):
        tell(sight, name.id, node, file)
    call = file.name(composition)
    layout.write_statement(file, node, f"{name.id} = {call}({name.id}, {code})")


def is_quiet_leaf(node: ast.expr, file: FileEdit) -> bool:
    """Whether a leaf stands where no gradients are recorded, which is where torch changes one."""
    return file.is_leaf(node) and is_without_gradient(node, file)
