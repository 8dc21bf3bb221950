"""Modules start in training, as torch's do: `net = Net().set_train()` where they are made.

A part gets the mode from the module that registers it while it is built.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from isograd.convert.analysis.handed_in import KEEPING, MORE, Constructor
from isograd.convert.file import FileEdit
from isograd.convert.located import WITH_MODES
from isograd.convert.passes.example import Example
from isograd.convert.passes.order import Stage
from isograd.convert.passes.reach_of_writes import own_values_of
from isograd.convert.places import place
from isograd.convert.tree import imported_from, is_none
from isograd.scan.values import Api

_CONTAINERS = frozenset(f"torch.nn.{name}" for name in ("Sequential", "ModuleList", "ModuleDict"))
_MODULE = "torch.nn.Module"
#: Functions that may give a module that was there before.
_GIVES_MODULES = tuple(
    f"torch.{name}" for name in ("nn.utils.", "load", "compile", "hub.", "jit.", "ao.", "fx.")
)
_COLLECTIONS, _ORDERED = ("collections",), "OrderedDict"
_NO_MODULES = (ast.Constant, ast.JoinedStr, ast.Compare, ast.UnaryOp, ast.Lambda)


class Building:
    """Calls that build a module of the project."""

    kinds = (ast.Call,)
    stage = Stage.GENERAL
    after = ("Calls",)
    examples = (
        Example(
            "a network with dropout that a script makes",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.drop = nn.Dropout(0.1)

                def forward(self, x):
                    return self.drop(x)


            network = Net()
            """,
        ),
    )
    counterexamples = (
        Example(
            "one without modes",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.layer = nn.Linear(2, 2)

                def forward(self, x):
                    return self.layer(x)


            network = Net()
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Add the call that starts training."""
        assert isinstance(node, ast.Call)
        if place(node) in file.facts.built or _makes_its_own(node, file):
            start_training(node, file)
        return False


def start_training(node: ast.Call, file: FileEdit) -> None:
    """Start training behind a call that builds a module, if it has modes and is no part."""
    if not has_modes(file) or _sets_mode(node, file) or file.carrying.is_carried(node):
        return
    api = file.api_of_call(node)
    may_override = file.file in file.settings.starting.own_modes and (api in KEEPING or not api)
    if may_override or takes_modules(node, file):
        start = file.name("composites.start_training")
        file.replace(node, f"{start}({file.source(node)})")
    else:
        file.replace(node, f"{file.source(node)}.set_train()")


def _sets_mode(node: ast.Call, file: FileEdit) -> bool:
    """Whether the mode is said at once: `Net().eval()`, or by the class's own constructor."""
    name = getattr(node.func, "id", getattr(node.func, "attr", ""))
    parent = file.tree.parents.get(node)
    is_said = isinstance(parent, ast.Attribute) and parent.attr in ("eval", "train")
    return is_said or name in file.settings.starting.in_inference


def takes_modules(node: ast.Call, file: FileEdit) -> bool:
    """Whether the call of a module may hand it modules that something set to inference."""
    if file.file not in file.settings.starting.leave_training:
        return False
    made = _constructor(node, file)
    return bool(made.keeps) and any(
        made.keeps_in(slot) and _may_be_in_inference(part, file)
        for slot, part in _given(node, file)
    )


def _constructor(node: ast.Call, file: FileEdit) -> Constructor:
    """What the class that a call makes keeps of what it is given."""
    api = file.api_of_call(node)
    if file.names.kind(api) == "M":
        return file.settings.starting.constructor(Api(api))
    info = file.facts.built.get(place(node))
    if info is None:
        owner = file.carrying.owner(file.tree.function(node))
        own = file.class_info(owner) if owner is not None and _makes_its_own(node, file) else None
        return file.settings.starting.constructor(own)
    name = getattr(node.func, "id", getattr(node.func, "attr", ""))
    return file.settings.starting.constructor(info if name == info.name else None)


def _given(node: ast.Call, file: FileEdit) -> Iterator[tuple[int | str, ast.expr]]:
    """The arguments of a call with their places and names; those of `**kwargs` that is in sight."""
    is_spread = False
    for number, part in enumerate(node.args):
        is_spread = is_spread or isinstance(part, ast.Starred)
        yield (MORE if is_spread else number), part
    for keyword in node.keywords:
        spread = _spread(keyword.value, file) if keyword.arg is None else None
        if spread is None:
            yield (keyword.arg or MORE), keyword.value
        else:
            yield from spread


def _spread(node: ast.expr, file: FileEdit) -> list[tuple[int | str, ast.expr]] | None:
    """The items of a dictionary whose keys are written out and that nothing changes."""
    if isinstance(node, ast.Name):
        values = own_values_of(node, file)
        reads = file.carrying.reads_in(file.tree.scope(node), node.id)
        if len(values) != 1 or not all(_is_spread(read, file) for read in reads):
            return None
        node = values[0]
    if not isinstance(node, ast.Dict):
        return None
    keys = [key.value for key in node.keys if isinstance(key, ast.Constant)]
    if len(keys) != len(node.values):
        return None
    return [(str(key), part) for key, part in zip(keys, node.values, strict=True)]


def _is_spread(node: ast.Name, file: FileEdit) -> bool:
    parent = file.tree.parents[node]
    return isinstance(parent, ast.keyword) and parent.arg is None


def _may_be_in_inference(node: ast.expr, file: FileEdit) -> bool:
    """Whether an argument may be, or hold, a module that was there before."""
    if isinstance(node, _NO_MODULES) or place(node) in file.facts.no_modules:
        return False
    if isinstance(node, ast.Dict):
        return any(_may_be_in_inference(part, file) for part in node.values)
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return any(_may_be_in_inference(part, file) for part in node.elts)
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
        return _may_be_in_inference(node.elt, file)
    if isinstance(node, (ast.IfExp, ast.BoolOp)):
        parts = [node.body, node.orelse] if isinstance(node, ast.IfExp) else node.values
        return any(_may_be_in_inference(part, file) for part in parts)
    if isinstance(node, ast.BinOp):
        return any(_may_be_in_inference(part, file) for part in (node.left, node.right))
    if isinstance(node, ast.Starred):
        return _may_be_in_inference(node.value, file)
    if isinstance(node, ast.Call):
        return _is_given_by_call(node, file)
    return not isinstance(node, ast.Name) or not _is_new(node, file)


def _is_given_by_call(node: ast.Call, file: FileEdit) -> bool:
    """Whether what a call gives may hold a module that was there before."""
    api = file.api_of_call(node)
    if getattr(node.func, "id", "") in {_ORDERED} & imported_from(file.tree, _COLLECTIONS):
        given = (*node.args, *(part.value for part in node.keywords))
        return any(_may_be_in_inference(part, file) for part in given)
    if file.carrying.is_module_call(node):
        return takes_modules(node, file)
    return not api or api.startswith(_GIVES_MODULES)


def _is_new(node: ast.Name, file: FileEdit) -> bool:
    """Whether nothing but calls that make modules for the one around them binds a name."""
    values = own_values_of(node, file)
    made = [one for value in values for one in _branches(value) if not is_none(one)]
    return bool(made) and all(
        isinstance(value, ast.Call)
        and file.carrying.is_module_call(value)
        and file.carrying.is_carried(value)
        and not takes_modules(value, file)
        for value in made
    )


def _branches(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.IfExp):
        return [*_branches(node.body), *_branches(node.orelse)]
    return [node]


def has_modes(file: FileEdit) -> bool:
    """Whether something in the project is otherwise in training, and cells start in inference."""
    return file.settings.layers.has_modes and not file.settings.layers.every


def starts_training(node: ast.Call, file: FileEdit) -> bool:
    """Whether a layer of torch's has modes, or holds what may have some."""
    api = file.api_of_call(node)
    if file.names.kind(api) == "M" and not api.startswith(_MODULE) and _is_read(node, file):
        return True
    if api in _CONTAINERS:
        return not all(_is_without_modes(part, file) for part in node.args)
    return WITH_MODES.match(api) is not None and not api.startswith(_MODULE)


def _is_read(node: ast.Call, file: FileEdit) -> bool:
    """Whether the mode of a layer may be read, whatever its class."""
    parent = file.tree.parents.get(node)
    if isinstance(parent, ast.Attribute) and parent.attr == "training":
        return True
    names = parent.targets if isinstance(parent, ast.Assign) else []
    return any(getattr(one, "id", None) in file.facts.modes_read for one in names)


def _is_without_modes(node: ast.expr, file: FileEdit) -> bool:
    """Whether an argument is a layer of torch's, written out, that is the same in both modes."""
    if not isinstance(node, ast.Call):
        return False
    api = file.api_of_call(node)
    if api in _CONTAINERS:
        return all(_is_without_modes(part, file) for part in node.args) and not node.keywords
    return file.names.kind(api) == "M" and WITH_MODES.match(api) is None


def _makes_its_own(node: ast.Call, file: FileEdit) -> bool:
    """`cls(…)` in a class method of a module, `type(self)(…)` and `self.__class__(…)`."""
    called = node.func
    if isinstance(called, ast.Call):
        is_type = getattr(called.func, "id", "") == "type" and len(called.args) == 1
        return is_type and file.carrying.is_self(called.args[0]) and _is_in_module(node, file)
    if isinstance(called, ast.Attribute):
        is_class = called.attr == "__class__" and file.carrying.is_self(called.value)
        return is_class and _is_in_module(node, file)
    function = file.tree.function(node)
    if function is None or not isinstance(called, ast.Name) or not function.args.args:
        return False
    is_class_method = any(
        getattr(part, "id", "") == "classmethod" for part in function.decorator_list
    )
    return is_class_method and function.args.args[0].arg == called.id and _is_in_module(node, file)


def _is_in_module(node: ast.AST, file: FileEdit) -> bool:
    owner = file.carrying.owner(file.tree.function(node))
    return owner is not None and file.is_module_class(owner)
