"""What modules hold: buffers that are bound anew, children by a private name, longer lists."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from isograd.convert.analysis.buffers import are_apart
from isograd.convert.analysis.private import is_own
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.passes.modules import is_module_class
from isograd.convert.places import place
from isograd.scan.values import Value

_LIST = "torch.nn.ModuleList"
_BUFFERS = frozenset(("torch.nn.Buffer", "torch.nn.parameter.Buffer"))

#: What may give back a tensor itself, which may be a Parameter.
_ITSELF = frozenset(
    "to type contiguous float double half bfloat16 int long cpu cuda as_tensor asarray".split()
)


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
        Example(
            "a class that is no module",
            """
            class Trainer:
                _modules = []

                def __init__(self):
                    self._parameters = {}

                def add(self, x):
                    self._modules.append(torch.relu(x))
                    return self._parameters
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
            if node.attr == "_modules" and not is_own(_owner(node, file), node.attr):
                end = file.text.span(node)[1]
                file.text.replace(end - len(node.attr), end, "_cells")
            elif place(node) in file.facts.private:
                # Layers whose parameters are all None have an entry for each in torch.
                function = file.name("composites.named_parameters")
                file.replace(node, f'dict({function}({file.source(node.value)}, "", False))')
        elif isinstance(node, ast.Call):
            _extend(node, file)
        return False


def _owner(node: ast.Attribute, file: FileEdit) -> Value:
    """What an attribute is read of, or set."""
    around = file.tree.owner(node) if getattr(node.value, "id", "") in ("self", "cls") else None
    return file.facts.owners.get(place(node)) or (file.class_info(around) if around else None)


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
    if registered is None or isinstance(node.value, ast.Constant):
        return  # None unsets a buffer, and a number is none
    if is_alternative(node, target.attr, owner, file):
        return
    is_sure = _is_new_tensor(node, target, file) and _is_always(registered, owner, file)
    start, more = f'{file.name("composites.set_buffer")}(self, "{target.attr}", ', ""
    if is_sure:
        lasting = [part.value for part in registered.keywords if part.arg == "persistent"]
        lasting += registered.args[2:3] if registered.args[1:] else []
        more = f", {ast.unparse(lasting[0])}" if lasting else ""
        start = f'self.register_buffer("{target.attr}", '
    (at, end), last = file.text.span(target), file.text.span(node)[1]
    text = file.text.original
    value = text.index("=", end) + 1
    value += len(text[value:]) - len(text[value:].lstrip(" "))  # brackets around it stay
    file.text.replace(at, value, start)
    file.text.insert(last, f"{more})")


def is_alternative(node: ast.stmt, name: str, owner: ast.ClassDef, file: FileEdit) -> bool:
    """Whether a constructor sets an attribute only where it registers no buffer of that name."""
    function = file.tree.function(node)
    if function is None or function.name != "__init__":
        return False
    made = [call for found, call in _registrations(owner, file) if found == name]
    return bool(made) and all(are_apart(node, call, file.tree) for call in made)


def has_alternative(name: str, owner: ast.ClassDef, file: FileEdit) -> bool:
    """Whether an attribute of a class is a buffer or something else, by what a branch does."""
    return any(
        isinstance(target, ast.Attribute)
        and target.attr == name
        and getattr(target.value, "id", "") == "self"
        and is_alternative(part, name, owner, file)
        for part in file.tree.walked(owner)
        if isinstance(part, ast.Assign)
        for target in part.targets
    )


def _is_new_tensor(node: ast.Assign, target: ast.Attribute, file: FileEdit) -> bool:
    """Whether a value is a tensor that an operation makes, which is no Parameter."""
    if isinstance(node.value, ast.Call):
        use = file.use(node.value.func)
        if use is None or not use.is_sure:
            return False
        head, _, last = use.api.rpartition(".")
        if head not in ("torch", "torch.Tensor") or last.endswith("_") or last in _ITSELF:
            return False
    elif not isinstance(node.value, (ast.BinOp, ast.UnaryOp)):
        return False
    return file.facts.is_tensor(target)


def _is_always(registered: ast.Call, owner: ast.ClassDef, file: FileEdit) -> bool:
    """Whether each object of a class has a buffer: its constructor makes it, in no branch."""
    function = file.tree.function(registered)
    if function is None or function.name != "__init__" or file.tree.owner(registered) is not owner:
        return False
    return file.tree.statement(registered) in function.body


def registered_buffers(owner: ast.ClassDef, file: FileEdit) -> dict[str, ast.Call]:
    """The call that makes each buffer of a class, by the buffer's name; looked up once."""
    if owner not in file.buffers:
        made: dict[str, ast.Call] = {}
        for name, call in _registrations(owner, file):
            made.setdefault(name, call)
        file.buffers[owner] = made
    return file.buffers[owner]


def _registrations(owner: ast.ClassDef, file: FileEdit) -> Iterator[tuple[str, ast.Call]]:
    """The calls that make buffers of a class, each with the buffer's name."""
    for part in file.tree.walked(owner):
        if isinstance(part, ast.Assign) and file.api_of_call(part.value) in _BUFFERS:
            assert isinstance(part.value, ast.Call)
            for target in part.targets:
                if isinstance(target, ast.Attribute):
                    yield target.attr, part.value
        if isinstance(part, ast.Call) and getattr(part.func, "attr", "") == "register_buffer":
            name = getattr(part.args[0], "value", None) if part.args else None
            if isinstance(name, str):
                yield name, part


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
