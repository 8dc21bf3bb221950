"""What the forward part of a loop reads: objects that are called, and values that go in."""

from __future__ import annotations

import ast
import re

from isograd.convert.file import FileEdit
from isograd.convert.training.model import EagerError, Names, Repeated
from isograd.convert.training.paths import (
    BUILTINS,
    bound_by,
    calls_in,
    method_of,
    path_of,
    scope_of,
)
from isograd.static_graph.find import find_reached

#: What is asked of networks alone.
_OF_NETWORKS = frozenset("train eval parameters named_parameters state_dict modules".split())


def name_what_is_read(
    file: FileEdit, loop: Repeated, forward: list[ast.stmt], loss: ast.expr
) -> Names:
    """Names for all that the forward part reads from outside; raises EagerError."""
    reader = _Naming(file, loop, forward)
    for statement in forward:
        reader.read(statement)
    reader.read(loss)
    return reader.names


class _Naming:
    """The names of one loop's forward part."""

    def __init__(self, file: FileEdit, loop: Repeated, forward: list[ast.stmt]) -> None:
        self.file, self.loop = file, loop
        self.names = Names()
        self.bound = set().union(*map(bound_by, forward))
        self.known = set[str]()
        self.changing = bound_by(loop)
        self.scope = scope_of(loop, file)
        given = loop.args if isinstance(loop, ast.FunctionDef) else None
        self.given = (
            {part.arg for part in ast.walk(given) if isinstance(part, ast.arg)} if given else set()
        )
        self.networks = {
            path
            for path, method in map(method_of, calls_in([self.scope]))
            if method in _OF_NETWORKS
        }

    def read(self, top: ast.AST) -> None:
        """All names that a statement or an expression reads, in their order."""
        for node in ast.walk(top):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self._name(node)
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                if node.target.id not in self.known:
                    self._carried(node.target.id)
        self.known |= bound_by(top)

    def _carried(self, name: str) -> None:
        self.names.inputs.setdefault(name, name)

    def _name(self, node: ast.Name) -> None:
        if node.id in self.bound:
            if node.id not in self.known:
                self._carried(node.id)
            return
        if self._is_definition(node):
            self._look_at_function(node)
            return
        part = self._whole(node)
        parent = self.file.tree.parents[part]
        is_called = isinstance(parent, ast.Call) and parent.func is part
        if is_called or path_of(part) in self.networks or self._is_receiver(part, node, parent):
            self._object(part)
        else:
            self._input(part)

    def _whole(self, node: ast.Name) -> ast.expr:
        """The longest path that begins with a name, without members of torch's."""
        part: ast.expr = node
        while True:
            if path_of(part) in self.networks:
                return part
            parent = self.file.tree.parents[part]
            if isinstance(parent, ast.Attribute) and parent.value is part:
                above = self.file.tree.parents[parent]
                is_method = isinstance(above, ast.Call) and above.func is parent
                if is_method and node.id != "self":
                    return part
                use = self.file.use(parent)
                if use is not None and use.api.startswith("torch."):
                    return part
                if is_method and path_of(part) != "self":
                    return part
                part = parent
            elif isinstance(parent, ast.Subscript) and parent.value is part and path_of(parent):
                part = parent
            else:
                return part

    def _is_receiver(self, part: ast.expr, root: ast.Name, parent: ast.AST) -> bool:
        """Whether a method of something that is no tensor is called."""
        if not (isinstance(parent, ast.Attribute) and parent.value is part):
            return False
        use = self.file.use(parent)
        if use is not None and use.api.startswith("torch.Tensor."):
            return False
        if root.id in self.changing | self.given - {"self"} and not parent.attr.startswith("_"):
            raise EagerError(parent, f"{ast.unparse(parent)} is not known to be a tensor's")
        return True

    def _object(self, part: ast.expr) -> None:
        path = path_of(part)
        if path.startswith("self") and path.count(".") != 1:
            raise EagerError(part, f"{path} is called, which is no attribute of the object")
        if not path or path.split(".")[0].split("[")[0] in self.changing:
            raise EagerError(part, "what is called changes within the loop")
        self._look_at_method(part, path)
        self._add(self.names.objects, part, path.rpartition(".")[2] or path)

    def _look_at_method(self, part: ast.expr, path: str) -> None:
        """A method of the class in which the step stands has to compile as functions do."""
        own = next(
            (c for c in self.file.tree.above(self.loop) if isinstance(c, ast.ClassDef)), None
        )
        name = path.rpartition(".")[2]
        if own is None or not path.startswith("self."):
            return
        found = find_reached(self.file.tree.module, own.name, name)
        if found and name not in ("forward", "construct"):
            where = f"line {found[0].line} ({found[0].code})"
            raise EagerError(part, f"{name} does not compile to the same: {where}")

    def _input(self, part: ast.expr) -> None:
        path = path_of(part)
        if path in ("self", ""):
            raise EagerError(part, "the whole object is given to a function")
        self._add(self.names.inputs, part, re.sub(r"\W+", "_", path).strip("_"))

    def _add(self, names: dict[str, str], part: ast.expr, wanted: str) -> None:
        path = path_of(part)
        name = names.get(path)
        if name is None:
            taken = {*self.names.objects.values(), *self.names.inputs.values(), *self.bound}
            name = wanted if wanted.isidentifier() else f"value_{len(taken)}"
            while name in taken or name in BUILTINS or (name != path and self._is_global(name)):
                name += "_"
            names[path] = name
        if name != path:
            self.names.places.append((part, name))

    def _is_global(self, name: str) -> bool:
        return name in self.file.tree.used

    def _is_definition(self, node: ast.Name) -> bool:
        """Whether a name is a function, a class or a module, which no assignment binds."""
        if self.file.tree.binds(node.id, node):
            return False
        return node.id not in self.file.tree.stored

    def _look_at_function(self, node: ast.Name) -> None:
        """Functions of the file have to compile; those of other files are not looked into."""
        parent = self.file.tree.parents[node]
        if self.file.use(node) is not None or not isinstance(parent, ast.Call):
            root: ast.AST = node
            while isinstance(self.file.tree.parents[root], ast.Attribute):
                root = self.file.tree.parents[root]
                if self.file.use(root) is not None:
                    return
            if self.file.use(node) is not None or not isinstance(parent, ast.Attribute):
                return
            raise EagerError(node, f"{ast.unparse(root)} is not torch's and runs in Python")
        if parent.func is not node or node.id in BUILTINS:
            return
        module = self.file.tree.module
        own = {part.name for part in module.body if isinstance(part, ast.FunctionDef)}
        if node.id not in own:
            raise EagerError(node, f"{node.id} is not defined in this file")
        found = find_reached(module, "", node.id)
        if found:
            where = f"line {found[0].line} ({found[0].code})"
            raise EagerError(node, f"{node.id} does not compile to the same: {where}")
