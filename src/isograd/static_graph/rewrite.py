"""Constructs written otherwise, where that is mechanical: definitions in, definitions out.

A rewrite is a hypothesis: it is compiled and compared with the eager run of the code as it is, so
one that changes what is computed proves nothing and is dropped.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable

from isograd.static_graph.scope import FileScope, Locals, is_self_attribute

_Rewrite = Callable[["Place"], bool]
_MADE = "isograd_value"


class Place:
    """One construct in a copy of its function, with the means to write around it."""

    def __init__(self, own: Locals, function: ast.FunctionDef, node: ast.AST) -> None:
        self.own, self.function, self.node = own, function, node
        self.parents = {
            id(child): parent
            for parent in ast.walk(function)
            for child in ast.iter_child_nodes(parent)
        }
        self.count = sum(1 for n in ast.walk(function) if getattr(n, "id", "").startswith(_MADE))

    def statement(self) -> ast.stmt | None:
        """The statement around the construct."""
        node: ast.AST | None = self.node
        while node is not None and not isinstance(node, ast.stmt):
            node = self.parents.get(id(node))
        return node

    def body_of(self, statement: ast.stmt) -> list[ast.stmt] | None:
        """The list that holds a statement."""
        parent = self.parents.get(id(statement), self.function)
        for field in ("body", "orelse", "finalbody"):
            held = getattr(parent, field, None)
            if isinstance(held, list) and any(s is statement for s in held):
                return held
        return None

    def replace_statement(self, text: str | list[ast.stmt]) -> bool:
        """Put statements in the place of the one around the construct."""
        statement = self.statement()
        body = self.body_of(statement) if statement is not None else None
        if statement is None or body is None:
            return False
        at = next(i for i, s in enumerate(body) if s is statement)
        new = ast.parse(text).body if isinstance(text, str) else text
        body[at : at + 1] = new or [ast.Pass()]
        return True

    def before(self, text: str) -> bool:
        """Put statements before the one around the construct."""
        statement = self.statement()
        body = self.body_of(statement) if statement is not None else None
        if statement is None or body is None or isinstance(statement, ast.While):
            return False
        at = next(i for i, s in enumerate(body) if s is statement)
        body[at:at] = ast.parse(text).body
        return True

    def put(self, text: str | ast.expr) -> bool:
        """Put an expression in the construct's place."""
        new = ast.parse(text, mode="eval").body if isinstance(text, str) else text
        parent = self.parents.get(id(self.node))
        if parent is None:
            return False
        for field, value in ast.iter_fields(parent):
            if value is self.node:
                setattr(parent, field, new)
                return True
            if isinstance(value, list):
                for i, part in enumerate(value):
                    if part is self.node:
                        value[i] = new
                        return True
        return False

    def name(self) -> str:
        """A name that the function does not use."""
        self.count += 1
        return f"{_MADE}_{self.count}"

    def operators(self) -> str:
        """How this file names mindspore.ops; empty where it does not."""
        return next((k for k, v in self.own.file.imports.items() if v == "mindspore.ops"), "")


def rewritten(
    file: FileScope, cls: str, function: ast.FunctionDef, code: str, line: int, column: int
) -> ast.FunctionDef | None:
    """The function with this construct written otherwise; None where no rewrite is mechanical."""
    rewrite = _REWRITES.get(code)
    if rewrite is None:
        return None
    new = copy.deepcopy(function)
    for node in ast.walk(new):
        if (getattr(node, "lineno", 0), getattr(node, "col_offset", -1)) == (line, column):
            trial = copy.deepcopy(function)
            twin = _twin(new, node, trial)
            if rewrite(Place(Locals(file, cls, trial), trial, twin)):
                return ast.fix_missing_locations(trial)
    return None


def is_mechanical(code: str) -> bool:
    """Whether a rewrite of this rule can be tried."""
    return code in _REWRITES


def _twin(tree: ast.AST, node: ast.AST, other: ast.AST) -> ast.AST:
    number = next(i for i, n in enumerate(ast.walk(tree)) if n is node)
    return next(n for i, n in enumerate(ast.walk(other)) if i == number)


