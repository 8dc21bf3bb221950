"""What modules hold: buffers that are bound anew, children by a private name, longer lists."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.passes.modules import is_module_class
from isograd.convert.places import place

_LIST = "torch.nn.ModuleList"
_BUFFERS = frozenset(("torch.nn.Buffer", "torch.nn.parameter.Buffer"))


class ModuleContents:
    """`self.scale = …` of a buffer, `self._modules`, `self.blocks.extend(…)`."""

    kinds = (ast.Assign, ast.Attribute, ast.Call)
    examples = (
        Example(
            "a buffer that is bound anew",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.register_buffer('count', torch.zeros(1))

                def forward(self, x):
                    self.count = self.count + 1
                    return x
            """,
        ),
        Example(
            "a buffer that is bound anew, in brackets",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.register_buffer('count', torch.zeros(1))

                def forward(self, x):
                    self.count = (
                        self.count + x.sum()
                    )
                    return x
            """,
        ),
    )
    counterexamples = (
        Example(
            "an attribute that is no buffer",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.count = 0

                def forward(self, x):
                    self.count = self.count + 1
                    return torch.relu(x)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write what a Cell takes."""
        if file.is_shaped("torch.nn.Module"):
            return False
        if isinstance(node, ast.Assign):
            _bind_buffer(node, file)
        elif isinstance(node, ast.Attribute):
            if node.attr == "_modules":
                end = file.text.span(node)[1]
                file.text.replace(end - len(node.attr), end, "_cells")
            elif place(node) in file.facts.private:
                # Layers whose parameters are all None have an entry for each in torch.
                function = file.name("composites.named_parameters")
                file.replace(node, f'dict({function}({file.source(node.value)}, "", False))')
        elif isinstance(node, ast.Call):
            _extend(node, file)
        return False


def _bind_buffer(node: ast.Assign, file: FileEdit) -> None:
    """MindSpore refuses to bind a buffer to another tensor but by its own method."""
    target = node.targets[0]
    if len(node.targets) > 1 or not isinstance(target, ast.Attribute):
        return
    if getattr(target.value, "id", "") != "self":
        return
    owner = file.tree.owner(node)
    if owner is None or not is_module_class(owner, file):
        return
    if file.api_of_call(node.value) in _BUFFERS:
        return  # which another pass registers
    registered = registered_buffers(owner, file).get(target.attr)
    if registered is None:
        return
    lasting = [part.value for part in registered.keywords if part.arg == "persistent"]
    lasting += registered.args[2:3] if registered.args[1:] else []
    more = f", {ast.unparse(lasting[0])}" if lasting else ""
    (start, end), last = file.text.span(target), file.text.span(node)[1]
    text = file.text.original
    value = text.index("=", end) + 1
    value += len(text[value:]) - len(text[value:].lstrip(" "))  # brackets around it stay
    file.text.replace(start, value, f'self.register_buffer("{target.attr}", ')
    file.text.insert(last, f"{more})")


def registered_buffers(owner: ast.ClassDef, file: FileEdit) -> dict[str, ast.Call]:
    """The call that makes each buffer of a class, by the buffer's name; looked up once."""
    if owner not in file.buffers:
        file.buffers[owner] = _registered(owner, file)
    return file.buffers[owner]


def _registered(owner: ast.ClassDef, file: FileEdit) -> dict[str, ast.Call]:
    """The call that makes each buffer of a class, by the buffer's name."""
    found: dict[str, ast.Call] = {}
    for part in file.tree.walked(owner):
        if isinstance(part, ast.Assign) and file.api_of_call(part.value) in _BUFFERS:
            assert isinstance(part.value, ast.Call)
            for target in part.targets:
                if isinstance(target, ast.Attribute):
                    found.setdefault(target.attr, part.value)
        if isinstance(part, ast.Call) and getattr(part.func, "attr", "") == "register_buffer":
            name = getattr(part.args[0], "value", None) if part.args else None
            if isinstance(name, str):
                found.setdefault(name, part)
    return found


def _extend(node: ast.Call, file: FileEdit) -> None:
    """A CellList is extended by lists alone."""
    function = node.func
    if not isinstance(function, ast.Attribute) or function.attr != "extend":
        return
    if len(node.args) != 1 or isinstance(node.args[0], (ast.List, ast.ListComp, ast.Starred)):
        return
    if file.layers_held(function.value) == {_LIST} and not file.is_shaped(_LIST):
        code = f"[*{file.argument(node.args[0])}]"
        is_bare = file.text.span(node.args[0])[1] == file.text.span(node)[1]  # f(x for x in y)
        file.replace(node.args[0], f"({code})" if is_bare else code)
