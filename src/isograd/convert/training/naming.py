"""What the forward part of a loop reads: objects that are called, and values that go in."""

from __future__ import annotations

import ast
import re

from isograd.convert.file import FileEdit
from isograd.convert.training.attributes import calls_of_itself, mentions
from isograd.convert.training.counting import counters_of
from isograd.convert.training.effects import effect_in
from isograd.convert.training.handed import (
    calls_argument,
    look_at_distributions,
    setting_read_of,
    settings_alone,
)
from isograd.convert.training.hoisting import Hoisting
from isograd.convert.training.model import EagerError, Names, Repeated
from isograd.convert.training.other_files import OtherFiles, place_of
from isograd.convert.training.paths import (
    BUILTINS,
    bound_by,
    calls_in,
    method_of,
    name_for,
    names_read,
    path_of,
    read_by,
    scope_of,
)
from isograd.convert.training.reported import reported_by, without_effects
from isograd.convert.training.written_leaves import leaves_of
from isograd.static_graph.find import find_reached

#: Methods of networks whose result is gone through.
_LISTS = ("parameters", "named_parameters")
#: What is asked of networks alone.
_OF_NETWORKS = frozenset("train eval parameters named_parameters state_dict modules".split())


def name_what_is_read(
    file: FileEdit,
    loop: Repeated,
    forward: list[ast.stmt],
    loss: ast.expr,
    carried: set[str],
    others: OtherFiles,
) -> Names:
    """Names for all that the forward part reads from outside; raises EagerError.

    carried: the names it binds that may still have the value of the round before.
    """
    reader = _Naming(file, loop, forward, carried, others)
    reader.name_attributes([*forward, loss])
    for statement in forward:
        reader.read(statement)
    reader.read(loss)
    for name in sorted(carried):
        reader.hold(name, loss)
    return reader.names