def _text(node: ast.AST) -> str:
    return ast.unparse(node)


def _two_loops(place: Place) -> bool:
    node = place.node
    if not isinstance(node, (ast.ListComp, ast.GeneratorExp)) or len(node.generators) < 2:
        return False
    name = place.name()
    lines, indent = [f"{name} = []"], ""
    for loop in node.generators:
        lines.append(f"{indent}for {_text(loop.target)} in {_text(loop.iter)}:")
        indent += "    "
        for test in loop.ifs:
            lines.append(f"{indent}if {_text(test)}:")
            indent += "    "
    lines.append(f"{indent}{name}.append({_text(node.elt)})")
    return place.put(name) and place.before("\n".join(lines))


def _without_keyword(word: str) -> _Rewrite:
    def rewrite(place: Place) -> bool:
        if not isinstance(place.node, ast.Call):
            return False
        kept = [k for k in place.node.keywords if k.arg != word]
        changed = len(kept) < len(place.node.keywords)
        place.node.keywords = kept
        return changed

    return rewrite


def _dict_unpacking(place: Place) -> bool:
    node = place.node
    if not isinstance(node, ast.Dict) or None not in node.keys:
        return False
    name = place.name()
    lines = [f"{name} = {{}}"]
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            lines.append(f"{name}.update({_text(value)})")
        else:
            lines.append(f"{name}[{_text(key)}] = {_text(value)}")
    return place.put(name) and place.before("\n".join(lines))


def _loop_else(place: Place) -> bool:
    node = place.node
    if not isinstance(node, (ast.For, ast.While)) or not node.orelse:
        return False
    if any(isinstance(n, ast.Break) for n in ast.walk(node)):
        return False
    rest, node.orelse = node.orelse, []
    return place.replace_statement([node, *rest])


def _deleted(place: Place) -> bool:
    if not isinstance(place.node, ast.Delete):
        return False
    lines = []
    for target in place.node.targets:
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            name, at = target.value.id, _text(target.slice)
            lines.append(f"{name} = {name}[:{at}] + {name}[{at} + 1:]")
    return place.replace_statement("\n".join(lines))


def _match(place: Place) -> bool:
    node = place.node
    if type(node).__name__ != "Match":
        return False
    found: list[ast.stmt] = []
    for case in reversed(node.cases):  # type: ignore[attr-defined]
        kind = type(case.pattern).__name__
        if kind == "MatchAs" and case.pattern.pattern is None and case.pattern.name is None:
            found = list(case.body)
        elif kind == "MatchValue" and case.guard is None:
            subject = _text(node.subject)  # type: ignore[attr-defined]
            test = ast.parse(f"{subject} == {_text(case.pattern.value)}", mode="eval").body
            found = [ast.If(test, list(case.body), found)]
        else:
            return False
    return place.replace_statement(found)


def _try(place: Place) -> bool:
    if not isinstance(place.node, ast.Try):
        return False
    node = place.node
    return place.replace_statement([*node.body, *node.orelse, *node.finalbody])


def _with(place: Place) -> bool:
    if not isinstance(place.node, ast.With):
        return False
    return place.replace_statement(list(place.node.body))


def _fstring(place: Place) -> bool:
    for node in ast.walk(place.function):
        if isinstance(node, ast.JoinedStr) and any(n is place.node for n in ast.walk(node)):
            text, values = "", []
            for part in node.values:
                if isinstance(part, ast.Constant):
                    text += str(part.value).replace("{", "{{").replace("}", "}}")
                elif isinstance(part, ast.FormattedValue):
                    spec = part.format_spec
                    words = spec.values if isinstance(spec, ast.JoinedStr) else []
                    text += "{:" + "".join(str(getattr(w, "value", "")) for w in words) + "}"
                    values.append(_text(part.value))
            place.node = node
            return place.put(f"{text!r}.format({', '.join(values)})")
    return False


def _walrus(place: Place) -> bool:
    node = place.node
    if not isinstance(node, ast.NamedExpr):
        return False
    name = node.target.id
    return place.put(name) and place.before(f"{name} = {_text(node.value)}")


