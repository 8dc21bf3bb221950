"""Classes of modules that may be made where nothing shows it start in training by themselves."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from isograd.convert.analysis.starting import is_registered, leaves_training
from isograd.convert.file import FileEdit
from isograd.convert.passes.building import has_modes
from isograd.convert.passes.example import Example
from isograd.convert.tree import imported_from
from isograd.scan.values import ClassInfo
from isograd.static_graph.scope import children

_CODE = "starting-mode"
_ADVICE = "Call set_train() on the network where it is made."
_CONSTRUCTORS = ("__init__", "__post_init__")
#: Packages whose decorators write constructors.
_WRITERS = ("dataclasses", "attr", "attrs")
_EVAL = frozenset(("torch.nn.Module.eval", "torch.nn.Module.train"))


class StartingMode:
    """`self.set_train()` at the end of a constructor."""

    kinds = (ast.ClassDef,)
    after = ("LateChildren",)
    examples = (
        Example(
            "a network that is made by its name",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.drop = nn.Dropout(0.1)

                def forward(self, x):
                    return self.drop(x)


            network = globals()['Net']()
            """,
        ),
    )
    counterexamples = (
        Example(
            "a network that is made in sight",
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

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the statement, or report the class."""
        assert isinstance(node, ast.ClassDef)
        info = file.class_info(node)
        if info is None or not info.is_module or not has_modes(file):
            return False
        _report_inference(node, file)
        if starts_itself(info, node, file) and not _write(node, info, file):
            message = f"{node.name} starts in inference; torch's module starts in training"
            file.finding(node, _CODE, message, _ADVICE)
        return False


def starts_itself(info: ClassInfo, node: ast.ClassDef, file: FileEdit) -> bool:
    """Whether a class may be made by what no call shows, and so has to set its own mode."""
    starting, name = file.settings.starting, node.name
    if name in starting.in_inference:
        return False
    if starting.looks_up or name in starting.escaping or is_registered(info):
        return True
    if node.decorator_list or node.keywords:
        return True
    reads = [one for one in file.carrying.loads.get(name, []) if not file.carrying.is_type(one)]
    if name not in starting.made and not reads:
        return all(info not in one.bases for one in file.facts.classes.values())
    return not all(file.carrying.is_kept_inside(read) for read in reads)


def _write(node: ast.ClassDef, info: ClassInfo, file: FileEdit) -> bool:
    """Write `self.set_train()` where a class is complete; False where there is no place for it."""
    made = [part for part in node.body if getattr(part, "name", "") in _CONSTRUCTORS]
    if not made:
        return _write_constructor(node, info, file)
    method = made[-1]
    assert isinstance(method, ast.FunctionDef)
    if not method.args.args:
        return False
    code = _start(method.args.args[0].arg, node, file)
    returns = list(_returns(method))
    if any(not _is_alone(part, file) for part in returns):
        return False
    for part in returns:
        _insert_before(part, code, file)
    last = method.body[-1]
    if not isinstance(last, (ast.Return, ast.Raise)):
        _insert_behind(last, method, code, file)
    return True


def _start(name: str, node: ast.ClassDef, file: FileEdit) -> str:
    """Code that starts training; modules that the constructor may be handed keep their mode.

    Nor is a `train` of the project's called, which torch does not call there.
    """
    starting = file.settings.starting
    may_keep = starting.constructor(file.class_info(node)).keeps
    if file.file in starting.own_modes or (file.file in starting.leave_training and may_keep):
        return f"{file.name('composites.start_training')}({name})"
    return f"{name}.set_train()"


def _write_constructor(node: ast.ClassDef, info: ClassInfo, file: FileEdit) -> bool:
    """Write a constructor that calls the base's, unless that sets the mode or has no layers."""
    for part in file.tree.of(ast.ClassDef):
        base = file.class_info(part)
        if base is not None and base in info.bases and starts_itself(base, part, file):
            return True
    if file.is_shaped("torch.nn.Module"):
        return True
    if info.bases and all(getattr(base, "name", "") == "torch.nn.Module" for base in info.bases):
        if not any(getattr(part, "attr", "") == "training" for part in ast.walk(node)):
            return True  # it has no layers and asks for no mode
    last, first = node.body[-1], node.body[0]
    if first.lineno == node.lineno or last.end_lineno is None or _is_made_otherwise(node, file):
        return False
    text = file.text
    start = text.line_start(first.lineno)
    indent = text.original[start : start + first.col_offset]
    lines = (
        "",
        f"{indent}def __init__(self, *args, **kwargs):",
        f"{indent}    super().__init__(*args, **kwargs)",
        f"{indent}    {_start('self', node, file)}",
    )
    text.insert(text.line_end(last.end_lineno), text.newline + text.newline.join(lines))
    return True


def _is_made_otherwise(node: ast.ClassDef, file: FileEdit) -> bool:
    """Whether a decorator writes the class's constructor: `@dataclass`."""
    writers = imported_from(file.tree, _WRITERS)
    for decorator in node.decorator_list:
        root = decorator
        while isinstance(root, (ast.Call, ast.Attribute)):
            root = root.func if isinstance(root, ast.Call) else root.value
        if getattr(root, "id", "") in writers:
            return True
    return False


def _returns(method: ast.FunctionDef) -> Iterator[ast.Return]:
    """The statements that leave a method, those of functions inside it left out."""
    waiting: list[ast.AST] = list(method.body)
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.Return):
            yield part
        if not isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            waiting += children(part)


def _is_alone(node: ast.stmt, file: FileEdit) -> bool:
    start = file.text.line_start(node.lineno)
    return not file.text.original[start : start + node.col_offset].strip()


def _insert_before(node: ast.stmt, code: str, file: FileEdit) -> None:
    start = file.text.line_start(node.lineno)
    indent = file.text.original[start : start + node.col_offset]
    file.text.insert(start, f"{indent}{code}{file.text.newline}")


def _insert_behind(last: ast.stmt, method: ast.FunctionDef, code: str, file: FileEdit) -> None:
    text, first = file.text, method.body[0]
    assert last.end_lineno is not None
    if first.lineno == method.body[0].lineno == method.lineno:
        text.insert(text.span(last)[1], f"; {code}")
        return
    start = text.line_start(first.lineno)
    indent = text.original[start : start + first.col_offset]
    text.insert(text.line_end(last.end_lineno), f"{text.newline}{indent}{code}")


def _report_inference(node: ast.ClassDef, file: FileEdit) -> None:
    """Report a part that a constructor sets to inference: what sets the whole sets it back."""
    for part in file.tree.walked(node):
        if not isinstance(part, ast.Call) or not leaves_training(part):
            continue
        use = file.use(part.func)
        if use is not None and use.api not in _EVAL:
            continue
        assert isinstance(part.func, ast.Attribute)
        if file.carrying.is_self(part.func.value) and not _is_part(node, file):
            continue
        if file.tree.function(part) in file.carrying.building:
            message = (
                f"{ast.unparse(part)} is called while the module is built; in the port set_train() "
                "of the whole network comes after it, and sets this part to training again"
            )
            advice = "Call set_train(False) of the part where the network is built."
            file.finding(part, "mode-while-building", message, advice)


def _is_part(node: ast.ClassDef, file: FileEdit) -> bool:
    """Whether a class may be made for a module that holds it."""
    if file.settings.starting.is_taken(node.name, file.file):
        return True
    reads = file.carrying.loads.get(node.name, [])
    return any(file.carrying.is_carried(call) for read in reads for call in _calls(read, file))


def _calls(read: ast.Name, file: FileEdit) -> Iterator[ast.Call]:
    parent = file.tree.parents.get(read)
    if isinstance(parent, ast.Call) and parent.func is read:
        yield parent
