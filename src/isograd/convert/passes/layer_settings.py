"""Settings of layers that are set after the layers are made, which MindSpore's do not see."""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.analysis.attribute_sets import AttributeSet, is_base
from isograd.convert.file import FileEdit
from isograd.convert.model import Level
from isograd.convert.passes.example import Example
from isograd.convert.places import place

_ADVICE = "If it is a layer, make the layer with this value instead."
_ADVICE_COMPILED = "Set it before the first step, or make the step anew."


class LayerSettings:
    """`m.eps = 1e-3`, `setattr(m, "stride", 1)`."""

    kinds = (ast.Attribute, ast.Assign, ast.Call)
    examples = (
        Example(
            "a setting after the layer is made",
            """
            norm = nn.BatchNorm2d(3)
            norm.eps = 0.001
            """,
        ),
    )
    counterexamples = (
        Example(
            "an attribute of the program's own",
            """
            norm = nn.BatchNorm2d(3)
            norm.title = 'first'
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Call what sets it in MindSpore's layer; report it where that is not known to be one."""
        if isinstance(node, ast.Call):
            return _set(node, node, node.args[0], node.args[2], file) if _is_set(node) else False
        if isinstance(node, ast.Assign):
            if len(node.targets) != 1 or not isinstance(node.targets[0], ast.Attribute):
                return False
            return _set(node, node.targets[0], node.targets[0].value, node.value, file)
        assert isinstance(node, ast.Attribute)
        parent = file.tree.parents.get(node)
        if isinstance(node.ctx, ast.Store) and not (
            isinstance(parent, ast.Assign) and len(parent.targets) == 1
        ):
            _set(None, node, node.value, None, file)
        return False


def _is_set(node: ast.Call) -> bool:
    return getattr(node.func, "id", "") == "setattr" and len(node.args) == 3 and not node.keywords


def _set(
    whole: ast.Assign | ast.Call | None,
    node: ast.AST,
    owner: ast.expr,
    value: ast.expr | None,
    file: FileEdit,
) -> bool:
    """Write the whole, unless nothing shows what is set, or it is more than one assignment."""
    made = file.facts.sets.get(place(node))
    if made is None:
        return False
    apis = _classes(made, owner, file)
    late = file.settings.layers.set_late(made.name, apis)
    if not late:
        return False
    api, setter = next(iter(late.items()))
    kind = api.rpartition(".")[2]
    if made.owner is None and not file.layers_held(owner):
        message = f"a {kind} of MindSpore does not see {made.name} that is set later"
        file.finding(node, "layer-setting", message, _ADVICE, level=Level.LOOK, api=api)
        return False
    if whole is None or value is None or not setter:
        message = f"a {kind} of MindSpore does not see {made.name} that is set here"
        file.finding(node, "layer-setting", message, _ADVICE, api=api)
        return False
    file.uses += 1
    file.converted += 1
    given = f'{file.argument(owner)}, "{made.name}", {file.argument(value)}'
    code = f"{file.name(setter)}({given})"
    if isinstance(whole, ast.Assign):
        layout.write_statement(file, whole, code)
    else:
        layout.write_call(file, whole, code)
    if file.settings.compiles_steps and not _is_in_constructor(node, file):
        message = f"a training step that is compiled before does not see {made.name} that is set"
        file.finding(node, "layer-setting", message, _ADVICE_COMPILED, level=Level.LOOK, api=api)
    return True


def _classes(made: AttributeSet, owner: ast.expr, file: FileEdit) -> frozenset[str]:
    """The classes of torch that the owner may be of; none where it may be of any."""
    held = file.layers_held(owner)
    if any(map(is_base, held)):
        return frozenset()
    return held or (frozenset((made.owner,)) if made.owner else frozenset())


def _is_in_constructor(node: ast.AST, file: FileEdit) -> bool:
    function = file.tree.function(node)
    return function is not None and function.name == "__init__"
