"""`super().to(device)` in a class's own `to`: the runtime's functions take the network itself."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example

_MODULE = "torch.nn.Module."
#: Methods that are functions of the runtime in a port, or nothing: they call no method of a class.
_OF_RUNTIME = frozenset(
    "to cuda cpu float double half bfloat16 type buffers named_buffers zero_grad "
    "requires_grad_".split()
)
#: Functions of the runtime that ask the classes of a cell first, also behind `super()`.
_ASKING = frozenset((f"{_MODULE}parameters", f"{_MODULE}named_parameters"))


class SuperMethods:
    """A method of torch's that a class has anew and calls by `super()`.

    `super()` is no cell: `buffers(super())` would look for a method of torch's on it.  The
    functions `parameters` and `named_parameters` take it: they ask the classes of a cell first.
    """

    kinds = (ast.Call,)
    examples = (
        Example(
            "a network that moves a tensor of its own, too",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.norm = nn.BatchNorm1d(3)
                    self.scale = torch.ones(3)

                def to(self, device):
                    self.scale = self.scale.to(device)
                    return super(Net, self).to(device)
            """,
        ),
    )
    counterexamples = (
        Example(
            "a method that a class of the project has",
            """
            class Base(nn.Module):
                def to(self, device):
                    self.device = device
                    return self

            class Net(Base):
                def to(self, device):
                    return super().to(device)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the method's own name of the object in place of `super()`."""
        assert isinstance(node, ast.Call)
        _of_torchs_class(node, file)
        asked = file.tree.parents[node]
        if getattr(node.func, "id", "") != "super" or not isinstance(asked, ast.Attribute):
            return False
        use = file.use(asked)
        is_meant = use is not None and use.api.startswith(_MODULE) and asked.attr in _OF_RUNTIME
        method = file.tree.function(node)
        if not is_meant or not isinstance(method, ast.FunctionDef) or not method.args.args:
            return False
        if isinstance(file.tree.parents[method], ast.ClassDef):
            file.replace(node, method.args.args[0].arg)
        return False


def _of_torchs_class(node: ast.Call, file: FileEdit) -> None:
    """`nn.Module.parameters(self)` in a class's own `parameters`: not by what the class has."""
    use, method = file.use(node.func), file.tree.function(node)
    if use is None or use.is_member or use.api not in _ASKING or not node.args:
        return
    if not isinstance(method, ast.FunctionDef) or method.name != use.api.removeprefix(_MODULE):
        return
    if isinstance(file.tree.parents[method], ast.ClassDef) and method.args.args:
        own = method.args.args[0].arg
        if getattr(node.args[0], "id", "") == own:
            file.replace(node.args[0], "super()")
