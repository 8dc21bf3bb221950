"""Methods of torch's modules on values of which nothing is known: `model.train()` of an argument.

What the value is shows when the port runs: a cell has MindSpore's methods, anything else its own.
"""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.places import place

#: Functions of the runtime that take any object, by the method and the most arguments of it.
_FUNCTIONS = {
    "parameters": 1,
    "buffers": 1,
    "named_buffers": 3,
    "named_parameters": 3,
    "modules": 0,
    "named_modules": 3,
    "children": 0,
    "named_children": 0,
    "load_state_dict": 2,
    "get_submodule": 1,
    "get_parameter": 1,
    "requires_grad_": 1,
    "add_module": 2,
    "register_module": 2,
    "register_full_backward_hook": 2,
}
#: Functions by another name than the method's: a tensor may have the method, too, or two are one.
_NAMES = {"requires_grad_": "tensor_requires_grad_", "register_module": "add_module"}
_MODES = {"train": "True", "eval": "False"}


class UnknownModules:
    """`model.parameters()`, `model.eval()`."""

    kinds = (ast.Call,)
    after = ("Writes",)  # which binds the name that a leaf is made of
    examples = (
        Example(
            "a network of which nothing is known",
            """
            def f(model):
                model.eval()
                return list(model.parameters())
            """,
        ),
        Example(
            "within an expression",
            """
            def f(model, x):
                return model.eval()(x)
            """,
        ),
    )
    counterexamples = (
        Example(
            "a network that is known",
            """
            net = nn.Linear(2, 2)
            values = list(net.parameters())
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write a function that asks what it is given."""
        assert isinstance(node, ast.Call)
        function = node.func
        if file.settings.layers.every or not isinstance(function, ast.Attribute):
            return False
        if place(function) not in file.facts.unknown or not file.imported.torch:
            return False
        name, given = function.attr, [*node.args, *node.keywords]
        receiver = file.argument(function.value)
        if name in _MODES and len(given) <= (name == "train") and not node.keywords:
            mode = file.source(node.args[0]) if node.args else _MODES[name]
            code = f"{file.name('composites.set_mode')}({receiver}, {mode})"
            layout.write_call(file, node, code)
            return False
        if name in _FUNCTIONS and len(given) <= _FUNCTIONS[name]:
            arguments = "".join(f", {file.source(part)}" for part in given)
            own = file.name(f"composites.{_NAMES.get(name, name)}")
            code = f"{own}({receiver}{arguments})"
            layout.write_call(file, node, code)
            return True
        return False
