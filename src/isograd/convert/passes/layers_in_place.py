"""Layers made with `inplace=True`, which change what they are called with."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from isograd.convert.file import FileEdit
from isograd.convert.kept_outputs import kept_by, loops_that_keep
from isograd.convert.model import Level
from isograd.convert.passes.chains import is_read_after
from isograd.convert.passes.example import Example
from isograd.convert.passes.inplace import bind
from isograd.convert.passes.reach_of_writes import all_values_of
from isograd.convert.passes.saved_values import by_result
from isograd.convert.passes.waiting_operands import can_be_first, indent_of, reads_before
from isograd.convert.settings import LayersInPlace
from isograd.convert.tree import is_none
from isograd.knowledge.rewrite import parameters_of

_FIRST = (
    "the first of these layers changes its input, in torch for whoever reads that again; "
    "the port does not"
)
_CHANGED = "{0} changes {1} in torch, which is read again here; not in the port"
_KEPT = (
    "{0} is kept here, and the layer after it may change it in torch (the project has layers with "
    "inplace=True); not in the port"
)
_HOOK = "register_forward_hook"
_HOOKED = (
    "if the hook keeps an output, the layer after it may change that in torch (the project has "
    "layers with inplace=True); not in the port"
)
#: What goes through all layers of a network.
_ALL_CHILDREN = frozenset("children named_children modules named_modules _modules".split())
_KEPT_ADVICE = "If it does, keep what that layer makes of it: its result has the same values."
_CHANGED_ADVICE = "Bind what its first layer makes of {0} to {0} before."
_SEQUENTIAL = "torch.nn.Sequential"
#: Layers that change nothing the second time, as functions.
_IDEMPOTENT = {"torch.nn.ReLU": "ops.relu", "torch.nn.ReLU6": "ops.relu6"}


class InPlaceLayers:
    """`self.relu(x)` of an `nn.ReLU(inplace=True)`: x is the result from then on."""

    kinds = (ast.Call, ast.For)
    examples = (
        Example(
            "an input that is read again",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.relu = nn.ReLU(inplace=True)

                def forward(self, x):
                    y = self.relu(x)
                    return y + x
            """,
        ),
        Example(
            "a layer in a variable",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                act = nn.ReLU(inplace=True)
                z = x * y
                return act(z) + z
            """,
        ),
    )
    counterexamples = (
        Example(
            "an input that nothing else has",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.layer = nn.Linear(2, 2)
                    self.relu = nn.ReLU(inplace=True)

                def forward(self, x):
                    return self.relu(self.layer(x))
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Bind the result to the input's name where that is read again."""
        if isinstance(node, ast.For):
            _tell_kept(node, file)
            return False
        assert isinstance(node, ast.Call)
        if file.api_of_call(node) == _SEQUENTIAL:
            _tell_first_in_place(node, file)
            return False
        function = node.func
        if getattr(function, "attr", "") == _HOOK and file.settings.works_in_place:
            file.finding(node, "in-place-kept", _HOOKED, _KEPT_ADVICE, level=Level.LOOK)
            return False
        if isinstance(function, ast.Name) and len(node.args) == 1 and file.settings.works_in_place:
            values = all_values_of(function, file)
            function = values[0] if len(values) == 1 else function
        if isinstance(function, ast.Call) and len(node.args) == 1:
            is_safe = by_result(file.api_of_call(function))
            return changes_its_input(function, file) and bind(
                node.args[0], node, file.source(node), file, is_safe=is_safe
            )
        if not (isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)):
            return False
        if function.value.id != "self" or len(node.args) != 1:
            return False
        layers = _layers_in_place(node, file)
        if function.attr in layers.first:
            _change_input(node, file, layers.first[function.attr])
        if function.attr not in layers.whole:
            return False
        is_safe = all(map(by_result, _apis_of(function, file)))
        return bind(node.args[0], node, file.source(node), file, is_safe=is_safe)


def _apis_of(layer: ast.Attribute, file: FileEdit) -> set[str]:
    """The APIs of torch that make the layers which `self.act` may hold."""
    owner = next(part for part in file.tree.above(layer) if isinstance(part, ast.ClassDef))
    values = file.attribute_values.get((owner, layer.attr), [])
    return {file.api_of_call(value) for value in values if not is_none(value)} or {""}


def _tell_kept(loop: ast.For, file: FileEdit) -> None:
    """Tell a loop over layers that keeps what they return, where layers may work in place."""
    kept = kept_by(loop) if file.settings.works_in_place else ""
    if not kept or not file.imported.torch:
        return
    owner = next((part for part in file.tree.above(loop) if isinstance(part, ast.ClassDef)), None)
    written = _layers_of(owner, file).written
    statements = [file.tree.statement(call) for call in written]
    made = {part.attr for node in statements for part in _own_attributes(node)}
    through = {part.attr for part in _own_attributes(loop.iter)} - _ALL_CHILDREN
    if not written or (through and not through & made):
        message = _KEPT.format(kept)
        file.finding(loop, "in-place-kept", message, _KEPT_ADVICE, level=Level.LOOK)


def _own_attributes(node: ast.AST) -> list[ast.Attribute]:
    """`self.features` wherever it stands."""
    return [
        part
        for part in ast.walk(node)
        if isinstance(part, ast.Attribute) and getattr(part.value, "id", "") == "self"
    ]


