"""`setattr(parent, name, layer)`, `parent._modules[name] = layer`: a child by a computed name.

MindSpore's SequentialCell goes on to run the child that it had under that name.
"""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.places import place

_SEQUENTIAL = "torch.nn.Sequential"
#: What leads to the modules below another: a file that names one of them may replace some.
_LEADING = frozenset("named_children named_modules children modules _modules get_submodule".split())


class ChildrenByName:
    """A module that takes the place of another, wherever that is."""

    kinds = (ast.Call, ast.Assign)
    after = ("LayerSettings", "BuffersOfOthers")  # which know what some names mean
    examples = (
        Example(
            "layers that are replaced by others",
            """
            def swap(module):
                for name, child in module.named_children():
                    if isinstance(child, nn.ReLU):
                        setattr(module, name, nn.GELU())
                    else:
                        swap(child)
            """,
        ),
        Example(
            "by the dictionary of a module",
            """
            def swap(module):
                for name in module._modules:
                    module._modules[name] = nn.GELU()
            """,
        ),
    )
    counterexamples = (
        Example(
            "settings of anything else",
            """
            def fill(options, given):
                for name, value in given.items():
                    setattr(options, name, value)
                return torch.zeros(2)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write a function that has a Sequential run the new child."""
        if file.is_shaped(_SEQUENTIAL):
            return False  # whose children are what it runs
        if isinstance(node, ast.Call):
            return _by_name(node, file)
        assert isinstance(node, ast.Assign)
        target = node.targets[0]
        if len(node.targets) > 1 or not isinstance(target, ast.Subscript):
            return False
        held = target.value
        if not isinstance(held, ast.Attribute) or held.attr != "_modules":
            return False
        if _is_of_others(held.value, file):
            return False
        parts = map(file.argument, (held.value, target.slice, node.value))
        call = file.name("composites.set_child")
        layout.write_statement(file, node, f"{call}({', '.join(parts)})")
        return True


def _by_name(node: ast.Call, file: FileEdit) -> bool:
    """`setattr(parent, name, layer)`, also where only the run shows what parent and layer are."""
    is_known = file.facts.sets_of_children.get(place(node))
    if is_known is None or node.keywords or _is_of_others(node.args[0], file):
        return False
    if not is_known:
        is_led_to = any(part.attr in _LEADING for part in file.tree.of(ast.Attribute))
        if not is_led_to or str(_text(node.args[1])).isidentifier():
            return False
    layout.write(file, node.func, file.name("composites.set_child"))
    return True


def _is_of_others(owner: ast.expr, file: FileEdit) -> bool:
    """Whether an expression is `self` of a class that is no Sequential."""
    own = file.tree.owner(owner) if getattr(owner, "id", "") == "self" else None
    info = None if own is None else file.class_info(own)
    return info is not None and info.root != _SEQUENTIAL


def _text(node: ast.expr) -> object:
    """What is written out; a text that is no name otherwise."""
    return node.value if isinstance(node, ast.Constant) else ""