def _yield(place: Place) -> bool:
    name = place.name()
    for node in ast.walk(place.function):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield) and node.value.value:
            node.value = ast.parse(f"{name}.append({_text(node.value.value)})", mode="eval").body
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.YieldFrom):
            node.value = ast.parse(f"{name}.extend({_text(node.value.value)})", mode="eval").body
        elif isinstance(node, ast.Return):
            return False
    body = place.function.body
    place.function.body = [*ast.parse(f"{name} = []").body, *body]
    place.function.body += ast.parse(f"return {name}").body
    return True


def _method(place: Place) -> tuple[str, ast.Call] | None:
    """The name of a value and the method's call on it."""
    node = place.node
    if isinstance(node, ast.Expr):
        node = node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if isinstance(node.func.value, ast.Name):
            return node.func.value.id, node
    return None


def _dict_pop(place: Place) -> bool:
    found = _method(place)
    if found is None or len(found[1].args) != 1:
        return False
    name, key, made = found[0], _text(found[1].args[0]), place.name()
    lines = f"{made} = {name}[{key}]\n"
    lines += f"{name} = {{k: v for k, v in {name}.items() if k != {key}}}"
    return place.put(made) and place.before(lines)


def _dict_or(place: Place) -> bool:
    if not isinstance(place.node, ast.BinOp):
        return False
    name = place.name()
    lines = f"{name} = {{}}\n{name}.update({_text(place.node.left)})\n"
    lines += f"{name}.update({_text(place.node.right)})"
    return place.put(name) and place.before(lines)


def _cells_reversed(place: Place) -> bool:
    statement = place.statement()
    if not isinstance(statement, ast.For) or statement.iter is not place.node:
        return False
    assert isinstance(place.node, ast.Call)
    cells, name = _text(place.node.args[0]), place.name()
    statement.iter = ast.parse(f"range(len({cells}) - 1, -1, -1)", mode="eval").body
    first = ast.parse(f"{_text(statement.target)} = {cells}[{name}]").body
    statement.target = ast.Name(name, ast.Store())
    statement.body = [*first, *statement.body]
    return True


def _called_as(text: str) -> _Rewrite:
    """A method's call as another expression; {name} is the value."""

    def rewrite(place: Place) -> bool:
        found = _method(place)
        return found is not None and place.put(text.format(name=found[0]))

    return rewrite


def _statement_as(text: str, count: int) -> _Rewrite:
    """A method's call as another statement; {name} is the value, {0} and {1} the arguments."""

    def rewrite(place: Place) -> bool:
        found = _method(place)
        if found is None or len(found[1].args) != count:
            return False
        words = [_text(argument) for argument in found[1].args]
        return place.replace_statement(text.format(*words, name=found[0]))

    return rewrite


def _extended(place: Place) -> bool:
    found = _method(place)
    if found is None or len(found[1].args) != 1:
        return False
    given = found[1].args[0]
    words = _text(given) if isinstance(given, (ast.List, ast.ListComp)) else f"list({_text(given)})"
    return place.replace_statement(f"{found[0]} = {found[0]} + {words}")


def _list_pop(place: Place) -> bool:
    found = _method(place)
    if found is None:
        return False
    name, made = found[0], place.name()
    at = _text(found[1].args[0]) if found[1].args else "-1"
    rest = {"-1": f"{name}[:-1]", "0": f"{name}[1:]"}.get(at)
    if rest is None:
        return False
    return place.put(made) and place.before(f"{made} = {name}[{at}]\n{name} = {rest}")


def _deque(place: Place) -> bool:
    node = place.node
    if not isinstance(node, ast.Call) or len(node.args) != 1:
        return False
    statement = place.statement()
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return False
    name = statement.targets[0].id
    if not place.put(f"list({_text(node.args[0])})"):
        return False
    for _ in range(8):
        call = next(
            (
                n
                for n in ast.walk(place.function)
                if isinstance(n, ast.Call)
                and isinstance(n.func, ast.Attribute)
                and n.func.attr in ("popleft", "pop")
                and getattr(n.func.value, "id", "") == name
            ),
            None,
        )
        if call is None:
            return True
        assert isinstance(call.func, ast.Attribute)
        if call.func.attr == "popleft":
            call.args = [ast.Constant(0)]
        inner = Place(place.own, place.function, call)
        if not _list_pop(inner):
            return False
    return False


