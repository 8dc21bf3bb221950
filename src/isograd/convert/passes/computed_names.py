"""`getattr(layer, name)` with a name that is computed, where MindSpore's layer has another one."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.model import Level
from isograd.convert.passes.example import Example
from isograd.convert.passes.layer_attributes import renamed_attributes
from isograd.convert.places import place
from isograd.scan.values import ANY_MODULE, Made, is_module

_SET = "a layer of MindSpore may not see what is set here by a computed name"
_SET_ADVICE = "Write out the settings that it means: layer.eps = …"


class ComputedNames:
    """An attribute of a layer by a name that only the run shows."""

    kinds = (ast.Call,)
    before = ("ChildrenByName",)
    examples = (
        Example(
            "weights by their names",
            """
            def init(net: nn.Module):
                for m in net.modules():
                    for name in ("weight", "bias"):
                        p = getattr(m, name, None)
                        if p is not None:
                            nn.init.zeros_(p)

            init(nn.Sequential(nn.Linear(2, 3), nn.LayerNorm(3)))
            """,
        ),
        Example(
            "a setting",
            """
            norm = nn.BatchNorm2d(3)
            for name, value in (("eps", 1e-3), ("momentum", 0.2)):
                setattr(norm, name, value)
            """,
        ),
    )
    counterexamples = (
        Example(
            "layers of a module's own",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.norm1 = nn.BatchNorm2d(3)
                    self.norm1.weight.data.zero_()

                def forward(self, x):
                    return getattr(self, f"norm{1}")(x)
            """,
        ),
        Example(
            "an object of the program's own",
            """
            layer = nn.Linear(2, 3)

            def f(args, x: torch.Tensor):
                return [x * getattr(args, name) for name in ("scale", "shift")]
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Have the layer be asked for MindSpore's name of it."""
        assert isinstance(node, ast.Call)
        asked = getattr(node.func, "id", "")
        if asked not in ("getattr", "hasattr", "setattr") or len(node.args) < 2:
            return False
        name = node.args[1]
        if isinstance(name, (ast.Constant, ast.Starred)) or file.settings.layers.every:
            return False
        owner = file.facts.owners.get(place(node))
        if asked == "setattr":
            _tell_set(node, owner, file)
            return False
        if not _may_be_renamed(node.args[0], name, owner, file):
            return False
        finder = file.name("composites.native_name")
        code = f"{finder}({file.argument(node.args[0])}, {file.argument(name)})"
        if _is_path(node.args[0]):
            file.replace(name, code)
            file.uses += 1
            file.converted += 1
        elif asked == "getattr" and len(node.args) == 2:
            file.replace(node.func, file.name("composites.layer_attribute"))
            file.uses += 1
            file.converted += 1
        return False


def _tell_set(node: ast.Call, owner: object, file: FileEdit) -> None:
    """What is set of a layer of torch's, and is no module."""
    is_layer = isinstance(owner, Made) and owner != ANY_MODULE and is_module(owner)
    if not is_layer or place(node) in file.facts.sets_of_children:
        return
    assert isinstance(owner, Made)
    entry = file.entry(owner.api)
    if entry is not None and entry.attributes and not file.is_shaped(entry.api):
        file.finding(node, "layer-setting", _SET, _SET_ADVICE, level=Level.LOOK, api=owner.api)


def _may_be_renamed(of: ast.expr, name: ast.expr, owner: object, file: FileEdit) -> bool:
    """Whether a layer is asked, or what may be one, for a name that the file writes out."""
    if getattr(of, "id", "") in ("self", "cls"):
        return False
    is_layer = isinstance(owner, Made) and is_module(owner)
    if not is_layer and owner is not None:
        return False
    if isinstance(owner, Made) and owner != ANY_MODULE:
        entry = file.entry(owner.api)
        if entry is None or not entry.attributes or file.is_shaped(entry.api):
            return False
    renamed = {one for one in renamed_attributes(file) if _may_be(one, name)}
    return any(node.value in renamed for node in file.tree.of(ast.Constant) if _is_text(node))


def _may_be(attribute: str, name: ast.expr) -> bool:
    """Whether a computed name may be an attribute's: `f"fc{n}"` is none that begins otherwise."""
    parts = name.values if isinstance(name, ast.JoinedStr) else []
    ends = [part.value if isinstance(part, ast.Constant) else "" for part in parts]
    if not ends:
        return True
    return attribute.startswith(str(ends[0])) and attribute.endswith(str(ends[-1]))


def _is_text(node: ast.Constant) -> bool:
    return isinstance(node.value, str)


def _is_path(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)
