"""Augmented assignments (`x += y`) of tensors: bound anew, or written where others see them."""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.analysis.kept_attributes import is_kept
from isograd.convert.file import FileEdit
from isograd.convert.indexes import has_inner_steps, parts_of
from isograd.convert.operator_signs import SIGNS
from isograd.convert.origins import Reach
from isograd.convert.passes.elements import (
    elements,
    is_by_position,
    is_quiet_leaf,
    is_recorded,
    is_written_by_elements,
    key_of,
    may_be_parameter,
    place_owner,
    rebinds,
    write_elements,
    write_recorded,
)
from isograd.convert.passes.example import Example
from isograd.convert.passes.known_dtypes import kept_dtype
from isograd.convert.passes.masks import is_read_alike, is_stored_by_mask
from isograd.convert.passes.module_contents import has_alternative, registered_buffers
from isograd.convert.passes.numpy_arrays import is_array, is_of_numpy
from isograd.convert.passes.possible_tensors import is_asked_for, may_be_tensor
from isograd.convert.passes.reach_of_writes import (
    is_in_forward,
    scope_of,
    sight_of,
    tell,
    tell_if_lost,
    tell_lost,
    write_view,
)
from isograd.convert.passes.saved_values import of_old_values
from isograd.convert.passes.shared_operands import tell_given_view
from isograd.convert.passes.tensors_of_classes import is_of_class


