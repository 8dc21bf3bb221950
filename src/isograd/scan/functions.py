"""Functions and classes: declared where they stand, read once, when first called or at the end."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from isograd.scan import behaviour
from isograd.scan.annotations import Annotations
from isograd.scan.values import (
    TENSOR,
    Api,
    ClassInfo,
    FunctionInfo,
    Instance,
    Items,
    Made,
    Mapping,
    Returns,
    Scope,
    Tensor,
    Value,
    is_module,
    join,
)

#: Calls that are followed into each other; beyond it a function is read later, without its caller.
DEEPEST = 25
#: How methods begin that are given tensors.
FORWARD = ("forward", "_forward")
_PROPERTIES = frozenset("property cached_property lazy_property".split())


class Functions(Annotations):
    """Declares functions and classes, and reads their bodies once."""

    pending: list[FunctionInfo]

    if TYPE_CHECKING:

        def body(self, statements: Iterable[ast.stmt]) -> None: ...

    def declare_function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, owner: ClassInfo | None
    ) -> FunctionInfo:
        """Read the signature and the decorators; the body waits."""
        state = self.state
        info = FunctionInfo(node.name, node, None, owner)
        for decorator in node.decorator_list:
            self._decorate(info, decorator)
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if default is not None:
                self.visit(default)
        if node.returns is not None:
            info.result = self.annotation_value(node.returns)
            info.is_annotated = True
        if owner is None:
            state.env[node.name] = info
        info.scope = state.env
        self.pending.append(info)
        return info

    def _decorate(self, info: FunctionInfo, decorator: ast.expr) -> None:
        self.visit(decorator)
        name = decorator.attr if isinstance(decorator, ast.Attribute) else None
        if isinstance(decorator, ast.Name):
            name = decorator.id
        if name in _PROPERTIES:
            info.is_property = True
        elif name == "staticmethod":
            info.is_static = True

    def read_function(
        self, info: FunctionInfo, arguments: list[Value], keywords: dict[str, Value]
    ) -> None:
        """Read the body, if it was not read yet; the arguments of its first call are hints."""
        if info.state or info.node is None or self.state.depth >= DEEPEST:
            return
        info.state = 1
        state, node = self.state, info.node
        outer = (state.env, state.owner)
        state.env = Scope(info.scope)
        state.owner = info.owner or state.owner
        state.functions.append(info)
        state.depth += 1
        waiting, self.pending = self.pending, []
        self._bind_parameters(info, node.args, arguments, keywords)
        self.body(node.body)
        self.finish(state.env)
        self.pending = waiting
        state.depth -= 1
        state.functions.pop()
        state.env, state.owner = outer
        info.node = info.scope = None
        info.state = 2

    def _bind_parameters(
        self,
        info: FunctionInfo,
        parameters: ast.arguments,
        arguments: list[Value],
        keywords: dict[str, Value],
    ) -> None:
        env = self.state.env
        ordered = [*parameters.posonlyargs, *parameters.args]
        defaults: list[ast.expr | None] = [None] * (len(ordered) - len(parameters.defaults))
        defaults += parameters.defaults
        if info.owner is not None and not info.is_static and ordered:
            first = ordered.pop(0)
            defaults.pop(0)
            is_class = first.arg in ("cls", "mcs")
            env[first.arg] = info.owner if is_class else Instance(info.owner)
        is_forward = self._takes_tensors(info)
        for position, parameter in enumerate(ordered):
            hint = arguments[position] if position < len(arguments) else None
            hint = keywords.get(parameter.arg, hint)
            default = defaults[position]
            env[parameter.arg] = self._parameter(parameter, default, hint, is_forward)
        for parameter, default in zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True):
            hint = keywords.get(parameter.arg)
            env[parameter.arg] = self._parameter(parameter, default, hint, False)
        if parameters.vararg is not None:
            declared = self._declared(parameters.vararg)
            given = TENSOR if is_forward and declared is None else declared
            env[parameters.vararg.arg] = Items(given)
        if parameters.kwarg is not None:
            env[parameters.kwarg.arg] = Mapping(self._declared(parameters.kwarg))

    def _declared(self, parameter: ast.arg) -> Value:
        return None if parameter.annotation is None else self.annotation_value(parameter.annotation)

    def _parameter(
        self, parameter: ast.arg, default: ast.expr | None, hint: Value, is_forward: bool
    ) -> Value:
        """What a parameter holds: by annotation, default, first call, or being a forward's."""
        if parameter.annotation is not None:
            declared = self.annotation_value(parameter.annotation)
            if isinstance(declared, Returns) and default is not None:
                return join(declared, self._quiet(default)) or declared
            if declared is not None:
                return declared
        value = None if default is None else self._quiet(default)
        is_none = isinstance(default, ast.Constant) and default.value is None
        if isinstance(value, Api):
            return self.held(value)
        if default is not None and not is_none:
            return value if value is not None else hint
        if isinstance(hint, Instance) and not is_module(hint):
            return Instance(hint.of, is_guess=True)
        if isinstance(hint, (Tensor, Items, Instance, Made)):
            return hint
        if is_forward and default is None and parameter.annotation is None:
            return None if _is_a_number(parameter.arg) else TENSOR
        return None

    def _quiet(self, node: ast.expr) -> Value:
        """The value of a default, whose uses were recorded with the signature."""
        before = len(self.state.uses)
        value = self.visit(node)
        del self.state.uses[before:]
        return value

    def _takes_tensors(self, info: FunctionInfo) -> bool:
        owner = info.owner
        if owner is None or not info.name.startswith(FORWARD):
            return False
        return owner.is_module or owner.root == "torch.autograd.Function"

    def class_made(self, node: ast.ClassDef) -> None:
        """A class: bases, decorators and body now; methods wait until the module was read."""
        state = self.state
        for decorator in node.decorator_list:
            self.visit(decorator)
        bases = tuple(self.visit(base) for base in node.bases)
        for keyword in node.keywords:
            self.visit(keyword.value)
        info = state.mixed.get(node.name) or ClassInfo(node.name)
        info.bases = bases
        info.methods.clear()
        self._classify(info)
        info.is_module = info.is_module or self._looks_like_module(node, bases)
        _note_taker(info, bases)
        state.env[node.name] = info
        outer = (state.env, state.owner)
        first = len(self.pending)
        state.env, state.owner = Scope(state.env), info
        self._class_body(node, info)
        state.env, state.owner = outer
        # Methods see the scope around the class, not the class's own.
        for method in self.pending[first:]:
            method.scope = state.env
        state.listener.class_made(node, info)

    def _class_body(self, node: ast.ClassDef, info: ClassInfo) -> None:
        env = self.state.env
        for statement in node.body:
            kind = statement.__class__
            if kind in (ast.FunctionDef, ast.AsyncFunctionDef):
                method = self.declare_function(statement, info)  # type: ignore[arg-type]
                if statement.name in info.methods and not method.is_property:  # type: ignore[attr-defined]
                    continue
                info.methods[statement.name] = method  # type: ignore[attr-defined]
                counts = self.state.summary.methods.setdefault(statement.name, [])  # type: ignore[attr-defined]
                counts.append(_counts(statement.args, method.is_static))  # type: ignore[attr-defined]
                env[statement.name] = method  # type: ignore[attr-defined]
            else:
                self.body((statement,))
                _keep_attributes(statement, info, env)

    def _classify(self, info: ClassInfo) -> None:
        """Which class of torch it descends from."""
        for base in info.bases:
            if isinstance(base, ClassInfo):
                info.is_module = info.is_module or base.is_module
                info.root = info.root or base.root
            elif isinstance(base, Api):
                kind = self.state.names.kind(base.name)
                if kind == "M":
                    info.is_module = True
                info.root = info.root or base.name

    def _looks_like_module(self, node: ast.ClassDef, bases: tuple[Value, ...]) -> bool:
        """A base from elsewhere, a method `forward` that is not static: a module all the same."""
        if all(base is not None for base in bases) or not bases:
            return False
        return any(
            isinstance(statement, ast.FunctionDef)
            and statement.name == "forward"
            and bool(statement.args.args)
            and statement.args.args[0].arg == "self"
            for statement in node.body
        )

    def finish(self, scope: Scope) -> None:
        """Read every body that no call has asked for.

        Constructors first, for they make the attributes; then forward methods, whose arguments are
        tensors; then methods, those that no other calls before the others, and the rest from the
        last to the first, since a function mostly stands before those that call it: what is called
        learns from it what it is given.
        scope: the names around them now that all of them are bound.
        """
        waiting = self.pending
        for info in waiting:
            if info.scope is not None:
                info.scope = scope
        methods = [info for info in waiting if info.owner is not None]
        called = self._called_of_objects(methods)
        for group in (
            [info for info in waiting if info.name == "__init__"],
            [info for info in methods if info.name.startswith(FORWARD)],
            [info for info in methods if info.name not in called],
            methods,
            waiting[::-1],
        ):
            for info in group:
                self.read_function(info, [], {})

    def _called_of_objects(self, methods: Sequence[FunctionInfo]) -> frozenset[str]:
        """The methods that the text calls of a method's own object."""
        owners = {
            info.node.args.args[0].arg
            for info in methods
            if info.node is not None and info.node.args.args and not info.is_static
        }
        if len(methods) < 2 or not owners:
            return frozenset()
        names = "|".join(map(re.escape, sorted(owners)))
        return frozenset(re.findall(rf"\b(?:{names})\.(\w+)\(", self.state.text))


