"""A Sequential that its constructor fills by names is made of an OrderedDict when all is in it.

MindSpore's SequentialCell runs what its constructor gets; children that it is given later by a
name are not run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.passes.order import Stage
from isograd.convert.tree import imported_from

_SEQUENTIAL, _ORDERED = "torch.nn.Sequential", "OrderedDict"
_ADDS = frozenset(("add_module", "register_module"))
#: After which the statements that follow may not run, or which keep what they read.
_LEAVING = (
    ast.Return, ast.Try, ast.With, ast.Yield, ast.YieldFrom, ast.FunctionDef, ast.AsyncFunctionDef,
    ast.ClassDef, ast.Lambda, ast.AnnAssign, ast.NamedExpr, ast.Delete,
)  # fmt: skip
_NUMBERS = (ast.Constant, ast.BinOp, ast.Compare, ast.JoinedStr)
_NAMES = (ast.Constant, ast.Name, ast.JoinedStr)


@dataclass(frozen=True)
class _Filled:
    """`self.name = nn.Sequential()`, the statements that add to it, and the last around them."""

    made: ast.Assign
    name: str
    adds: tuple[ast.Expr, ...]
    last: ast.stmt


class FilledSequentials:
    """`self.net = nn.Sequential()` and `self.net.add_module(name, layer)` in a constructor."""

    kinds = (ast.FunctionDef,)
    stage = Stage.EARLY
    examples = (
        Example(
            "layers by their names, one of them under a condition",
            """
            class Net(nn.Module):
                def __init__(self, norm):
                    super().__init__()
                    self.net = nn.Sequential()
                    for i in range(2):
                        self.net.add_module(f"fc{i}", nn.Linear(2, 2))
                    if norm:
                        self.net.add_module("norm", nn.LayerNorm(2))
                    self.scale = 2

                def forward(self, x):
                    return self.net(x) * self.scale
            """,
        ),
    )
    counterexamples = (
        Example(
            "one that is read while it is filled",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.net = nn.Sequential()
                    for i in range(2):
                        self.net.add_module(f"fc{len(self.net)}", nn.Linear(2, 2))

                def forward(self, x):
                    return self.net(x)
            """,
        ),
        Example(
            "names that are counted while it is filled",
            """
            class Net(nn.Module):
                def __init__(self, numbers):
                    super().__init__()
                    self.net = nn.Sequential()
                    self.net.add_module(f"fc{next(numbers)}", nn.Linear(2, next(numbers)))

                def forward(self, x):
                    return self.net(x)
            """,
        ),
        Example(
            "other parts that come between",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.net = nn.Sequential()
                    self.head = nn.Linear(2, 2)
                    self.net.add_module("fc", nn.Linear(2, 2))

                def forward(self, x):
                    return self.head(self.net(x))
            """,
        ),
        Example(
            "a method that may read it",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.net = nn.Sequential()
                    self.net.add_module("fc", self.make())

                def make(self):
                    return nn.Linear(2, 2 + len(self.net))

                def forward(self, x):
                    return self.net(x)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Collect the layers under a name of the constructor's, and make the Sequential of it."""
        assert isinstance(node, ast.FunctionDef)
        owner = file.carrying.owner(node)
        if node.name != "__init__" or owner is None or not file.is_module_class(owner):
            return False
        if file.is_shaped(_SEQUENTIAL) or not node.args.args:
            return False
        info = file.class_info(owner)
        if info is None or "__setattr__" in info.methods:
            return False
        for block in _blocks(node, file):
            for number, statement in enumerate(block):
                found = _filled(statement, block[number + 1 :], node, file)
                if found is not None:
                    _write(found, node, file)
        return False


def _blocks(function: ast.FunctionDef, file: FileEdit) -> Iterator[Sequence[ast.stmt]]:
    """The lists of statements of a constructor, without those of functions inside it."""
    for part in file.tree.walked(function):
        if not isinstance(part, (ast.FunctionDef, ast.If, ast.For, ast.While)):
            continue
        if part is not function and file.tree.function(part) is not function:
            continue
        if any(isinstance(one, ast.Try) for one in file.tree.above(part)):
            continue  # what is caught may be read before it is full
        yield part.body
        if not isinstance(part, ast.FunctionDef):
            yield part.orelse


def _filled(
    made: ast.stmt, behind: Sequence[ast.stmt], function: ast.FunctionDef, file: FileEdit
) -> _Filled | None:
    if not isinstance(made, ast.Assign) or len(made.targets) != 1:
        return None
    target, value = made.targets[0], made.value
    if not isinstance(target, ast.Attribute) or not file.carrying.is_self(target.value):
        return None
    if not isinstance(value, ast.Call) or file.api_of_call(value) != _SEQUENTIAL:
        return None
    if not _is_by_names(value, file) or not file.carrying.is_carried(value):
        return None
    adds = {
        place: [one for one in file.tree.walked(part) if _adds(one, target.attr, file)]
        for place, part in enumerate(behind)
    }
    places = [place for place, found in adds.items() if found]
    if not places:
        return None
    found = _Filled(
        made,
        target.attr,
        tuple(one for place in places for one in adds[place] if isinstance(one, ast.Expr)),
        behind[places[-1]],
    )
    span = [part for one in behind[: places[-1] + 1] for part in file.tree.walked(one)]
    return found if _is_only_filled(found, span, function, file) else None


def _is_by_names(made: ast.Call, file: FileEdit) -> bool:
    """`nn.Sequential()` and `nn.Sequential(OrderedDict([("name", layer)]))`."""
    if made.keywords or not made.args:
        return not made.keywords
    given = made.args[0]
    if len(made.args) != 1 or not isinstance(given, ast.Call):
        return False
    ordered = {_ORDERED} & imported_from(file.tree, ("collections",))
    text = file.text
    (start, end), (first, last) = text.span(made), text.span(given)
    around = text.original[start:first] + text.original[last:end]
    return getattr(given.func, "id", "") in ordered and "#" not in around


def _adds(node: ast.AST, name: str, file: FileEdit) -> bool:
    """`self.name.add_module("…", layer)`, a statement of its own."""
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    owner = call.func.value
    if call.func.attr not in _ADDS or not isinstance(owner, ast.Attribute) or owner.attr != name:
        return False
    return file.carrying.is_self(owner.value)


def _is_only_filled(
    found: _Filled, span: Sequence[ast.AST], function: ast.FunctionDef, file: FileEdit
) -> bool:
    """Whether nothing reads the Sequential, or gives the module another part, till it is full."""
    me = function.args.args[0].arg
    added = {id(one.value.func.value) for one in found.adds}  # type: ignore[attr-defined]
    for part in span:
        if isinstance(part, _LEAVING) or getattr(part, "id", "") == "super":
            return False
        if isinstance(part, ast.AugAssign) and not isinstance(part.target, ast.Name):
            return False
        if isinstance(part, ast.Assign) and not isinstance(part.value, _NUMBERS):
            if any(isinstance(one, ast.Attribute) for t in part.targets for one in ast.walk(t)):
                return False
        if not isinstance(part, ast.Name) or part.id != me:
            continue
        member = file.tree.parents[part]
        if not isinstance(member, ast.Attribute):
            return False
        holder = file.tree.parents[member]
        if isinstance(holder, ast.Call) and holder.func is member:
            return False
        if member.attr == found.name and id(member) not in added:
            return False
    is_plain = all(_is_plain(one, file) for one in found.adds)
    return is_plain and _has_room(found, file)


def _is_plain(statement: ast.Expr, file: FileEdit) -> bool:
    """Whether a name that computes nothing and a call are added, and no comment is between."""
    call = statement.value
    assert isinstance(call, ast.Call)
    if len(call.args) != 2 or call.keywords:
        return False
    name, layer = call.args
    is_number = isinstance(name, ast.Call) and getattr(name.func, "id", "") == "str"
    named = name.args[0] if is_number and isinstance(name, ast.Call) and name.args else name
    if any(isinstance(part, ast.Call) for part in ast.walk(named)):
        return False  # an index is computed behind what it is given
    if isinstance(named, ast.BinOp) and isinstance(named.left, ast.Constant):
        named = named.left  # "fc%d" % i
    if not isinstance(named, _NAMES) or not isinstance(layer, (ast.Call, ast.Name)):
        return False
    if layer.lineno != getattr(layer, "func", layer).end_lineno:
        return False
    text = file.text
    start, end = text.span(statement)
    (first, behind), (second, stop) = text.span(name), text.span(layer)
    around = text.original[start:first] + text.original[behind:second] + text.original[stop:end]
    return "#" not in around and "\\" not in around


def _has_room(found: _Filled, file: FileEdit) -> bool:
    """Whether statements stand on lines of their own, where one is changed or comes behind."""
    text = file.text
    for node in (found.made, found.last):
        start, end = text.span(node)
        assert node.end_lineno is not None
        before = text.original[text.line_start(node.lineno) : start]
        rest = text.original[end : text.line_end(node.end_lineno)].strip()
        if before.strip() or (rest and not rest.startswith("#")):
            return False
    return True


def _write(found: _Filled, function: ast.FunctionDef, file: FileEdit) -> None:
    text = file.text
    given = {part.arg for part in ast.walk(function.args) if isinstance(part, ast.arg)}
    taken = given | {getattr(part, "id", "") for part in file.tree.walked(function)}
    name = found.name
    while name in taken:
        name += "_layers"
    me = function.args.args[0].arg
    value = found.made.value
    assert isinstance(value, ast.Call)
    start, end = text.span(found.made)
    if value.args:
        first, last = text.span(value.args[0])
        text.replace(start, first, f"{name} = ")
        text.replace(last, end, "")
        file.forget(value.func)
        file.done.add(value)
    else:
        text.replace(start, end, f"{name} = {file.name('collections.OrderedDict')}()")
        file.forget(found.made)
    for statement in found.adds:
        call = statement.value
        assert isinstance(call, ast.Call)
        start, end = text.span(statement)
        (first, behind), (second, stop) = map(text.span, call.args)
        text.replace(start, first, f"{name}[")
        text.replace(behind, second, "] = ")
        text.replace(stop, end, "")
        file.forget(call.func)
        file.done.add(call)
    begin = text.line_start(found.made.lineno)
    indent = text.original[begin : text.span(found.made)[0]]
    assert found.last.end_lineno is not None
    full = f"{me}.{found.name} = {file.name('nn.SequentialCell')}({name})"
    text.insert(text.line_end(found.last.end_lineno), f"{text.newline}{indent}{full}")
    file.uses += 1 + len(found.adds)
    file.converted += 1 + len(found.adds)
