"""What changes a tensor in place: the new value is bound, or written where others see it."""

from __future__ import annotations

import ast
from dataclasses import replace

from isograd.convert import layout
from isograd.convert.file import FileEdit
from isograd.convert.held_results import LISTING
from isograd.convert.model import Level
from isograd.convert.origins import Reach, is_taken_by_copy, is_turned
from isograd.convert.parameter_copies import assigned, is_plain_copy
from isograd.convert.passes.chains import (
    changed_by,
    is_in_chain,
    is_read_after,
    is_read_in_chain,
    target_of,
)
from isograd.convert.passes.elements import (
    is_buffer,
    is_quiet_leaf,
    is_recorded,
    is_without_gradient,
    may_be_parameter,
    owner_of_data,
    rebinds,
    unshared,
    write_recorded,
    written_place,
)
from isograd.convert.passes.example import Example
from isograd.convert.passes.known_dtypes import kept_dtype, operands_of
from isograd.convert.passes.reach_of_writes import (
    LOST_ADVICE,
    is_in_forward,
    scope_of,
    sight_of,
    tell,
    tell_lost,
    tell_view_of_held,
    write_view,
)
from isograd.convert.passes.saved_values import of_old_values
from isograd.convert.passes.shared_operands import sees_change, tell_given_view
from isograd.convert.passes.unnamed_targets import CHOSEN, tell_if_of_changed, write_alone
from isograd.convert.passes.waiting_operands import (
    bind_first,
    can_move,
    lost_views,
    reads_before,
    waiting,
)
from isograd.convert.passes.written_elements import put_data, tell_if_held, write_element
from isograd.convert.places import place as place_of
from isograd.convert.use import Use
from isograd.knowledge.entry import Applicability, Entry
from isograd.knowledge.rewrite import NotRewritten
from isograd.scan.values import PARAMETER

_COPY_INTO = "torch.Tensor.copy_"
_SHAPE = "{0} has another shape from here on, and {1} as well in torch; not in the port"
_WAITING = (
    "{0} is read in this statement before it is changed, and sees the change in torch; "
    "MindSpore refuses to write into the inputs of what it differentiates"
)
_WAITING_ADVICE = "Bind what it is changed to before the statement: {0} = …"
#: Containers that are made where they stand.
_WRITTEN_OUT = (ast.List, ast.Tuple, ast.ListComp, ast.Dict, ast.DictComp)
#: Methods that change the shape, which a write into the tensor cannot.
_SHAPING = frozenset(
    (
        *("t_", "unsqueeze_", "squeeze_", "transpose_", "swapaxes_", "swapdims_"),
        *("resize_", "resize_as_", "set_", "as_strided_"),
    )
)


