"""`p.detach_()` of a Parameter, which learns no more: of a leaf torch changes nothing else."""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.file import FileEdit
from isograd.convert.passes.elements import written_place
from isograd.convert.passes.example import Example


class DetachedParameters:
    """`detach_` of a layer's weight, or of what a loop over parameters takes, as a statement."""

    kinds = (ast.Call,)
    before = ("InPlace",)
    examples = (
        Example(
            "the parameters of a layer",
            """
            layer = nn.Linear(2, 3)
            for p in layer.parameters():
                p.detach_()
            """,
        ),
        Example(
            "a weight",
            """
            layer = nn.BatchNorm1d(2)
            layer.weight.detach_()
            """,
        ),
        Example(
            "those that are chosen by their names",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.layer = nn.Linear(2, 3)

                def freeze(self):
                    for name, p in self.named_parameters():
                        if "bias" in name:
                            continue
                        p.detach_()
            """,
        ),
    )
    counterexamples = (
        Example(
            "tensors that may be computed",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                for one in [x * 2, y]:
                    one.detach_()
                return x
            """,
        ),
        Example(
            "a name that something else is bound to",
            """
            def f(layer: nn.Linear):
                for p in layer.parameters():
                    p = p * 2
                    p.detach_()
            """,
        ),
        Example(
            "a value that is taken",
            """
            layer = nn.Linear(2, 3)
            found = [p.detach_() for p in layer.parameters()]
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write that it does not learn."""
        assert isinstance(node, ast.Call)
        method = node.func
        if not isinstance(method, ast.Attribute) or method.attr != "detach_" or node.args:
            return False
        use, owner = file.use(method), method.value
        if use is None or not use.is_member or not file.tree.is_statement(node):
            return False
        is_name = isinstance(owner, ast.Name) and _is_of_loops_alone(owner, file)
        if not (is_name or file.is_parameter(owner)):
            return False
        layout.write_statement(file, node, f"{written_place(owner, file)}.requires_grad = False")
        file.uses += 1
        file.converted += 1
        return True


def _is_of_loops_alone(name: ast.Name, file: FileEdit) -> bool:
    """Whether nothing but loops over a network's parameters binds a name of the function."""
    found = False
    for part in file.tree.walked(file.tree.scope(name)):
        if isinstance(part, ast.arg) and part.arg == name.id:
            return False
        if isinstance(part, ast.Name) and part.id == name.id and isinstance(part.ctx, ast.Store):
            if not _is_taken_by_loop(part, file):
                return False
            found = True
    return found and file.tree.is_own(name.id, name)


def _is_taken_by_loop(name: ast.Name, file: FileEdit) -> bool:
    """`for p in net.parameters()`, `for name, p in net.named_parameters()`."""
    above, given = file.tree.parents[name], "parameters"
    if isinstance(above, ast.Tuple) and len(above.elts) == 2 and above.elts[1] is name:
        above, given = file.tree.parents[above], "named_parameters"
    if not isinstance(above, (ast.For, ast.comprehension)):
        return False
    use = file.use(above.iter.func) if isinstance(above.iter, ast.Call) else None
    return use is not None and use.is_sure and use.api == f"torch.nn.Module.{given}"
