"""Buffers that are set from outside their class: `block.attn.bias = mask[:n, :n]`."""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.analysis.layers import is_path
from isograd.convert.file import FileEdit
from isograd.convert.operator_signs import SIGNS
from isograd.convert.passes.example import Example
from isograd.convert.passes.module_contents import registered_buffers
from isograd.convert.places import place
from isograd.scan.values import ClassInfo

_REGISTERING = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer('scale', torch.ones(3))
"""


class BuffersOfOthers:
    """MindSpore binds a buffer to another tensor by `register_buffer` alone."""

    kinds = (ast.Assign, ast.AugAssign, ast.Call)
    before = ("LayerAttributes", "LayerSettings", "AugmentedAssignments")
    examples = (
        Example(
            "what may be a module with such a buffer",
            _REGISTERING
            + """

def halve(net):
    net.scale = net.scale / 2
""",
        ),
        Example(
            "by its name",
            _REGISTERING
            + """

net = Net()
setattr(net, 'scale', torch.zeros(2))
""",
        ),
        Example(
            "one that changes",
            _REGISTERING
            + """

net = Net()
net.scale /= 2
""",
        ),
    )
    counterexamples = (
        Example(
            "a name that no module registers",
            _REGISTERING
            + """

def name(net):
    net.title = 'first'
""",
        ),
        Example(
            "an object that is no module",
            _REGISTERING
            + """

class Plain:
    scale = 1


plain = Plain()
plain.scale = max(1, 2)
""",
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the function that registers it anew, and sets what is no buffer."""
        if file.is_shaped("torch.nn.Module"):
            return False  # the runtime's modules take it
        if isinstance(node, ast.Call):
            return _by_name(node, file)
        if isinstance(node, ast.AugAssign):
            return _changed(node, file)
        assert isinstance(node, ast.Assign)
        target = node.targets[0]
        if len(node.targets) > 1 or not isinstance(target, ast.Attribute):
            return False
        if not _is_open(target, target.value, target.attr, file) or _is_number(node.value):
            return False
        given = f'{file.argument(target.value)}, "{target.attr}", {file.argument(node.value)}'
        layout.write_statement(file, node, f"{file.name('composites.set_buffer')}({given})")
        return True


def _by_name(node: ast.Call, file: FileEdit) -> bool:
    """`setattr(net, "scale", x)`."""
    if getattr(node.func, "id", "") != "setattr" or len(node.args) != 3:
        return False
    owner, name, value = node.args
    text = getattr(name, "value", None)
    if not isinstance(text, str) or not _is_open(node, owner, text, file) or _is_number(value):
        return False
    file.replace(node.func, file.name("composites.set_buffer"))
    return True


def _changed(node: ast.AugAssign, file: FileEdit) -> bool:
    """`net.scale /= 2`; a number that is one changes as ever."""
    target, sign = node.target, SIGNS.get(type(node.op))
    if not isinstance(target, ast.Attribute) or sign is None or not is_path(target):
        return False
    if not _is_open(target, target.value, target.attr, file):
        return False
    call, owner = file.name("composites.augmented"), file.argument(target.value)
    value = f'{call}("{sign}", {file.source(target)}, {file.argument(node.value)})'
    code = f'{file.name("composites.set_buffer")}({owner}, "{target.attr}", {value})'
    layout.write_statement(file, node, code)
    return True


def _is_open(node: ast.AST, owner: ast.expr, name: str, file: FileEdit) -> bool:
    """Whether what is set may be a buffer, and no other pass knows its class."""
    buffers = file.settings.buffers
    if place(node) not in file.facts.sets_of_modules or all(name != own for _, own in buffers):
        return False
    held = file.layers_held(owner)
    if held and file.settings.layers.set_late(name, held):
        return False
    if getattr(owner, "id", "") != "self":
        is_of_layer = file.layers_held(owner) or file.layers_followed(owner, name)
        return name not in file.settings.layer_attributes or not is_of_layer
    own = file.tree.owner(node)
    info = None if own is None else file.class_info(own)
    if own is None or info is None or name in registered_buffers(own, file):
        return False
    return any((base, name) in buffers for base in bases_of(info))


def bases_of(info: ClassInfo) -> list[str]:
    """The names of the project's classes from which one derives."""
    seen = [info]
    for one in seen:
        seen += [base for base in one.bases if isinstance(base, ClassInfo) and base not in seen]
    return [one.name for one in seen[1:]]


def _is_number(node: ast.expr) -> bool:
    """Whether a value is written out, and no tensor; None unsets a buffer."""
    return isinstance(node, ast.Constant)
