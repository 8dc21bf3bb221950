"""`m.__class__.__name__`, which is 'Linear' in torch and 'Dense' in MindSpore."""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example

_NAME = "composites.class_name"
_PRINTS = frozenset(("print", "warn", "debug", "info", "warning", "error"))
_TEXTS = frozenset(("repr", "str", "format", "lower", "upper"))


class ClassNames:
    """The name of a layer's class where the program decides by it; what is only shown stays."""

    kinds = (ast.Attribute, ast.Call)
    examples = (
        Example(
            "weights by the name of a layer's class",
            """
            def init(m):
                name = m.__class__.__name__
                if name.find('Linear') != -1:
                    nn.init.constant_(m.weight, 0.5)
            """,
        ),
        Example(
            "the name of a type",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                net = nn.Sequential(nn.Linear(2, 2))
                return x if type(net[0]).__name__ == 'Linear' else y
            """,
        ),
    )
    counterexamples = (
        Example(
            "the name of an error, and of the class itself",
            """
            class Net(nn.Module):
                def forward(self, x):
                    try:
                        return x * len(self.__class__.__name__)
                    except ValueError as error:
                        return type(error).__name__
            """,
        ),
        Example(
            "a name that is shown, at once or later",
            """
            def f(x: torch.Tensor, m):
                print(m.__class__.__name__)
                name = type(m).__name__
                raise TypeError(f'no layer: {name}')
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Ask by torch's names; of other objects the answer stays."""
        assert isinstance(node, ast.expr)
        value = _asked(node)
        if value is None or not file.facts.apis or _is_other(value, file) or _is_shown(node, file):
            return False
        layout.write(file, node, f"{file.name(_NAME)}({file.source(value)})")
        return True


def _asked(node: ast.AST) -> ast.expr | None:
    """m of `m.__class__.__name__`, `type(m).__name__` and `m._get_name()`."""
    if isinstance(node, ast.Call):
        function = node.func
        is_name = isinstance(function, ast.Attribute) and function.attr == "_get_name"
        return function.value if is_name and not node.args else None  # type: ignore[attr-defined]
    if not isinstance(node, ast.Attribute) or node.attr != "__name__":
        return None
    kind = node.value
    if isinstance(kind, ast.Attribute):
        return kind.value if kind.attr == "__class__" else None
    is_type = isinstance(kind, ast.Call) and getattr(kind.func, "id", "") == "type"
    return kind.args[0] if is_type and len(kind.args) == 1 else None  # type: ignore[attr-defined]


def _is_other(value: ast.expr, file: FileEdit) -> bool:
    """Whether it is the object of the method's own class, or an error that was caught."""
    if not isinstance(value, ast.Name):
        return not isinstance(value, (ast.Attribute, ast.Subscript, ast.Call))
    handlers = (part for part in file.tree.above(value) if isinstance(part, ast.ExceptHandler))
    return file.carrying.is_self(value) or any(one.name == value.id for one in handlers)


def _is_shown(node: ast.AST, file: FileEdit, *, is_bound: bool = False) -> bool:
    """Whether a text is printed, logged, raised or put into a longer one and nothing else.

    is_bound: whether it is read from a name that a statement bound to it.
    """
    for part in file.tree.above(node):
        if isinstance(part, (ast.FormattedValue, ast.Raise)):
            return True
        if isinstance(part, ast.Call):
            name = getattr(part.func, "attr", getattr(part.func, "id", ""))
            if name in _PRINTS or name not in _TEXTS:
                return name in _PRINTS
        if isinstance(part, ast.Assign) and not is_bound:
            return _is_shown_later(part, file)
        if isinstance(part, (ast.stmt, ast.Compare, ast.Subscript, ast.Dict)):
            return False
    return False


def _is_shown_later(statement: ast.Assign, file: FileEdit) -> bool:
    """Whether the name of a function that a statement binds is read for texts alone."""
    function, target = file.tree.function(statement), statement.targets[0]
    if function is None or len(statement.targets) > 1 or not isinstance(target, ast.Name):
        return False
    parts = list(file.tree.walked(function))
    if any(
        target.id in part.names for part in parts if isinstance(part, (ast.Global, ast.Nonlocal))
    ):
        return False
    return all(
        _is_shown(part, file, is_bound=True)
        for part in parts
        if isinstance(part, ast.Name) and part.id == target.id and isinstance(part.ctx, ast.Load)
    )
