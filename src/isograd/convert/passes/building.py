"""Modules start in training, as torch's do: `net = Net().set_train()` where they are made.

A part gets the mode from the module that registers it while it is built.
"""

from __future__ import annotations

import ast

from isograd.convert.analysis.layers import is_path
from isograd.convert.analysis.starting import leaves_training
from isograd.convert.file import FileEdit
from isograd.convert.located import WITH_MODES
from isograd.convert.passes.example import Example
from isograd.convert.passes.order import Stage
from isograd.convert.places import place

_CONTAINERS = frozenset(f"torch.nn.{name}" for name in ("Sequential", "ModuleList", "ModuleDict"))
_MODULE = "torch.nn.Module"


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
    file.replace(node, f"{file.source(node)}.set_train()")
    for given in (*node.args, *(part.value for part in node.keywords)):
        if _is_in_inference(given, file):
            message = (
                f"{ast.unparse(given)} was set to inference before; in the port set_train() of the "
                "module that takes it sets it to training"
            )
            advice = f"Call set_train(False) of it behind {ast.unparse(node.func)}(…)."
            file.finding(node, "mode-of-argument", message, advice)


def _sets_mode(node: ast.Call, file: FileEdit) -> bool:
    """Whether the mode is said at once: `Net().eval()`, or by the class's own constructor."""
    name = getattr(node.func, "id", getattr(node.func, "attr", ""))
    parent = file.tree.parents.get(node)
    is_said = isinstance(parent, ast.Attribute) and parent.attr in ("eval", "train")
    return is_said or name in file.settings.starting.in_inference


def _is_in_inference(given: ast.expr, file: FileEdit) -> bool:
    """Whether something sets an argument to inference before a module takes it."""
    if isinstance(given, ast.Starred):
        return _is_in_inference(given.value, file)
    if leaves_training(given):
        return True
    if not is_path(given):
        return False
    text, scope = ast.unparse(given), file.tree.scope(given)
    for call in file.tree.of(ast.Call):
        if call.lineno > given.lineno or not leaves_training(call):
            continue
        assert isinstance(call.func, ast.Attribute)
        parent = file.tree.parents.get(call)
        bound = [ast.unparse(t) for t in parent.targets] if isinstance(parent, ast.Assign) else []
        if text in (ast.unparse(call.func.value), *bound) and file.tree.scope(call) is scope:
            return True
    return False


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
    read = file.facts.modes_read
    return file.settings.layers.reads_modes or any(
        getattr(one, "id", None) in read for one in names
    )


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