class _Naming:
    """The names of one loop's forward part."""

    def __init__(
        self,
        file: FileEdit,
        loop: Repeated,
        forward: list[ast.stmt],
        carried: set[str],
        others: OtherFiles,
    ) -> None:
        self.file, self.loop, self.others = file, loop, others
        self.names = Names()
        self.bound = set().union(*map(bound_by, forward))
        self.counting = counters_of(loop)
        self.hoisting = Hoisting(file, self.bound, self.counting)
        self.forward = forward
        self.own = {node for statement in forward for node in ast.walk(statement)}
        self.carried = carried
        self.changing = bound_by(loop)
        self.scope = scope_of(loop, file)
        given = loop.args if isinstance(loop, ast.FunctionDef) else None
        self.given = (
            {part.arg for part in ast.walk(given) if isinstance(part, ast.arg)} if given else set()
        )
        self.leaves = leaves_of(file) - self.given
        self.networks = {
            path
            for path, method in map(method_of, calls_in([self.scope]))
            if method in _OF_NETWORKS
        }

    def name_attributes(self, parts: list[ast.AST]) -> None:
        """Names for the attributes that the forward part writes to, which count as names here."""
        used = {node.id for part in parts for node in ast.walk(part) if isinstance(node, ast.Name)}
        for path in sorted(path for path in self.bound if "." in path):
            name = path.rpartition(".")[2]
            while name in used or name in BUILTINS:
                name += "_"
            used.add(name)
            self.names.attributes[path] = name
        for node in (node for part in parts for node in ast.walk(part)):
            if isinstance(node, ast.Name) and node.id in self.names.attributes:
                self.names.places.append((node, self.names.attributes[node.id]))

    def read(self, top: ast.AST) -> None:
        """All names that a statement or an expression reads, in their order."""
        for node in ast.walk(top):
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                self.hold(node.target.id, node)
        self._hoist(top)
        for name in names_read(top):
            if name not in self.names.outside:
                self._name(name)

    def _hoist(self, top: ast.AST) -> None:
        """Make inputs of what is computed outside."""
        for node, is_changing in self.hoisting.found_in(top):
            self._add(self.names.inputs, node, "value", is_new=is_changing)
            self.names.outside.update(ast.walk(node))
            if is_changing:
                self.hoisting.look_between(self.loop, self.forward, node)

    def hold(self, name: str, node: ast.stmt | ast.expr) -> None:
        """Make an input of a name that the forward part binds, if the round before may have."""
        if name not in self.carried:
            return
        own = self.names.attributes.get(name, "")
        if not own and not self._is_bound_before(name, node.lineno):
            if self._is_bound_by_a_loop(name):
                return  # Without a round of that, it has no value in torch either.
            raise EagerError(node, f"{name} may have no value in the first round")
        self.names.inputs.setdefault(name, own or name)

    def _is_bound_before(self, name: str, line: int) -> bool:
        nodes = [*ast.walk(self.scope)]
        targets = (one.target for one in nodes if isinstance(one, ast.comprehension))
        others = self.own.union(*map(ast.walk, targets))
        return name in self.given or any(
            isinstance(node, ast.Name)
            and node.id == name
            and isinstance(node.ctx, ast.Store)
            and node.lineno <= line
            and node not in others
            and self.file.tree.scope(node) is self.scope
            for node in nodes
        )

    def _is_bound_by_a_loop(self, name: str) -> bool:
        """Whether the body of a loop binds a name, and nothing before that reads it."""
        first = next(s for s in self.forward if name in bound_by(s) | read_by(s))
        body = first.body if isinstance(first, ast.For) else []
        binding = next((s for s in body if name in bound_by(s) | read_by(s)), None)
        return isinstance(binding, ast.Assign) and name not in read_by(binding)

    def _name(self, node: ast.Name) -> None:
        if node.id in self.bound:
            self.hold(node.id, node)
            return
        if self._is_definition(node):
            self._look_at_function(node)
            return
        part = self._whole(node)
        parent = self.file.tree.parents[part]
        if isinstance(parent, ast.keyword) and parent.arg is None:
            self._spread(part)
            return
        is_called = isinstance(parent, ast.Call) and parent.func is part
        is_called |= self._is_called_inside(part) or path_of(part) in self.leaves
        if is_called or path_of(part) in self.networks or self._is_receiver(part, node, parent):
            self._object(part)
        else:
            self._input(part)

    def _is_called_inside(self, part: ast.expr) -> bool:
        """Whether a function of the file, to which it is given by its place, calls it."""
        call = self.file.tree.parents[part]
        root = path_of(part).partition(".")[0]
        if isinstance(call, ast.keyword):
            call = self.file.tree.parents[call]
        if not isinstance(call, ast.Call) or root in self.changing:
            return False
        if (other := self.others.function(self.file.file, call.func)) is not None:
            return self.others.is_called(*other, part, call, path_of(part) in self.networks)
        if part not in call.args:
            return False
        return calls_argument(getattr(call.func, "id", ""), call.args.index(part), self.file)

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
        above = self.file.tree.parents[part]
        is_method = isinstance(above, ast.Attribute) and above.value is part
        if isinstance(above, ast.Attribute) and is_method and self._lists(part, above):
            return
        self._look_at_method(part, path_of(above) if is_method else path)
        self._add(self.names.objects, part, name_for(path))

    def _lists(self, part: ast.expr, method: ast.Attribute) -> bool:
        """Whether it is a network's parameters that are gone through: no graph asks for them."""
        call = self.file.tree.parents[method]
        is_asked = isinstance(call, ast.Call) and call.func is method
        if not is_asked or method.attr not in _LISTS or call.args or call.keywords:  # type: ignore[attr-defined]
            return False
        self._add(self.names.objects, part, name_for(path_of(part)))
        places = self.names.places
        places[:] = [place for place in places if place[0] is not part]  # it goes with the call
        owner = self.names.objects[path_of(part)]
        taken = {*self.names.objects.values(), *self.names.inputs.values(), *self.bound}
        name = f"{owner}_{method.attr}"
        while name in taken:
            name += "_"
        name = self.names.lists.setdefault(f"tuple({owner}.{method.attr}())", name)
        places.append((call, name))  # type: ignore[arg-type] # a call, as asked above
        return True

    def _look_at_method(self, part: ast.expr, path: str) -> None:
        """A method of a class of this file has to compile as functions do."""
        owner, _, name = path.rpartition(".")
        if not owner or name in ("forward", "construct"):
            return
        around = (c for c in self.file.tree.above(self.loop) if isinstance(c, ast.ClassDef))
        own = next(around, None)
        # Which class an object has is not known here: each that has the method counts.
        classes = [own] if owner == "self" else self.file.tree.of(ast.ClassDef)
        both = [(kind, _method(kind, name)) for kind in classes if kind is not None]
        methods = [method for _, method in both if method is not None]
        above = self.file.tree.parents[part]
        call = self.file.tree.parents[above] if path_of(above) == path else above
        reported = reported_by(call, methods, self.file)
        self.names.reported += [] if reported is None else [reported]
        for kind, method in both:
            if method is None:
                continue
            module = without_effects(self.file.tree.module, reported)
            if found := find_reached(module, kind.name, name, is_torch=True):
                where = place_of(found[0], module)
                raise EagerError(part, f"{name} does not compile to the same: {where}")
            self._look_at_effects(part, method, () if reported is None else reported.effects)
            written = {path.rpartition(".")[2] for path in self.names.attributes}
            if mentions(kind, method, written):
                raise EagerError(part, f"{name} may see an attribute that the forward part writes")
            selves = calls_of_itself(kind, method, self.file)
            self.names.own_calls += [one for one in selves if one not in self.names.own_calls]

    def _look_at_effects(
        self, part: ast.expr, function: ast.FunctionDef, reported: tuple[ast.stmt, ...] = ()
    ) -> None:
        effect = effect_in(function, self.file, reported)
        if effect is not None:
            what = f"line {effect.lineno} ({ast.unparse(effect)})"
            raise EagerError(part, f"{function.name} calls for an effect beside its value: {what}")

    def _spread(self, part: ast.expr) -> None:
        if self.names.spread not in ("", path_of(part)):
            raise EagerError(part, "the forward part calls with ** of several dictionaries")
        self.names.spread = path_of(part)
        self._input(part)

    def _input(self, part: ast.expr) -> None:
        path = path_of(part)
        if path in ("self", ""):
            raise EagerError(part, "the whole object is given to a function")
        look_at_distributions(part, self.file)
        if setting := setting_read_of(part, self.file):
            if settings := settings_alone(part, self.file):
                self._object(part)
                self.names.settings += settings
                return
            raise EagerError(part, f"an object is given to a function, which reads its {setting}")
        if path in self.counting:
            # One graph for all its values, as far as it is only computed with or handed on.
            if not isinstance(self.file.tree.parents[part], (ast.BinOp, ast.Call)):
                raise EagerError(part, f"each value of {path}, a number, is compiled anew")
            self.names.numbers.add(path)
        if self._is_handed_on(part):
            self.names.varying.add(path)
        self._add(self.names.inputs, part, re.sub(r"\W+", "_", path).strip("_"))

    def _is_handed_on(self, part: ast.expr) -> bool:
        """Whether a batch goes whole into a method that is not torch's: it may be a tuple."""
        call = self.file.tree.parents[part]
        is_own = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
        is_batch = isinstance(part, ast.Name) and part.id in self.changing
        return is_batch and is_own and self.file.use(call.func) is None  # type: ignore[attr-defined]

    def _add(
        self, names: dict[str, str], part: ast.expr, wanted: str, *, is_new: bool = False
    ) -> None:
        """Name an expression.  is_new: it has another value wherever it stands."""
        path = path_of(part) or ast.unparse(part)
        while is_new and path in names:
            path = f"({path})"
        name = names.get(path)
        if name is None:
            taken = {*self.names.objects.values(), *self.names.inputs.values(), *self.bound}
            taken |= {*self.names.attributes.values()}
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
        if self.file.tree.binds(node.id, node) or "." in node.id:
            return False
        return node.id not in self.file.tree.stored

    def _is_of_other_file(self, node: ast.Name) -> bool:
        """Whether a function of another file is called by a name, which is looked at then."""
        named: ast.AST = node
        while isinstance(self.file.tree.parents[named], ast.Attribute):
            named = self.file.tree.parents[named]
        call = self.file.tree.parents[named]
        other = self.others.function(self.file.file, named)
        if other is None or not isinstance(call, ast.Call) or call.func is not named:
            return False
        if problem := self.others.problem(*other):
            raise EagerError(node, f"{ast.unparse(named)} of {other[0]} {problem}")
        self.names.elsewhere.append(other)
        return True

    def _look_at_function(self, node: ast.Name) -> None:
        """Functions of the file have to compile, and those of the project's other files."""
        parent = self.file.tree.parents[node]
        if self._is_of_other_file(node):
            return
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
        found = find_reached(module, "", node.id, is_torch=True)
        if found:
            where = place_of(found[0], module)
            raise EagerError(node, f"{node.id} does not compile to the same: {where}")
        for function in module.body:
            if isinstance(function, ast.FunctionDef) and function.name == node.id:
                self._look_at_effects(node, function)


def _method(kind: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    return next((f for f in kind.body if isinstance(f, ast.FunctionDef) and f.name == name), None)
