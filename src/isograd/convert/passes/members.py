"""Attributes of tensors and modules that are read: `x.shape`, `x.T`, `p.data`."""

from __future__ import annotations

import ast

from isograd.convert import layout, types_and_settings
from isograd.convert.analysis.parameter_loops import is_over_parameters
from isograd.convert.data_aliases import is_data
from isograd.convert.file import FileEdit
from isograd.convert.passes.elements import is_buffer
from isograd.convert.passes.example import Example
from isograd.convert.passes.order import Stage
from isograd.convert.places import place
from isograd.convert.use import Use
from isograd.knowledge.entry import Applicability
from isograd.scan.values import PARAMETER, Tensor

_SELF = "{self}"


class Members:
    """Attributes by the knowledge's templates."""

    kinds = (ast.Attribute,)
    stage = Stage.GENERAL
    examples = (
        Example(
            "data, without its gradient",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return x.data * 2
            """,
        ),
    )
    counterexamples = (
        Example(
            "a shape, which both have",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return x.shape
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the attribute; one that is called belongs to its call."""
        assert isinstance(node, ast.Attribute)
        parent = file.tree.parents.get(node)
        if isinstance(parent, ast.Call) and parent.func is node:
            return False
        if is_data(node) and isinstance(node.ctx, ast.Load) and is_buffer(node.value, file):
            # The static graph takes it for a function of Python's, and cuts gradients there; it
            # reads `stop_gradient` of a buffer once, however often that changes.
            file.replace(node, file.source(node.value))
            file.uses += 1
            file.converted += 1
            return True
        use = file.use(node)
        if _may_be_computed(node, use, file):
            layout.write(file, node, f"{file.name('composites.learns')}({file.source(node.value)})")
            file.uses += 1
            file.converted += 1
            return True
        if use is None or not use.is_member:
            return False
        if use.api in types_and_settings.LEFT_ALONE or not isinstance(node.ctx, ast.Load):
            return True
        if use.api in types_and_settings.OF_RESULTS:
            return False
        file.uses += 1
        if file.is_ported_module_member(use):
            file.converted += 1
            return True
        if use.api == "torch.Tensor.device" and use.is_sure and _device_kind(node, parent, file):
            return True
        return _by_entry(node, use, file)


def _may_be_computed(node: ast.Attribute, use: Use | None, file: FileEdit) -> bool:
    """Whether `x.requires_grad` is asked of what may be a tensor that is no Parameter."""
    if node.attr != "requires_grad" or not isinstance(node.ctx, ast.Load):
        return False
    if use is None:
        return isinstance(node.value, ast.Attribute) and _is_of_plain_self(node.value, file)
    if use.api != "torch.Tensor.requires_grad" or use.owner is PARAMETER:
        return False
    if isinstance(node.value, ast.Attribute):  # of a module, a Parameter most of all
        return _is_of_plain_self(node.value, file)
    loop = file.tree.loop(node.value) if isinstance(node.value, ast.Name) else None
    if loop is not None and is_over_parameters(loop):
        return False
    owner = file.facts.values.get(place(node.value), use.owner)
    return isinstance(owner, Tensor) and owner is not PARAMETER


def _is_of_plain_self(node: ast.Attribute, file: FileEdit) -> bool:
    """Whether an attribute is one of an own object that is no module: `self.boxes`."""
    owner = file.tree.owner(node)
    info = file.class_info(owner) if owner is not None else None
    if info is None or info.is_module or not isinstance(node.value, ast.Name):
        return False
    function = file.tree.function(node)
    places = function.args.args if function is not None else []
    return bool(places) and places[0].arg == node.value.id


def _by_entry(node: ast.Attribute, use: Use, file: FileEdit) -> bool:
    entry = file.entry(use.api)
    if entry is None or entry.applicability is Applicability.HAND:
        if use.is_sure and use.api not in types_and_settings.SAME_ATTRIBUTES:
            reason = entry.difference if entry is not None else ""
            reason = reason or f"{use.api} has no counterpart in MindSpore"
            advice = entry.advice if entry is not None else ""
            file.finding(node, "not-converted", reason, advice, api=use.api)
        return True
    if entry.signature or not entry.rewrite:
        if entry.rewrite != f"{_SELF}.{node.attr}" and use.is_sure and entry.signature:
            _bound_method(node, use.api, file)
        return True
    code = file.spelled(entry.rewrite)
    if code == f"{_SELF}.{node.attr}":
        file.converted += 1
        return True
    if not use.is_sure:
        return True
    layout.write(file, node, code.replace(_SELF, layout.operand(file, node.value)))
    file.converted += 1
    return True


def _device_kind(node: ast.Attribute, parent: ast.AST | None, file: FileEdit) -> bool:
    """`x.device.type` is a text of its own in torch; MindSpore's device is a text."""
    if not isinstance(parent, ast.Attribute) or parent.attr != "type":
        return False
    receiver = file.source(node.value)
    file.replace(parent, f'{receiver}.device.partition(":")[0].lower()')
    file.converted += 1
    return True


def _bound_method(node: ast.Attribute, api: str, file: FileEdit) -> None:
    """A method that is passed around instead of being called."""
    reason = f"{api} is passed around without being called"
    file.finding(node, "not-converted", reason, "Write a lambda that calls it.", api=api)
