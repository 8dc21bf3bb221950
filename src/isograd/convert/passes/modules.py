"""`forward` is `construct`: where it is defined, and where it is called by name."""

from __future__ import annotations

import ast
import re

from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.places import place
from isograd.scan.values import ClassInfo, Instance, Made, Super

_NAME = re.compile(r"def(\s+|\\\r?\n)+forward\b")
#: Functions that take the name of a member, with its place among their arguments.
_ASKS_MEMBER = {
    "getattr": 1,
    "hasattr": 1,
    "setattr": 1,
    "delattr": 1,
    "getattr_static": 1,
    "attrgetter": 0,
    "methodcaller": 0,
}


class Forward:
    """The methods of modules, `x.forward(…)`, and `getattr(x, "forward")`."""

    kinds = (ast.FunctionDef, ast.Attribute, ast.Assign, ast.Constant)
    examples = (
        Example(
            "the pass of a module",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.layer = nn.Linear(2, 2)

                def forward(self, x):
                    return self.layer(x)
            """,
        ),
    )
    counterexamples = (
        Example(
            "a class that is no module",
            """
            class Plain:
                def forward(self, x):
                    return torch.relu(x)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write `construct` for `forward`."""
        if isinstance(node, ast.FunctionDef):
            if node.name == "forward":
                self._defined(node, file)
            return False
        if isinstance(node, ast.Assign):
            self._assigned(node, file)
            return False
        if isinstance(node, ast.Constant):
            return node.value == "forward" and self._by_name(node, file)
        assert isinstance(node, ast.Attribute)
        if node.attr != "forward" or not _is_modules(node, file):
            return False
        end = file.text.span(node)[1]
        file.text.replace(end - len("forward"), end, "construct")
        return True

    def _defined(self, node: ast.FunctionDef, file: FileEdit) -> None:
        parent = file.tree.parents.get(node)
        if not isinstance(parent, ast.ClassDef) or not is_module_class(parent, file):
            return
        start, end = file.text.span(node)
        found = _NAME.search(file.text.original, start, end)
        if found is not None:
            file.text.replace(found.end() - len("forward"), found.end(), "construct")
            file.uses += 1
            file.converted += 1

    def _assigned(self, node: ast.Assign, file: FileEdit) -> None:
        """`forward = …` in the body of a class."""
        parent = file.tree.parents.get(node)
        if not isinstance(parent, ast.ClassDef) or not is_module_class(parent, file):
            return
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id == "forward":
                file.replace(target, "construct")

    def _by_name(self, node: ast.Constant, file: FileEdit) -> bool:
        """The text that names the method, where the name of a member is asked for."""
        if node in file.tree.formatted or not _names_a_member(node, file):
            return False
        if _is_others_own(node, file):
            return False
        start, end = file.text.span(node)
        at = start + file.text.original[start:end].find("forward")
        if at < start:
            return False  # "for" "ward"
        file.text.replace(at, at + len("forward"), "construct")
        return True


def _names_a_member(node: ast.Constant, file: FileEdit) -> bool:
    """Whether a text names a member: `hasattr(x, "…")`, `"…" in vars(x)`, `f.__name__ == "…"`."""
    parent = file.tree.parents.get(node)
    if isinstance(parent, ast.Call):
        function = parent.func
        name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
        position = _ASKS_MEMBER.get(name)
        return position is not None and parent.args[position : position + 1] == [node]
    if isinstance(parent, ast.Compare) and len(parent.ops) == 1:
        other = parent.comparators[0] if parent.left is node else parent.left
        if isinstance(parent.ops[0], (ast.In, ast.NotIn)):
            return parent.left is node and _is_of_members(other)
        return isinstance(other, ast.Attribute) and other.attr == "__name__"
    return isinstance(parent, ast.Subscript) and _is_of_members(parent.value)


def _is_of_members(node: ast.expr) -> bool:
    """`x.__dict__`, `vars(x)` or `dir(x)`."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in ("vars", "dir")
    return isinstance(node, ast.Attribute) and node.attr == "__dict__"


def _is_others_own(node: ast.Constant, file: FileEdit) -> bool:
    """Whether `getattr(self, "forward")` stands in a class that is no module."""
    parent = file.tree.parents.get(node)
    first = parent.args[0] if isinstance(parent, ast.Call) else None
    if not isinstance(first, ast.Name) or first.id not in ("self", "cls"):
        return False
    around = file.tree.owner(node)
    return around is not None and not is_module_class(around, file)


def is_module_class(node: ast.ClassDef, file: FileEdit) -> bool:
    """Whether a class is a module, or mixed into one."""
    return file.is_module_class(node)


def _is_modules(node: ast.Attribute, file: FileEdit) -> bool:
    """Whether `x.forward` may be a module's: everything but a class that is known to be none."""
    owner = file.facts.owners.get(place(node)) or _own(node, file)
    if isinstance(owner, Instance):
        is_mixed = owner.of in file.settings.mixed
        is_open = not owner.of.bases and "forward" not in owner.of.methods
        return owner.of.is_module or is_mixed or is_open
    if isinstance(owner, Super):
        return _is_a_modules_above(owner.of, file)
    if isinstance(owner, ClassInfo):
        return owner.is_module
    if isinstance(owner, Made):
        return not owner.api.startswith("torch.autograd")
    return True


def _is_a_modules_above(info: ClassInfo, file: FileEdit) -> bool:
    """Whether `super().forward` may be a module's: by the class that has it, where it is known."""
    above, seen = [info], [info]
    while above and not info.is_module:
        bases = [base for base in above.pop(0).bases if isinstance(base, ClassInfo)]
        found = next((base for base in bases if "forward" in base.methods), None)
        if found is not None:
            return found.is_module or found in file.settings.mixed
        above += [base for base in bases if base not in seen]
        seen += bases
    return info.is_module or not info.root.startswith("torch.autograd")


def _own(node: ast.Attribute, file: FileEdit) -> Instance | None:
    """The object of a method that reads `self.forward` and does not call it."""
    around = file.tree.owner(node) if getattr(node.value, "id", "") == "self" else None
    info = None if around is None else file.class_info(around)
    return None if info is None else Instance(info)
