"""`hasattr(x, "parameters")`, `getattr(x, "detach", None)`: what MindSpore's objects have not."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example

#: Methods of torch's modules, and what tensors have, that MindSpore's have not; each with the
#: runtime function that does the same, where there is one.
_OF_MODULES = {
    "parameters": "parameters",
    "named_parameters": "named_parameters",
    "modules": "modules",
    "named_modules": "named_modules",
    "children": "children",
    "named_children": "named_children",
    "requires_grad_": "requires_grad_",
    "zero_grad": "zero_grad",
    "train": "set_mode",
    "eval": "",
    "cpu": "on_host",
    "cuda": "on_accelerator",
    "half": "",
    "float": "",
    "double": "",
    "bfloat16": "",
    "add_module": "",
    "register_parameter": "",
    "get_submodule": "",
    "get_parameter": "",
}
_OF_TENSORS = {
    "detach": "ops.stop_gradient",
    "cpu": "on_host",
    "cuda": "on_accelerator",
    "backward": "backward",
    "requires_grad": "",
    "requires_grad_": "",
    "grad": "",
    "grad_fn": "",
    "is_cuda": "",
    "is_leaf": "",
}
_RESET = "reset_parameters"


class AskedMembers:
    """A question for a method by its name, where the answer differs, and the method itself."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "whether there is one",
            """
            def count(part):
                if hasattr(part, 'parameters'):
                    return sum(1 for _ in part.parameters())
                return torch.numel(part) if hasattr(part, 'detach') else 0
            """,
        ),
        Example(
            "one or nothing",
            """
            def named(part):
                found = getattr(part, 'named_parameters', None)
                return [] if found is None else torch.tensor(len(list(found())))
            """,
        ),
        Example(
            "the first weights",
            """
            def start(layer: nn.Module):
                reset = getattr(layer, 'reset_parameters', None)
                if callable(reset):
                    reset()
            """,
        ),
    )
    counterexamples = (
        Example(
            "an object of the program's own",
            """
            class Trainer:
                def run(self, x):
                    return torch.relu(x) if hasattr(self, 'parameters') else x
            """,
        ),
        Example(
            "a name that both have",
            """
            def state(part: nn.Module):
                return part.state_dict() if hasattr(part, 'state_dict') else None
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Ask for the kinds of objects that have it in torch as well."""
        assert isinstance(node, ast.Call)
        asked = getattr(node.func, "id", "")
        if asked not in ("hasattr", "getattr") or node.keywords or len(node.args) < 2:
            return False
        name = getattr(node.args[1], "value", None)
        if not isinstance(name, str) or _is_anothers(node.args[0], file):
            return False
        owner, default = file.source(node.args[0]), [file.argument(part) for part in node.args[2:]]
        if name == _RESET and asked == "getattr":
            code = f"{file.name('composites.reset_method')}({', '.join((owner, *default))})"
        elif asked == "hasattr" and (kinds := _kinds(name, file)):
            code = f'{file.name("composites.has_member")}({owner}, "{name}", {kinds})'
        elif function := _OF_MODULES.get(name) or _OF_TENSORS.get(name):
            function = function if "." in function else f"composites.{function}"
            given = (owner, f'"{name}"', _kinds(name, file), file.name(function), *default)
            code = f"{file.name('composites.method_of')}({', '.join(given)})"
        else:
            return False
        file.replace(node, code)
        return True


def _kinds(name: str, file: FileEdit) -> str:
    """MindSpore's classes for what has such a member in torch; empty where there are none."""
    found = [file.name("nn.Cell")] if name in _OF_MODULES else []
    found += [file.name("ms.Tensor")] if name in _OF_TENSORS else []
    return f"({', '.join(found)})" if found[1:] else "".join(found)


def _is_anothers(owner: ast.expr, file: FileEdit) -> bool:
    """Whether something of torch's is asked, or the object of a class that is no module."""
    if file.use(owner) is not None:
        return True
    around = file.tree.owner(owner) if getattr(owner, "id", "") == "self" else None
    return around is not None and not file.is_module_class(around)
