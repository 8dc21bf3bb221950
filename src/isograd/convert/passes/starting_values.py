"""`nn.init.ones_(layer.weight.data[:2])`, and what else a function writes into `.data`."""

from __future__ import annotations

import ast

from isograd.convert.data_aliases import is_data
from isograd.convert.file import FileEdit
from isograd.convert.passes.elements import key_of, owner_of_data, owner_of_element
from isograd.convert.passes.example import Example
from isograd.convert.passes.reach_of_writes import tell_if_lost
from isograd.convert.passes.written_elements import tell_if_held
from isograd.knowledge.rewrite import NotRewritten

_INIT = "torch.nn.init."
#: Views with the tensor's elements in their order.
_RESHAPED = frozenset("view reshape flatten ravel squeeze unsqueeze view_as reshape_as".split())
_LOST = "{0} is a view, and what {1} writes into it does not reach the tensor in MindSpore"
_ADVICE = "Make values of the view's shape, and write them into the tensor itself: x.copy_(…)."


class StartingValues:
    """Calls that write into what they are given."""

    kinds = (ast.Call,)
    after = ("InPlace",)
    examples = (
        Example(
            "values for a part of a weight",
            """
            layer = nn.Linear(4, 4)
            nn.init.ones_(layer.weight.data[:2])
            """,
        ),
    )
    counterexamples = (
        Example(
            "values for a weight",
            """
            layer = nn.Linear(4, 4)
            nn.init.ones_(layer.weight)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Give them the tensor itself, or write what they return where torch's went."""
        assert isinstance(node, ast.Call)
        api = file.api_of_call(node)
        if api.startswith(_INIT) and node.args and isinstance(node.args[0], ast.Name):
            tell_if_lost(node.args[0].id, node, file)
        if not file.tree.is_statement(node):
            return False
        for part in node.args:
            if is_data(part) and _is_of_tensor(part, file):
                file.replace(part, owner_of_data(part, file))
        if not api.startswith(_INIT) or not node.args:
            return False
        return _started(node, node.args[0], api, file)


def _is_of_tensor(node: ast.expr, file: FileEdit) -> bool:
    use = file.use(node)
    return use is not None and use.api == "torch.Tensor.data"


def _started(node: ast.Call, given: ast.expr, api: str, file: FileEdit) -> bool:
    """Write the values of a view's start into its tensor."""
    if is_data(given):  # nothing but a tensor has starting values
        file.replace(given, owner_of_data(given, file))
        return False
    entry = file.entry(api)
    if entry is None or isinstance(given, (ast.Name, ast.Attribute)):
        return False
    base = _reshaped(given)
    is_element = isinstance(given, ast.Subscript) and _is_whole(given.value)
    if base is None and not is_element:
        if isinstance(given, (ast.Subscript, ast.Call)):
            called = api.rpartition(".")[2]
            message = _LOST.format(ast.unparse(given), called)
            file.finding(node, "in-place-view", message, _ADVICE)
        return False
    place = ""
    if isinstance(given, ast.Subscript) and base is None:
        if not is_data(given.value):
            tell_if_held(given, node, file)
        place = f"{owner_of_element(given, file)}, {key_of(given.slice, file)}"
    held = "" if base is None else owner_of_data(base, file) if is_data(base) else file.source(base)
    # MindSpore 2.10 cannot write into some slices of a Parameter: a tensor of its own is started.
    file.replace(given, f"{file.source(given)}.copy()")
    call = file.call(node)
    result = call if isinstance(call, NotRewritten) else file.rewritten(entry, call)
    if isinstance(result, NotRewritten):
        return False
    if base is None:
        file.replace(node, f"{file.name('composites.put')}({place}, {result.code})")
    else:
        values = f"{result.code}.reshape({held}.shape)"
        file.replace(node, f"{file.name('composites.overwrite')}({held}, {values})")
    file.uses += 1
    file.converted += 1
    return True


def _is_whole(node: ast.expr) -> bool:
    """A name, an attribute, or the data of one."""
    return isinstance(node, (ast.Name, ast.Attribute))


def _reshaped(node: ast.expr) -> ast.expr | None:
    """The tensor that an expression is another shape of."""
    is_method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    if not is_method or node.func.attr not in _RESHAPED:  # type: ignore[attr-defined]
        return None
    base: ast.expr = node.func.value  # type: ignore[attr-defined]
    return base if _is_whole(base) else None
