"""What changes a tensor in place: the new value is bound, or written where others see it."""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.data_aliases import is_data
from isograd.convert.file import FileEdit
from isograd.convert.model import Level
from isograd.convert.origins import Reach, is_taken_by_copy, origin_of_write
from isograd.convert.passes.chains import (
    IN_PLACE,
    is_changing,
    is_in_chain,
    is_read_after,
    is_read_in_chain,
    target_of,
)
from isograd.convert.passes.elements import (
    elements,
    holds_all,
    is_another,
    is_by_position,
    is_quiet_leaf,
    is_without_gradient,
    key_of,
    may_be_parameter,
    may_be_positions,
    owner_of_data,
    owner_of_element,
    unshared,
    written_place,
)
from isograd.convert.passes.example import Example
from isograd.convert.passes.reach_of_writes import (
    LOST_ADVICE,
    scope_of,
    sight_of,
    tell,
    tell_if_lost,
    tell_lost,
    write_view,
)
from isograd.convert.places import place as place_of
from isograd.convert.use import Use
from isograd.knowledge.entry import Applicability, Entry
from isograd.knowledge.rewrite import NotRewritten
from isograd.scan.values import PARAMETER

_TENSOR = "torch.Tensor."
_COPY_INTO = "torch.Tensor.copy_"
_COPY = "{0} is a copy, in torch as well: this change reaches nothing"
_COPY_ADVICE = "If it was meant to be changed, assign to it: {0} = …"
_SHAPE = "{0} has another shape from here on, and {1} as well in torch; not in the port"
_CHOSEN = "which tensor is changed in place is not known here; the port changes none"
_ROUNDS = "each round changes what the rounds before have returned, in torch; not in the port"
#: Methods that change the shape, which a write into the tensor cannot.
_SHAPING = frozenset(
    "t_ unsqueeze_ squeeze_ transpose_ swapaxes_ swapdims_ resize_ resize_as_ set_".split()
)