def _change_input(node: ast.Call, file: FileEdit, layer: str) -> None:
    """`x + self.block(x)` of a Sequential whose first layer changes x for the others as well.

    Where that layer changes nothing the second time, it is applied before the statement.
    """
    assert isinstance(node.func, ast.Attribute)
    target = node.args[0]
    if not isinstance(target, ast.Name):
        return
    statement = file.tree.statement(node)
    before = reads_before(target, node, statement, file)
    if not before and not is_read_after(target, node, file):
        return
    first = file.text.span(statement)[0]
    indent = indent_of(statement, file)
    if layer in _IDEMPOTENT and indent is not None and can_be_first(node, before, file):
        called = _unused(f"{node.func.attr.strip('_')}_of_{target.id}", file)
        layer_call = f"{file.name(_IDEMPOTENT[layer])}({target.id})"
        lines = (f"{called} = {file.source(node)}", f"{target.id} = {layer_call}", "")
        file.text.insert(first, f"\n{indent}".join(lines))
        file.replace(node, called)
        return
    message = _CHANGED.format(file.text.raw(node.func), target.id)
    file.finding(node, "in-place-input", message, _CHANGED_ADVICE.format(target.id))


def _unused(name: str, file: FileEdit) -> str:
    while name in file.tree.used:
        name += "_"
    return name


def _first_layer(node: ast.Call) -> ast.expr | None:
    """What a Sequential is made of first."""
    first: ast.expr | None = node.args[0] if node.args else None
    if isinstance(first, ast.Call) and getattr(first.func, "id", "") == "OrderedDict":
        first = first.args[0] if first.args else None
    if isinstance(first, (ast.List, ast.Tuple)) and first.elts:
        first = first.elts[0]
    if isinstance(first, ast.Tuple) and first.elts:
        first = first.elts[-1]
    return first


def _tell_first_in_place(node: ast.Call, file: FileEdit) -> None:
    """Tell a Sequential whose first layer changes what the Sequential is called with."""
    first = _first_layer(node)
    if isinstance(first, ast.Call) and changes_its_input(first, file):
        file.finding(first, "in-place-input", _FIRST, level=Level.LOOK)


def _layers_in_place(node: ast.Call, file: FileEdit) -> LayersInPlace:
    """Those of the class around a node."""
    owner = next((part for part in file.tree.above(node) if isinstance(part, ast.ClassDef)), None)
    return _layers_of(owner, file)


def _layers_of(owner: ast.ClassDef | None, file: FileEdit) -> LayersInPlace:
    if file.layers_in_place is None:
        file.layers_in_place = _layers_by_class(file)
    return file.layers_in_place.get(owner, LayersInPlace())


def _layers_by_class(file: FileEdit) -> dict[ast.AST | None, LayersInPlace]:
    """Those of all classes; a class has its inner classes' as well."""
    keeping = {
        owner
        for loop in loops_that_keep(file.tree)
        for owner in file.tree.above(loop)
        if isinstance(owner, ast.ClassDef)
    }
    found: dict[ast.AST | None, LayersInPlace] = {
        owner: LayersInPlace(written=frozenset(_layers_made_in(owner, file))) for owner in keeping
    }
    for (owner, name), values in file.attribute_values.items():
        known = found.setdefault(owner, LayersInPlace())
        in_place = [value for value in values if _is_in_place(value, file)]
        if owner in keeping:
            continue
        if in_place and len(in_place) == len([v for v in values if not is_none(v)]):
            found[owner] = replace(known, whole=known.whole | {name})
        elif in_place:
            found[owner] = replace(known, written=known.written.union(in_place))
        else:
            first = [layer for value in values if (layer := _first_in_place(value, file))]
            if first:
                found[owner] = replace(known, first=known.first | {name: first[-1]})
    return found


def _is_in_place(node: ast.AST, file: FileEdit) -> bool:
    return isinstance(node, ast.Call) and changes_its_input(node, file)


def _layers_made_in(owner: ast.ClassDef, file: FileEdit) -> Iterator[ast.AST]:
    for part in file.tree.walked(owner):
        if _is_in_place(part, file) and file.names.kind(file.api_of_call(part)) == "M":
            yield part


def _first_in_place(node: ast.expr, file: FileEdit) -> str:
    """The API of the layer in place with which a Sequential begins; empty for all others."""
    if not isinstance(node, ast.Call) or file.api_of_call(node) != _SEQUENTIAL:
        return ""
    layer = _first_layer(node)
    is_first = layer is not None and _is_in_place(layer, file)
    return file.api_of_call(layer) if is_first and layer is not None else ""


def writes_itself(node: ast.Call, file: FileEdit) -> bool:
    """Whether a layer that is made here has to write into what it is called with.

    Where it is called, nothing shows that it works in place, or who else holds its input: another
    branch makes another layer, or a loop over layers keeps what each of them returns.
    """
    return node in _layers_in_place(node, file).written


def changes_its_input(node: ast.Call, file: FileEdit) -> bool:
    """Whether `inplace=True` is written out, as a keyword or at its place: `nn.ReLU(True)`."""
    entry = file.entry(file.api_of_call(node))
    if entry is None or "inplace" not in entry.signature:
        return False
    place = [parameter.name for parameter in parameters_of(entry.signature)].index("inplace")
    given = [part.value for part in node.keywords if part.arg == "inplace"]
    given += node.args[place : place + 1]
    return any(isinstance(value, ast.Constant) and value.value is True for value in given)