class InPlace:
    """`x.add_(y)`: `x = x + y`, or `x.copy_(x + y)` where the tensor has other names.

    `torch.exp_(x)` and `torch.Tensor.add_(x, y)` are written as the methods of x.
    """

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
        Example(
            "a function that changes its argument",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                z = x + y
                torch.exp_(z)
                return z
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
        if use is None:
            return False
        if use.is_member and use.api == _COPY_INTO and node.args:
            assert isinstance(node.func, ast.Attribute)
            return _copy_into(node, node.func.value, use, file)
        receiver, entry = changed_by(node, file), file.entry(use.api)
        if receiver is None or entry is None:
            return False
        if not entry.rewrite or entry.applicability is Applicability.HAND:
            return False
        call = file.call(node, file.argument(receiver) if use.is_member else "")
        result = call if isinstance(call, NotRewritten) else file.rewritten(entry, call)
        if isinstance(result, NotRewritten):
            if use.is_member:
                file.uses += 1
                file.finding(node.func, "not-converted", result.reason, entry.advice, api=use.api)
            return use.is_member
        file.uses += 1
        if not use.is_member:
            use = replace(use, owner=file.facts.values.get(place_of(receiver)))
        _write(node, receiver, result.code, use, entry, file)
        file.converted += 1
        return True


def _write(
    node: ast.Call, receiver: ast.expr, code: str, use: Use, entry: Entry, file: FileEdit
) -> None:
    target = target_of(receiver, file)
    is_statement = file.tree.is_statement(node)
    if target is None or is_turned(target):
        kept = of_old_values(file.source(receiver), code, node, file)
        if not is_statement or not write_view(receiver, "...", kept, node, file):
            write_alone(node, receiver, code, file)
        return
    if target is not receiver or not isinstance(target, ast.Name):
        tell_if_of_changed(target, node, file)
    if not is_statement and is_in_chain(node, file):
        if target is receiver:
            file.keep_sources(target)
        if not is_read_in_chain(target, node, file) and not sees_change(target, node, file):
            layout.write(file, node, code)
            return
    if isinstance(target, ast.Name) and use.owner is not PARAMETER:
        _write_name(target, node, code, file)
    elif isinstance(target, ast.Subscript):
        _write_subscript(target, node, code, file)
    elif isinstance(target, ast.Attribute) and target.attr == "data":
        _write_data(target, node, code, "composites.write", file)
    elif is_statement and isinstance(target, ast.Attribute) and target.attr == "grad":
        layout.write_statement(file, node, f"{written_place(target, file)} = {code}")
    elif _may_be_computed(target, use, node, file):
        place = written_place(target, file)
        code = of_old_values(place, code, node, file)
        file.replace(node, f"{file.name('composites.overwrite')}({place}, {code})")
    else:
        file.replace(node, f"{written_place(target, file)}.copy_({code})")


def _write_subscript(target: ast.Subscript, node: ast.Call, code: str, file: FileEdit) -> None:
    if _is_of_fresh_container(target):
        file.replace(node, f"{file.name('composites.overwrite')}({file.source(target)}, {code})")
    else:
        write_element(target, node, code, file)


def _is_of_fresh_container(target: ast.Subscript) -> bool:
    """`list(net.parameters())[0]`, `{"k": x}["k"]`: the tensor is changed, and not the list."""
    made = target.value
    is_listed = isinstance(made, ast.Call) and getattr(made.func, "id", "") in LISTING
    return is_listed or isinstance(made, _WRITTEN_OUT)


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
            tell_view_of_held(receiver, node, file)
            return False
    code = file.argument(node.args[0])
    if isinstance(receiver, ast.Attribute):
        _write_data(receiver, node, code, "composites.overwrite_data", file)
    elif isinstance(receiver, ast.Subscript):
        write_element(receiver, node, code, file)
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
    if file.tree.is_statement(node) and is_recorded(receiver, file):
        write_recorded(receiver, code, node, file, "composites.overwrite_data")
        return
    sight = sight_of(name, node, file)
    tell_given_view(receiver, node, file)
    if sight.reach is Reach.LOST:
        tell(sight, name, node, file)
    if file.tree.is_statement(node) and not may_be_parameter(name, node, file):
        layout.write_statement(
            file, node, f"{name}[...] = {unshared(node.args[0], receiver, file)}"
        )
    else:
        file.replace(node, f"{file.name('composites.overwrite')}({name}, {code})")


def _write_data(
    target: ast.Attribute, node: ast.Call, code: str, composition: str, file: FileEdit
) -> None:
    """`p.data.copy_(q.data)`: read, `.data` is a tensor of its own."""
    if isinstance(target.value, ast.Subscript):
        tell_if_held(target.value, node, file)
        put_data(target.value, node, code, file)
        return
    owner = owner_of_data(target, file)
    is_statement = file.tree.is_statement(node)
    if is_plain_copy(target.value, node, file) or (
        is_statement and is_in_forward(node, file) and is_buffer(target.value, file)
    ):
        new = f"{owner}.copy_({code})"
    elif not (new := assigned(target.value, owner, code, node, file)):
        new = f"{file.name(composition)}({owner}, {code})"
        new = f"{owner} = {new}" if is_statement and rebinds(target.value, node, file) else new
    file.replace(node, new)


def _write_name(
    target: ast.Name, node: ast.Call, code: str, file: FileEdit, *, is_safe: bool = False
) -> None:
    """Bind a tensor's new value to its name, or write it where others see the tensor."""
    name = target.id
    tell_given_view(target, node, file)
    if (file.holds_data(target) or is_quiet_leaf(target, file)) and not _is_shaping(node, file):
        file.replace(node, f"{file.name('composites.overwrite')}({name}, {code})")
        return
    sight = sight_of(name, node, file)
    is_statement = file.tree.is_statement(node)
    if is_statement and is_recorded(target, file) and not _is_shaping(node, file):
        write_recorded(target, code, node, file)
        return
    if sight.reach is not Reach.ALONE and _is_shaping(node, file):
        other = sight.name or "the caller's"
        level = Level.FINISH if sight.name else Level.LOOK
        file.finding(node, "in-place-shape", _SHAPE.format(name, other), level=level)
    elif sight.reach is Reach.LOST:
        tell(sight, name, node, file)
    elif sight.reach is Reach.SHARED:
        code = code if is_safe else of_old_values(name, code, node, file)
        if is_statement and not may_be_parameter(name, node, file):
            layout.write_statement(file, node, f"{name}[...] = {code}")
        else:
            new = f"{file.name('composites.overwrite')}({name}, {code})"
            is_bound = is_statement and rebinds(target, node, file)
            file.replace(node, f"{name} = {new}" if is_bound else new)
        return
    code = kept_dtype(name, code, node, operands_of(target, node), file)
    if is_statement:
        layout.write_statement(file, node, f"{name} = {code}")
    elif not _is_shaping(node, file) and (before := waiting(target, node, file)):
        code = code if is_safe else of_old_values(name, code, node, file)
        _write_waiting(target, before, node, code, file)
    elif is_read_after(target, node, file):
        file.replace(node, f"({name} := {code})")
    else:
        layout.write(file, node, code)


def _write_waiting(
    target: ast.Name, before: list[ast.Name], node: ast.Call, code: str, file: FileEdit
) -> None:
    """Write what the statement has read before: bound in a line before it, or in the tensor."""
    statement = file.tree.statement(node)
    reads = reads_before(target, node, statement, file)
    if can_move(node, reads, file) and bind_first(target.id, code, node, file):
        return
    name = target.id
    for view in lost_views(node, before, file):
        tell_lost(view, node, file)
    if name in scope_of(node, file).parameters and is_in_forward(node, file):
        file.finding(node, "in-place-input", _WAITING.format(name), _WAITING_ADVICE.format(name))
    file.replace(node, f"{file.name('composites.overwrite')}({name}, {code})")


def _is_shaping(node: ast.Call, file: FileEdit) -> bool:
    use = file.use(node.func)
    return use is not None and use.api.rpartition(".")[2] in _SHAPING


def bind(
    target: ast.expr, node: ast.Call, code: str, file: FileEdit, *, is_safe: bool = False
) -> bool:
    """Bind a call's result to the tensor that it is written to as well; False: nobody reads that.

    What else holds the tensor is reported.
    is_safe: whether no gradient of the call reads what the tensor held.
    """
    if isinstance(target, ast.Call):  # `relu(x.sub_(2), inplace=True)`
        target = target_of(target, file) or target
        if isinstance(target, (ast.Attribute, ast.Subscript)):
            file.finding(node, "in-place-view", CHOSEN, LOST_ADVICE)
            return False
    if isinstance(target, ast.Name):
        _write_name(target, node, code, file, is_safe=is_safe)
        return True
    if file.tree.is_statement(node) and isinstance(target, ast.Subscript):
        write_element(target, node, code, file)
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
            code = code if is_safe else of_old_values(held, code, node, file)
            file.replace(node, f"{file.name('composites.overwrite')}({held}, {code})")
            return True
    return False
