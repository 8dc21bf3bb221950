"""Methods of training code on values of unknown kind, decided where the port runs.

A loss, a batch or a network is often a function's argument.  `batch.to(device)` is right for a
tensor, a network and a class of one's own only if the port asks which it is.
"""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.places import place

#: Methods, and the compositions that ask what the value is.
_ASKING = {
    "backward": "composites.backward",
    "zero_grad": "composites.zero_grad",
    "to": "composites.moved",
    "cuda": "composites.on_accelerator",
    "cpu": "composites.on_host",
    "detach": "composites.detached",
    "numpy": "composites.as_numpy",
    "size": "composites.size_of",
    "new": "composites.new_of",
    "type": "composites.typed",
}
#: Values whose methods of these names are their own: `self.backward(loss)`, `super().to(…)`.
_OWN = frozenset(("self", "cls", "super", "ctx"))


_SECOND = (
    "create_graph asks for gradients of gradients; MindSpore 2.10's are wrong in PyNative mode "
    "where a product of matrices, a transpose or a reshape lies between"
)
_SECOND_ADVICE = (
    "Write the function, take mindspore.grad of it twice, and compile that with mindspore.jit: "
    "compiled functions have them right."
)
_DIFFERENTIATING = frozenset(("torch.autograd.backward", "torch.autograd.grad"))


class SecondDerivatives:
    """`loss.backward(create_graph=True)`: what a port cannot do is reported at its line."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "a gradient of a gradient",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                loss = x.sum()
                loss.backward(create_graph=True)
            """,
        ),
    )
    counterexamples = (
        Example(
            "a gradient",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                loss = x.sum()
                loss.backward()
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Report it; the call itself is for the other passes."""
        assert isinstance(node, ast.Call)
        is_backward = isinstance(node.func, ast.Attribute) and node.func.attr == "backward"
        if not is_backward and file.api_of_call(node) not in _DIFFERENTIATING:
            return False
        for part in node.keywords:
            is_off = isinstance(part.value, ast.Constant) and not part.value.value
            if part.arg == "create_graph" and not is_off:
                file.finding(node, "second-derivative", _SECOND, _SECOND_ADVICE)
        return False


class Uncertain:
    """`loss.backward()` and its like where what they are called on is not known."""

    kinds = (ast.Call, ast.Attribute)
    examples = (
        Example(
            "a batch of which nothing is known",
            """
            def f(batch):
                return batch.to('cuda')
            """,
        ),
        Example(
            "a class of tensors that a name holds",
            """
            def f(batch, cuda):
                kind = torch.cuda.FloatTensor if cuda else torch.FloatTensor
                return batch.type(kind)
            """,
        ),
    )
    counterexamples = (
        Example(
            "a tensor",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return x.to('cuda')
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the runtime function that asks; `x.grad` is None where nothing is kept."""
        if isinstance(node, ast.Attribute):
            return _gradient(node, file)
        assert isinstance(node, ast.Call)
        function = node.func
        if not isinstance(function, ast.Attribute) or function.attr not in _ASKING:
            return False
        if not _is_open(function, file) or any(part.arg is None for part in node.keywords):
            return False
        if function.attr == "type" and not _is_of_a_name(node, file):
            return False
        if function.attr == "new" and (node.keywords or any(map(_is_text, node.args))):
            return False
        parts = [file.source(function.value), *(file.argument(part) for part in node.args)]
        parts += [f"{part.arg}={file.argument(part.value)}" for part in node.keywords]
        layout.write_call(file, node, f"{file.name(_ASKING[function.attr])}({', '.join(parts)})")
        file.uses += 1
        file.converted += 1
        return True


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))


def _is_of_a_name(node: ast.Call, file: FileEdit) -> bool:
    """`x.type(kind)`: what it says of torch itself is for other passes, a text is no dtype."""
    kinds = (ast.Name, ast.Attribute, ast.Subscript, ast.IfExp)
    given = node.args[0] if len(node.args) == 1 and not node.keywords else None
    return isinstance(given, kinds) and given not in file.named


def _is_open(node: ast.Attribute, file: FileEdit) -> bool:
    """Whether the value may be torch's, and is not known to be."""
    if node in file.named or _root(node) in _OWN:
        return False
    use = file.use(node)
    if use is not None:
        return use.is_member and not use.is_sure
    return place(node) in file.facts.unknown


def _root(node: ast.Attribute) -> str:
    """The name of the value itself, where it is a plain one."""
    value: ast.expr = node.value
    if isinstance(value, ast.Call):
        value = value.func
    return value.id if isinstance(value, ast.Name) else ""


def _gradient(node: ast.Attribute, file: FileEdit) -> bool:
    if node.attr != "grad" or not isinstance(node.ctx, ast.Load) or node in file.named:
        return False
    parent = file.tree.parents.get(node)
    if isinstance(parent, ast.Call) and parent.func is node:
        return False
    if not _is_open(node, file):
        return False
    layout.write(file, node, f"getattr({file.source(node.value)}, 'grad', None)")
    file.uses += 1
    file.converted += 1
    return True
