"""`device.type`: a device of torch's is an object, what MindSpore's tensors say is a text."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from isograd.convert import layout
from isograd.convert.analysis.devices import is_name_of_device
from isograd.convert.analysis.layers import is_path
from isograd.convert.file import FileEdit
from isograd.convert.passes.device_moves import devices_of
from isograd.convert.passes.example import Example
from isograd.convert.tree import is_none

_TENSORS, _MADE = "torch.Tensor.device", "torch.device"
_ASKED = {"type": "composites.device_type", "index": "composites.device_index"}
#: What `device.type` may be.
_KINDS = frozenset("cpu cuda mps xla xpu hpu npu meta ipu mtia privateuseone".split())


class DeviceKinds:
    """`.type` and `.index` of what is a device, or may be one."""

    kinds = (ast.Attribute,)
    examples = (
        Example(
            "a device that a name holds",
            """
            def f(x: torch.Tensor):
                d = x.device
                return d.type == "cpu"
            """,
        ),
        Example(
            "what may be one",
            """
            def f(n, device):
                return torch.ones(n, device=device), device.type
            """,
        ),
    )
    counterexamples = (
        Example(
            "one that is made here",
            """
            d = torch.device("cpu")
            print(d.type)
            """,
        ),
        Example(
            "a type of the program's own",
            """
            def f(event, action, x: torch.Tensor):
                return event.type, event.key, x if action.type == "key" else -x
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Call the runtime's function, which takes a text and a device."""
        assert isinstance(node, ast.Attribute)
        if node.attr not in _ASKED or not isinstance(node.ctx, ast.Load) or node in file.named:
            return False
        parent = file.tree.parents.get(node)
        if isinstance(parent, ast.Call) and parent.func is node:
            return False
        use = file.use(node.value)
        if use is not None and use.api == _TENSORS and use.is_sure and node.attr == "type":
            return False  # a text for certain, which another pass writes
        if not _may_be_text(node.value, file) and not (
            node.attr == "type" and _looks_like_one(node, file)
        ):
            return False
        layout.write(file, node, f"{file.name(_ASKED[node.attr])}({file.source(node.value)})")
        file.uses += 1
        file.converted += 1
        return True


def _may_be_text(value: ast.expr, file: FileEdit) -> bool:
    """Whether a value is a device that may be a tensor's."""
    if isinstance(value, ast.Attribute) and value.attr == "device" and value not in file.named:
        return not _is_made(_values_of_attribute(value, file), file)
    if isinstance(value, ast.Attribute):
        return any(_is_tensors(one, file) for one in _values_of_attribute(value, file))
    if not isinstance(value, ast.Name):
        return False
    function = file.tree.function(value)
    for argument in _arguments(function):
        if argument.arg == value.id and argument.annotation is not None:
            return any(file.named.get(part) == _MADE for part in ast.walk(argument.annotation))
    return _is_tensors(value, file)


def _is_tensors(value: ast.expr, file: FileEdit) -> bool:
    """Whether a value is what a tensor or a module calls its device."""
    if isinstance(value, ast.Name):
        values = _values_of_name(value, file)
        if any(isinstance(one, ast.Attribute) and _is_tensors(one, file) for one in values):
            return True
        return is_name_of_device(value, devices_of(file)) and not _is_made(values, file)
    return isinstance(value, ast.Attribute) and value.attr == "device" and value not in file.named


def _is_made(values: list[ast.expr], file: FileEdit) -> bool:
    """Whether all of these make a device of torch's, an object in the port as well."""
    values = [value for value in values if not is_none(value)]
    return bool(values) and all(file.api_of_call(value) == _MADE for value in values)


def _values_of_attribute(node: ast.Attribute, file: FileEdit) -> list[ast.expr]:
    """What its class binds to `self.name`."""
    if getattr(node.value, "id", "") != "self":
        return []
    for owner in file.tree.above(node):
        if isinstance(owner, ast.ClassDef):
            return file.attribute_values.get((owner, node.attr), [])
    return []


def _values_of_name(name: ast.Name, file: FileEdit) -> list[ast.expr]:
    return [
        part.value
        for part in file.tree.walked(file.tree.scope(name))
        if isinstance(part, ast.Assign)
        if any(getattr(target, "id", "") == name.id for target in part.targets)
    ]


def _arguments(function: ast.AST | None) -> Iterator[ast.arg]:
    if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        given = function.args
        yield from (*given.posonlyargs, *given.args, *given.kwonlyargs)


def _looks_like_one(node: ast.Attribute, file: FileEdit) -> bool:
    """Whether an unknown value may be a device: nothing that a device has not is asked of it."""
    value = node.value
    if not is_path(value) or file.use(value) is not None or value in file.named:
        return False
    if getattr(value, "id", "") in ("self", "cls") or _is_made(_bound(value, file), file):
        return False
    text, scope = ast.unparse(value), file.tree.scope(node)
    if any(
        part.attr not in _ASKED and ast.unparse(part.value) == text
        for part in file.tree.walked(scope)
        if isinstance(part, ast.Attribute)
    ):
        return False
    kinds = _texts_beside(node, file)
    if kinds:
        return not _KINDS.isdisjoint(kinds)
    is_argument = any(argument.arg == text for argument in _arguments(file.tree.function(node)))
    return is_argument or any(_is_given(part, text) for part in file.tree.walked(scope))


def _texts_beside(node: ast.Attribute, file: FileEdit) -> set[str]:
    """The texts with which a value is compared."""
    parent = file.tree.parents.get(node)
    if not isinstance(parent, ast.Compare):
        return set()
    return {
        part.value
        for one in (parent.left, *parent.comparators)
        for part in ast.walk(one)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    }


def _is_given(node: ast.AST, text: str) -> bool:
    """Whether a value is given as a device: `device=value`, `x.to(value)`."""
    if isinstance(node, ast.keyword):
        return node.arg == "device" and ast.unparse(node.value) == text
    if not isinstance(node, ast.Call) or getattr(node.func, "attr", "") != "to":
        return False
    return any(ast.unparse(given) == text for given in node.args[:1])


def _bound(value: ast.expr, file: FileEdit) -> list[ast.expr]:
    if isinstance(value, ast.Attribute):
        return _values_of_attribute(value, file)
    return _values_of_name(value, file) if isinstance(value, ast.Name) else []