def _reduce(place: Place) -> bool:
    node = place.node
    if not isinstance(node, ast.Call) or len(node.args) != 2:
        return False
    function, values = map(_text, node.args)
    made, all_values, one = place.name(), place.name(), place.name()
    lines = f"{all_values} = {values}\n{made} = {all_values}[0]\n"
    lines += f"for {one} in {all_values}[1:]:\n    {made} = {function}({made}, {one})"
    return place.put(made) and place.before(lines)


def _reversed_list(place: Place) -> bool:
    node = place.node
    return isinstance(node, ast.Call) and place.put(f"{_text(node.args[0])}[::-1]")


def _sequence_slice(place: Place) -> bool:
    node = place.node
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Subscript):
        return False
    part, cells = node.func.slice, _text(node.func.value)
    if not isinstance(part, ast.Slice) or part.step is not None or len(node.args) != 1:
        return False
    first = _text(part.lower) if part.lower else "0"
    last = _text(part.upper) if part.upper else f"len({cells})"
    if first.startswith("-") or last.startswith("-"):
        first, last = (f"len({cells}) {w}" if w.startswith("-") else w for w in (first, last))
    made, at = place.name(), place.name()
    lines = f"{made} = {_text(node.args[0])}\nfor {at} in range({first}, {last}):\n"
    lines += f"    {made} = {cells}[{at}]({made})"
    return place.put(made) and place.before(lines)


def _dict_call(place: Place) -> bool:
    node = place.node
    if not isinstance(node, ast.Call) or len(node.args) > 1:
        return False
    if not node.args:
        parts = [f"{k.arg!r}: {_text(k.value)}" for k in node.keywords if k.arg]
        return place.put("{" + ", ".join(parts) + "}")
    if node.keywords:
        return False
    given = _text(node.args[0])
    is_pairs = isinstance(node.args[0], (ast.Call, ast.List, ast.ListComp, ast.GeneratorExp))
    return place.put(f"{{k: v for k, v in {given}{'' if is_pairs else '.items()'}}}")


def _operator(name: str | None = None) -> _Rewrite:
    """The function of mindspore.ops of this name, or of the same name."""

    def rewrite(place: Place) -> bool:
        node, operators = place.node, place.operators()
        if not isinstance(node, ast.Call) or not operators:
            return False
        last = name or place.own.file.qualified(node.func).rpartition(".")[2]
        given = node.args[:1] if name == "stack" else node.args
        return place.put(f"{operators}.{last}({', '.join(map(_text, given))})")

    return rewrite


def _local_instead(place: Place) -> bool:
    """An attribute of self becomes a local variable of this function."""
    targets = place.node.targets if isinstance(place.node, ast.Assign) else []
    if isinstance(place.node, ast.AugAssign):
        targets = [place.node.target]
    name = next((t.attr for t in targets if isinstance(t, ast.Attribute)), "")
    if not name:
        return False
    local = place.name()

    class Renaming(ast.NodeTransformer):
        def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
            self.generic_visit(node)
            if is_self_attribute(node) and node.attr == name:
                return ast.Name(local, node.ctx)
            return node

    Renaming().visit(place.function)
    if any(name in scope.kinds for scope in place.own.file.with_attributes(place.own.cls)):
        place.function.body = [*ast.parse(f"{local} = self.{name}").body, *place.function.body]
    return True


def _slice_in_list(place: Place) -> bool:
    node = place.node
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Subscript):
        return False
    name, at = _text(node.targets[0].value), _text(node.targets[0].slice)
    text = f"{name} = tuple({name}[:{at}]) + ({_text(node.value)},) + tuple({name}[{at} + 1:])"
    return place.replace_statement(text)


def _on_a_copy(place: Place) -> bool:
    name = getattr(getattr(place.node, "value", None), "id", "")
    return bool(name) and place.before(f"{name} = {name}.copy()")