def _note_taker(info: ClassInfo, bases: Sequence[Value]) -> None:
    """Tell bases that are no modules which classes are derived from them."""
    for base in bases:
        if isinstance(base, ClassInfo) and not base.is_module and not base.root:
            base.takers.append(info)
            _note_taker(info, base.bases)


def _is_a_number(name: str) -> bool:
    """Whether a parameter is called like a size rather than like a tensor."""
    if name in behaviour.NUMBER_NAMES or name.startswith(("num_", "n_", "max_", "return_", "use_")):
        return True
    return name.endswith(("_size", "_shape", "_dim", "_len", "_length", "_shapes"))


def _keep_attributes(statement: ast.stmt, info: ClassInfo, env: Scope) -> None:
    """Names that a class body binds are attributes of its instances."""
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    for target in targets:
        if isinstance(target, ast.Name):
            info.attributes[target.id] = env[target.id]


def _counts(parameters: ast.arguments, is_static: bool) -> tuple[int, float]:
    """The fewest and most arguments of a method, without the object."""
    own = 0 if is_static else 1
    most = len(parameters.posonlyargs) + len(parameters.args) - own
    fewest = most - len(parameters.defaults)
    if parameters.vararg is not None or parameters.kwarg is not None:
        return max(fewest, 0), math.inf
    return max(fewest, 0), most + len(parameters.kwonlyargs)
