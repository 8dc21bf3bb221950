"""Attributes that are buffers of other modules: `self.mask = self.attention.mask`."""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.file import FileEdit
from isograd.convert.passes.buffers_of_others import bases_of
from isograd.convert.passes.example import Example
from isograd.convert.passes.module_contents import registered_buffers
from isograd.convert.passes.reach_of_writes import is_in_forward

_PART = """
class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer('scale', torch.ones(3))

"""


class SharedBuffers:
    """A tensor that is a buffer of another cell; MindSpore registers it here too, torch does not.

    Else the state of the port has entries that checkpoints of the reference have not.
    """

    kinds = (ast.Assign,)
    before = ("BuffersOfOthers", "LayerAttributes", "LayerSettings", "ModuleContents")
    examples = (
        Example(
            "the buffer of a part",
            _PART
            + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()
        self.scale_of_part = self.part.scale
""",
        ),
    )
    counterexamples = (
        Example(
            "an attribute that is computed",
            _PART
            + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()
        self.scale_of_part = self.part.scale * 2
""",
        ),
        Example(
            "an attribute that no module registers",
            _PART
            + """
class Net(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.width = settings.width
""",
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the function that binds the attribute and registers nothing."""
        assert isinstance(node, ast.Assign)
        target, value = node.targets[0], node.value
        if len(node.targets) > 1 or not isinstance(target, ast.Attribute):
            return False
        buffers = file.settings.buffers
        if not isinstance(value, ast.Attribute) or all(value.attr != name for _, name in buffers):
            return False
        own = file.tree.owner(node)
        info = None if own is None else file.class_info(own)
        if getattr(target.value, "id", "") != "self" or own is None or info is None:
            return False
        if not info.is_module:
            return False
        if target.attr in registered_buffers(own, file) or is_in_forward(node, file):
            return False
        if any((base, target.attr) in buffers for base in bases_of(info)):
            return False
        given = f'self, "{target.attr}", {file.argument(value)}'
        layout.write_statement(file, node, f"{file.name('composites.set_attribute')}({given})")
        return True