def _plain_assignment(place: Place) -> bool:
    node = place.node
    if not isinstance(node, ast.AugAssign):
        return False
    left = copy.deepcopy(node.target)
    left.ctx = ast.Load()
    new = ast.Assign([node.target], ast.BinOp(left, node.op, node.value))
    return place.replace_statement([ast.copy_location(new, node)])


def _in_place(place: Place) -> bool:
    found = _method(place)
    if found is None or len(found[1].args) != 1:
        return False
    assert isinstance(found[1].func, ast.Attribute)
    sign = {"add_": "+", "sub_": "-", "mul_": "*", "div_": "/"}.get(found[1].func.attr)
    if sign is None:
        return False
    return place.replace_statement(f"{found[0]} = {found[0]} {sign} ({_text(found[1].args[0])})")


def _one_name(place: Place) -> bool:
    """Another name of a value becomes the value's own."""
    node = place.node
    node = node.func if isinstance(node, ast.Call) else node
    name = getattr(getattr(node, "value", None), "id", "")
    for statement in ast.walk(place.function):
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Name):
            target = statement.targets[0]
            if isinstance(target, ast.Name) and target.id == name:
                for use in ast.walk(place.function):
                    if isinstance(use, ast.Name) and use.id == name:
                        use.id = statement.value.id
                return True
    return False


def _partial(place: Place) -> bool:
    node = place.node
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    made = place.own.file.made(place.own.cls, node.func.attr)
    if not isinstance(made, ast.Call) or not made.args:
        return False
    new = ast.Call(made.args[0], [*made.args[1:], *node.args], [*made.keywords, *node.keywords])
    return place.put(copy.deepcopy(new))


def _lambda(place: Place) -> bool:
    node = place.node
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    made = place.own.file.made(place.own.cls, node.func.attr)
    if not isinstance(made, ast.Lambda):
        return False
    name = place.name()
    text = f"def {name}({_text(made.args)}):\n    return {_text(made.body)}"
    node.func = ast.Name(name, ast.Load())
    place.function.body = [*ast.parse(text).body, *place.function.body]
    return True


def _mask_assigned(place: Place) -> bool:
    node, operators = place.node, place.operators()
    if not isinstance(node, ast.Assign) or not operators:
        return False
    target, value = node.targets[0], node.value
    if not isinstance(target, ast.Subscript) or not isinstance(value, ast.Subscript):
        return False
    name, mask = _text(target.value), _text(target.slice)
    text = f"{name} = {operators}.where({mask}, {_text(value.value)}, {name})"
    return place.replace_statement(text)


_REWRITES: dict[str, _Rewrite] = {
    "comprehension.two_loops": _two_loops,
    "zip.strict": _without_keyword("strict"),
    "dict.unpacking": _dict_unpacking,
    "for.else": _loop_else,
    "while.else": _loop_else,
    "del": _deleted,
    "match": _match,
    "try": _try,
    "with": _with,
    "fstring.format": _fstring,
    "walrus": _walrus,
    "yield": _yield,
    "dict.pop": _dict_pop,
    "dict.or": _dict_or,
    "cells.reversed": _cells_reversed,
    "list.copy": _called_as("list({name})"),
    "list.reverse": _statement_as("{name} = {name}[::-1]", 0),
    "list.extend": _extended,
    "list.pop": _list_pop,
    "list.insert": _statement_as("{name} = {name}[:{0}] + [{1}] + {name}[{0}:]", 2),
    "deque": _deque,
    "reduce": _reduce,
    "list.reversed": _reversed_list,
    "cells.sequence_slice": _sequence_slice,
    "dict.call": _dict_call,
    "math.tensor": _operator(),
    "tensor.of_tensors": _operator("stack"),
    "self.new": _local_instead,
    "self.counter": _local_instead,
    "self.cache": _local_instead,
    "self.kept": _local_instead,
    "slice.in_list": _slice_in_list,
    "write.after_read": _on_a_copy,
    "while.tensor_counter": _plain_assignment,
    "augmented.alias": _plain_assignment,
    "in_place.result": _in_place,
    "view.write": _one_name,
    "list.alias": _one_name,
    "partial": _partial,
    "lambda.attribute": _lambda,
    "mask.assigned": _mask_assigned,
}