class AugmentedAssignments:
    """`x += y`: written into the tensor where others see it."""

    kinds = (ast.AugAssign,)
    after = ("Writes", "LayerAttributes")
    examples = (
        Example(
            "a tensor that the caller holds, too",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                y = x
                y += 1
                return x
            """,
        ),
        Example(
            "a buffer of a network",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.register_buffer('steps', torch.tensor(0))

                def forward(self, x):
                    self.steps += 1
                    return x * self.steps
            """,
        ),
        Example(
            "a tensor of a class, which its objects share",
            """
            class Meter:
                total = torch.zeros(1)

                def add(self, value):
                    self.total += value
            """,
        ),
    )
    counterexamples = (
        Example(
            "a number of a class",
            """
            class Meter:
                count = 0

                def add(self):
                    self.count += 1
            """,
        ),
        Example(
            "a tensor of its own",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                z = x + y
                z += 1
                return z
            """,
        ),
        Example(
            "a number",
            """
            count = 0
            count += 1
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the new value into a shared tensor; leave the rest as it is."""
        assert isinstance(node, ast.AugAssign)
        target = node.target
        if isinstance(target, ast.Subscript):
            return _add_to_element(target, node, file)
        if isinstance(target, ast.Attribute):
            return _add_to_attribute(target, node, file)
        if type(node.op) in SIGNS and file.facts.is_tensor(target) and is_recorded(target, file):
            value = f"{target.id} {SIGNS[type(node.op)]} {layout.operand(file, node.value)}"
            write_recorded(target, value, node, file)
            return True
        is_kept = file.holds_data(target) or is_quiet_leaf(target, file)
        if is_kept and type(node.op) in SIGNS:
            value = f"{target.id} {SIGNS[type(node.op)]} {layout.operand(file, node.value)}"
            code = f"{file.name('composites.overwrite')}({target.id}, {value})"
            layout.write_statement(file, node, code)
            return True
        if not file.facts.is_tensor(target):
            return _add_to_argument(target, node, file)
        tell_given_view(target, node, file)
        sight = sight_of(target.id, node, file)
        if sight.reach is Reach.LOST:
            tell(sight, target.id, node, file)
        sign = SIGNS.get(type(node.op))
        if sign is None:
            return False
        code = f"{target.id} {sign} {layout.operand(file, node.value)}"
        if sight.reach is not Reach.SHARED:
            kept = kept_dtype(target.id, code, node, [node.value], file)
            if kept != code:
                layout.write_statement(file, node, f"{target.id} = {kept}")
            return kept != code
        code = of_old_values(target.id, code, node, file)
        if may_be_parameter(target.id, node, file):
            code = f"{file.name('composites.overwrite')}({target.id}, {code})"
            if rebinds(target, node, file):
                code = f"{target.id} = {code}"
        else:
            code = f"{target.id}[...] = {code}"
        layout.write_statement(file, node, code)
        return True


def _add_to_attribute(target: ast.Attribute, node: ast.AugAssign, file: FileEdit) -> bool:
    """`self.h = h; self.h += 1`, which h sees in torch."""
    scope, sign, place = scope_of(node, file), SIGNS.get(type(node.op)), ast.unparse(target)
    if sign is None or not file.imported.torch:
        return False
    owner = file.tree.owner(node)
    if owner is not None and getattr(target.value, "id", "") == "self":
        if target.attr in registered_buffers(owner, file):  # MindSpore refuses another tensor
            code = f"{place}.copy_({place} {sign} {layout.operand(file, node.value)})"
            if has_alternative(target.attr, owner, file):  # a number changes as ever
                value = f"{place}, {file.argument(node.value)}"
                value = f'{file.name("composites.augmented")}("{sign}", {value})'
                code = f'{file.name("composites.set_buffer")}(self, "{target.attr}", {value})'
            layout.write_statement(file, node, code)
            return True
    is_shared = place in scope.bound and scope.sight(place, node).reach is Reach.SHARED
    is_shared = is_shared or is_of_class(target.attr, file) or _is_kept(target.attr, file)
    is_read_twice = any(isinstance(part, ast.Call) for part in ast.walk(target))
    if is_read_twice or not (is_shared or is_quiet_leaf(target, file)):
        return False
    call, value = file.name("composites.augmented"), file.argument(node.value)
    written = file.source(target)  # where a layer of MindSpore's has another name for it
    layout.write_statement(file, node, f'{written} = {call}("{sign}", {written}, {value})')
    return True


def _makes_tensor(target: ast.expr, value: ast.expr, file: FileEdit) -> bool:
    """Whether an attribute is known to be set to a tensor, as by `torch.zeros(2)`."""
    use = file.use(value.func) if isinstance(value, ast.Call) else None
    home = "" if use is None or not use.is_sure else use.api.rpartition(".")[0]
    return home in ("torch", "torch.Tensor") or file.facts.is_tensor(target)


def _is_kept(name: str, file: FileEdit) -> bool:
    """Whether an attribute is bound to a tensor that something else keeps while it changes."""
    is_tensor = any(
        getattr(target, "attr", "") == name and _makes_tensor(target, node.value, file)
        for node in file.tree.of(ast.Assign)
        for target in node.targets
    )
    return is_tensor and is_kept(name, file.tree)


def _add_to_element(target: ast.Subscript, node: ast.AugAssign, file: FileEdit) -> bool:
    """`x.view(-1)[0] += 1`, `x.data[0] += 1`, and `tensors[0] += 1` of a list."""
    sign = SIGNS.get(type(node.op))
    if is_written_by_elements(target, node, file):
        owner = place_owner(target)
        if sign is not None and (rebinds(owner, node, file) or is_in_forward(node, file)):
            write_elements(target, node, _added(target, sign, node, file), file)
        else:
            file.replace(target, elements(target, file))
        return True
    is_by_array = is_in_forward(node, file) and _is_by_array(target, file)
    is_by_mask = is_read_alike(target.slice) and is_stored_by_mask(target, node, file)
    if sign is not None and (is_by_array or is_by_mask):
        write_elements(target, node, _added(target, sign, node, file), file, stored=True)
        return True
    if sign is not None:
        code = f"{file.source(target)} {sign} {layout.operand(file, node.value)}"
        code = of_old_values(file.source(target), code, node, file)
        if write_view(target.value, key_of(target.slice, file), code, node, file):
            return True
    if tell_lost(target.value, node, file):
        return False
    scope, sign = scope_of(node, file), SIGNS.get(type(node.op))
    if isinstance(target.value, ast.Name) and file.facts.is_tensor(target):
        is_whole = is_by_position(target.slice, node, file)
        sight = scope.sight(target.value.id, node, is_whole=is_whole)
        if sight.reach is Reach.LOST and sight.name:
            tell(sight, target.value.id, node, file)
    if sign is not None and has_inner_steps(target.slice) and _is_plain_path(target.value):
        place = file.source(target)
        code = f"{place} = {strided(target, file)} {sign} {layout.operand(file, node.value)}"
        layout.write_statement(file, node, code)
        return True
    if sign is None or not isinstance(target.value, ast.Name):
        return False
    if scope.is_container(target.value.id) and file.facts.is_tensor(target):
        tell_if_lost(target.value.id, node, file)
        place = file.source(target)
        code = f"{place} {sign} {layout.operand(file, node.value)}"
        code = f"{place}[...] = {of_old_values(place, code, node, file)}"
        layout.write_statement(file, node, code)
        return True
    return False


def _added(target: ast.Subscript, sign: str, node: ast.AugAssign, file: FileEdit) -> str:
    """The new value of elements, which may be at positions of numpy's."""
    taken = file.source(target)
    if _is_by_array(target, file):
        key = key_of(target.slice, file)
        taken = f"{file.name('composites.at')}({file.source(target.value)}, {key})"
    return f"{taken} {sign} {layout.operand(file, node.value)}"


def _is_by_array(target: ast.Subscript, file: FileEdit) -> bool:
    """Whether elements of what may be a tensor stand at positions of numpy's."""
    is_by_numpy = any(is_of_numpy(part, file) for part in parts_of(target.slice))
    return is_by_numpy and not is_array(target.value, file)


def strided(node: ast.Subscript, file: FileEdit) -> str:
    """`x[:, ::2]` where MindSpore's own slices refuse a gradient."""
    owner_end, end = file.text.span(node.value)[1], file.text.span(node)[1]
    index = file.text.source(owner_end, end)
    name, numpy = file.name("composites.strided"), file.name("np.s_")
    return f"{name}({file.source(node.value)}, {numpy}{index})"


def _is_plain_path(node: ast.expr) -> bool:
    """Whether an expression is a name or a member of one, which may be read twice."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _add_to_argument(target: ast.Name, node: ast.AugAssign, file: FileEdit) -> bool:
    """`x += y` of unknown kind: a tensor that others see changes, a number is new."""
    scope, sign = scope_of(node, file), SIGNS.get(type(node.op))
    if sign is None or not file.imported.torch:
        return False
    if not may_be_tensor(target, node, file):
        return False
    tell_given_view(target, node, file)
    sight = sight_of(target.id, node, file)
    if sight.reach is Reach.LOST:
        tell(sight, target.id, node, file)
    is_seen = file.facts.is_tensor(node.value) or not is_asked_for(target.id, scope, file)
    if sight.reach is not Reach.SHARED or not is_seen:
        return False
    call = file.name("composites.augmented")
    value = file.argument(node.value)
    layout.write_statement(file, node, f'{target.id} = {call}("{sign}", {target.id}, {value})')
    return True