class InPlace:
    """`x.add_(y)`: `x = x + y`, or `x.copy_(x + y)` where the tensor has other names."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "a tensor of its own",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                z = x + y
                z.mul_(2)
                return z
            """,
        ),
        Example(
            "an argument",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                x.add_(y)
                return x
            """,
        ),
    )
    counterexamples = (
        Example(
            "the method that returns",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return x.add(y)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the new value, and where it goes."""
        assert isinstance(node, ast.Call)
        use = file.use(node.func)
        if use is None or not isinstance(node.func, ast.Attribute):
            return False
        if not use.is_member:
            _tell_if_unbound(node, use, file)
            return False
        if use.api == _COPY_INTO and node.args:
            return _copy_into(node, node.func.value, use, file)
        entry = file.entry(use.api)
        if entry is None or entry.hazard != IN_PLACE:
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
    target = target_of(receiver, file)
    is_statement = file.tree.is_statement(node)
    if target is None:
        if not is_statement or not write_view(receiver, "...", code, node, file):
            _write_alone(node, receiver, code, file)
        return
    if target is not receiver or isinstance(target, ast.Subscript):
        _tell_if_of_changed(target, node, file)
    if not is_statement and is_in_chain(node, file):
        if target is receiver:
            file.keep_sources(target)
        if not is_read_in_chain(target, node, file):
            layout.write(file, node, code)
            return
    if isinstance(target, ast.Name) and use.owner is not PARAMETER:
        _write_name(target, node, code, file)
    elif isinstance(target, ast.Subscript):
        _write_element(target, node, code, file)
    elif isinstance(target, ast.Attribute) and target.attr == "data":
        _write_data(target, node, code, "composites.write", file)
    elif is_statement and isinstance(target, ast.Attribute) and target.attr == "grad":
        layout.write_statement(file, node, f"{written_place(target, file)} = {code}")
    elif _may_be_computed(target, use, node, file):
        file.replace(
            node, f"{file.name('composites.overwrite')}({written_place(target, file)}, {code})"
        )
    else:
        file.replace(node, f"{written_place(target, file)}.copy_({code})")


def _write_alone(node: ast.Call, receiver: ast.expr, code: str, file: FileEdit) -> None:
    """Write what no name holds: of a chain `x.mul_(2).add_(y)`, whose end is bound to the name."""
    tell_lost(receiver, node, file)
    is_chosen = isinstance(receiver, (ast.IfExp, ast.BoolOp, ast.NamedExpr))
    if is_chosen or (file.tree.is_statement(node) and _may_be_held(receiver, file)):
        file.finding(node, "in-place-view", _CHOSEN, LOST_ADVICE)
    layout.write(file, node, code)


def _may_be_computed(target: ast.expr, use: Use, node: ast.AST, file: FileEdit) -> bool:
    """Whether an attribute may hold what was computed, whose gradient goes on.

    MindSpore's `copy_` into a view (2.10; a Dense of three axes returns one) gives the gradient of
    what the tensor held to nobody.
    """
    if not isinstance(target, ast.Attribute) or use.owner is PARAMETER:
        return False
    scope, is_own = scope_of(node, file), getattr(target.value, "id", "") in ("self", "cls")
    if is_own and ast.unparse(target) not in scope.bound:
        return False
    return not is_without_gradient(node, file)


def _copy_into(node: ast.Call, receiver: ast.expr, use: Use, file: FileEdit) -> bool:
    """`x.copy_(y)`: by an index, which reaches the tensors of slices and casts as torch does."""
    file.keep_sources(receiver)
    if isinstance(receiver, ast.Attribute):
        if receiver.attr == "grad" and file.tree.is_statement(node):
            # A gradient may be a view that `copy_` of MindSpore 2.10 does not write to.
            place, value = written_place(receiver, file), file.argument(node.args[0])
            new = f"{file.name('composites.filled')}({file.source(receiver)}, {value})"
            layout.write_statement(file, node, f"{place} = {new}")
            return True
        if receiver.attr != "data":
            return False
    code = file.argument(node.args[0])
    if isinstance(receiver, ast.Attribute):
        _write_data(receiver, node, code, "composites.overwrite", file)
    elif isinstance(receiver, ast.Subscript):
        _write_element(receiver, node, code, file)
    elif isinstance(receiver, ast.Name) and use.owner is not PARAMETER:
        _copy_into_name(node, receiver, code, file)
    elif not file.tree.is_statement(node) or not write_view(receiver, "...", code, node, file):
        tell_lost(receiver, node, file)
        return False
    file.uses += 1
    file.converted += 1
    return True


def _copy_into_name(node: ast.Call, receiver: ast.Name, code: str, file: FileEdit) -> None:
    name = receiver.id
    sight = sight_of(name, node, file)
    if sight.reach is Reach.LOST:
        tell(sight, name, node, file)
    if file.tree.is_statement(node) and not may_be_parameter(name, node, file):
        layout.write_statement(file, node, f"{name}[...] = {unshared(node.args[0], file)}")
    else:
        file.replace(node, f"{file.name('composites.overwrite')}({name}, {code})")


def _write_data(
    target: ast.Attribute, node: ast.Call, code: str, composition: str, file: FileEdit
) -> None:
    """`p.data.copy_(q.data)`: read, `.data` is a tensor of its own."""
    if isinstance(target.value, ast.Subscript):
        tell_if_held(target.value, node, file)
        _put(target.value, node, code, file)
    else:
        file.replace(node, f"{file.name(composition)}({owner_of_data(target, file)}, {code})")


def _write_name(target: ast.Name, node: ast.Call, code: str, file: FileEdit) -> None:
    """Bind a tensor's new value to its name, or write it where others see the tensor."""
    name = target.id
    if (file.holds_data(target) or is_quiet_leaf(target, file)) and not _is_shaping(node):
        file.replace(node, f"{file.name('composites.overwrite')}({name}, {code})")
        return
    sight = sight_of(name, node, file)
    is_statement = file.tree.is_statement(node)
    if sight.reach is not Reach.ALONE and _is_shaping(node):
        other = sight.name or "the caller's"
        level = Level.FINISH if sight.name else Level.LOOK
        file.finding(node, "in-place-shape", _SHAPE.format(name, other), level=level)
    elif sight.reach is Reach.LOST:
        tell(sight, name, node, file)
    elif sight.reach is Reach.SHARED and is_statement and not may_be_parameter(name, node, file):
        layout.write_statement(file, node, f"{name}[...] = {code}")
        return
    elif sight.reach is Reach.SHARED:
        file.replace(node, f"{file.name('composites.overwrite')}({name}, {code})")
        return
    if is_statement:
        layout.write_statement(file, node, f"{name} = {code}")
    elif is_read_after(target, node, file):
        file.replace(node, f"({name} := {code})")
    else:
        layout.write(file, node, code)


def _is_shaping(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Attribute) and node.func.attr in _SHAPING


def _write_element(target: ast.Subscript, node: ast.Call, code: str, file: FileEdit) -> None:
    """`x[0].add_(1)` and `y = x[0].add_(1)`, of a tensor or of a list."""
    place, is_statement = written_place(target, file), file.tree.is_statement(node)
    if is_taken_by_copy(target):
        if is_statement:
            message, advice = _COPY.format(place), _COPY_ADVICE.format(place)
            file.finding(node.func, "in-place-copy", message, advice, level=Level.LOOK)
        layout.write(file, node, code)
        return
    if not is_statement:
        tell_if_held(target, node, file)
        _put(target, node, code, file)
        return
    if is_data(target.value) and not is_another(target.value, file):
        # What is written to the data of a tensor is written to the tensor.
        layout.write_statement(file, node, f"{elements(target, file)} = {code}")
        return
    if write_view(target, "...", code, node, file):
        return
    scope = scope_of(node, file)
    root = origin_of_write(target, file.views)[0]
    is_copy = isinstance(node.func, ast.Attribute) and node.func.attr == "copy_"
    tell_if_held(target, node, file)
    if isinstance(root, ast.Name) and holds_all(root, file):
        file.replace(node, f"{file.name('composites.overwrite')}({place}, {code})")
        return
    if file.holds_data(target.value) or is_quiet_leaf(target.value, file):
        layout.write_statement(file, node, f"{elements(target, file)} = {code}")
        return
    if isinstance(root, ast.Name) and scope.is_container(root.id):
        place, code = f"{place}[...]", (unshared(node.args[0], file) if is_copy else code)
    elif _may_hold_tensors(target, file) and (
        is_copy
        or not isinstance(target.slice, ast.Constant)
        or _is_state_of_network(target.value, file)
    ):
        _put(target, node, code, file)
        return
    if may_be_positions(target.slice, node, file):
        _put(target, node, code, file)  # which sees whether a tensor takes a copy here
        return
    layout.write_statement(file, node, f"{place} = {code}")


def tell_if_held(target: ast.Subscript, node: ast.AST, file: FileEdit) -> None:
    """Report a change of an element that a view taken before does not see."""
    if tell_lost(target, node, file):
        return
    if any(isinstance(part, ast.ListComp) for part in file.tree.above(node)):
        file.finding(node, "in-place-kept", _ROUNDS, level=Level.LOOK)
    root = origin_of_write(target, file.views)[0]
    if isinstance(root, ast.Name):
        is_part = root is target.value and not scope_of(node, file).is_container(root.id)
        is_whole = not is_part or is_by_position(target.slice, node, file)
        tell_if_lost(root.id, node, file, is_whole=is_whole)


def _may_hold_tensors(target: ast.Subscript, file: FileEdit) -> bool:
    """Whether `held[key]` may be a tensor of its own that a dictionary or a list holds.

    Others may hold it as well, as a network does what its `state_dict()` gives.
    """
    key = target.slice
    if place_of(target) in file.facts.indexed or isinstance(key, (ast.Slice, ast.Tuple)):
        return False
    return not isinstance(key, ast.Constant) or isinstance(key.value, (str, int))


def _is_state_of_network(node: ast.expr, file: FileEdit) -> bool:
    """Whether an expression is a `state_dict()`, or a name that is bound to one in the file."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr == "state_dict"
    return isinstance(node, ast.Name) and any(
        isinstance(part.value, ast.Call)
        and any(isinstance(target, ast.Name) and target.id == node.id for target in part.targets)
        and _is_state_of_network(part.value, file)
        for part in file.tree.of(ast.Assign)
    )


def _put(target: ast.Subscript, node: ast.Call, code: str, file: FileEdit) -> None:
    """Write into an element of a tensor, or into the tensor that something holds."""
    held, key = owner_of_element(target, file), key_of(target.slice, file)
    file.replace(node, f"{file.name('composites.put')}({held}, {key}, {code})")


def _tell_if_unbound(node: ast.Call, use: Use, file: FileEdit) -> None:
    """Tell `torch.Tensor.add_(x, 1)`, which is written as a new value of no name."""
    entry = file.entry(use.api)
    if entry is not None and entry.hazard == IN_PLACE and use.api.startswith(_TENSOR):
        file.finding(node, "in-place-view", _CHOSEN, LOST_ADVICE)


def _tell_if_of_changed(target: ast.expr, node: ast.Call, file: FileEdit) -> None:
    """Tell `x.mul_(2)[0].add_(1)`: one statement cannot write to both."""
    part: ast.expr = target
    while isinstance(part, (ast.Subscript, ast.Attribute)):
        part = part.value
    if isinstance(part, ast.Call) and is_changing(part.func, file):
        file.finding(node, "in-place-view", _CHOSEN, LOST_ADVICE)


def _may_be_held(receiver: ast.expr, file: FileEdit) -> bool:
    """Whether something else may hold what a call gives: a function of torch makes a new tensor."""
    node = receiver
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        use = file.use(node.func)
        if use is None or not use.is_member:
            break
        node = node.func.value
    return isinstance(node, ast.Call) and file.use(node.func) is None


def bind(target: ast.expr, node: ast.Call, code: str, file: FileEdit) -> bool:
    """Bind a call's result to the tensor that it is written to as well; False: nobody reads that.

    What else holds the tensor is reported.
    """
    if isinstance(target, ast.Name):
        _write_name(target, node, code, file)
        return True
    if file.tree.is_statement(node) and isinstance(target, ast.Subscript):
        _write_element(target, node, code, file)
        return True
    if file.tree.is_statement(node) and isinstance(target, ast.Attribute):
        tell_lost(target, node, file)
        layout.write_statement(file, node, f"{written_place(target, file)} = {code}")
        return True
    if isinstance(target, (ast.Attribute, ast.Subscript)):
        if isinstance(target, ast.Subscript):
            is_reached = not is_taken_by_copy(target)
            tell_if_held(target, node, file)
        else:
            is_reached = not tell_lost(target, node, file)
        if is_reached:
            held = file.source(target)
            file.replace(node, f"{file.name('composites.overwrite')}({held}, {code})")
            return True
    return False
