"""Constructs written otherwise, where that is mechanical: definitions in, definitions out.

A rewrite is a hypothesis: it is compiled and compared with the eager run of the code as it is, so
one that changes what is computed proves nothing and is dropped.
"""

from __future__ import annotations

import ast
import copy

from isograd.static_graph.place import Place, Rewrite, written
from isograd.static_graph.rewrite_containers import (
    called_as,
    cells_reversed,
    deque,
    dict_call,
    dict_or,
    dict_pop,
    extended,
    list_pop,
    method,
    reduce,
    reversed_list,
    sequence_slice,
    statement_as,
)
from isograd.static_graph.scope import FileScope, is_self_attribute
from isograd.static_graph.values import Locals


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


def _two_loops(place: Place) -> bool:
    node = place.node
    if not isinstance(node, (ast.ListComp, ast.GeneratorExp)) or len(node.generators) < 2:
        return False
    name = place.name()
    lines, indent = [f"{name} = []"], ""
    for loop in node.generators:
        lines.append(f"{indent}for {written(loop.target)} in {written(loop.iter)}:")
        indent += "    "
        for test in loop.ifs:
            lines.append(f"{indent}if {written(test)}:")
            indent += "    "
    lines.append(f"{indent}{name}.append({written(node.elt)})")
    return place.put(name) and place.before("\n".join(lines))


def _without_keyword(word: str) -> Rewrite:
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
            lines.append(f"{name}.update({written(value)})")
        else:
            lines.append(f"{name}[{written(key)}] = {written(value)}")
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
            name, at = target.value.id, written(target.slice)
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
            subject = written(node.subject)  # type: ignore[attr-defined]
            test = ast.parse(f"{subject} == {written(case.pattern.value)}", mode="eval").body
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
                    values.append(written(part.value))
            place.node = node
            return place.put(f"{text!r}.format({', '.join(values)})")
    return False


def _walrus(place: Place) -> bool:
    node = place.node
    if not isinstance(node, ast.NamedExpr):
        return False
    name = node.target.id
    return place.put(name) and place.before(f"{name} = {written(node.value)}")


def _yield(place: Place) -> bool:
    name = place.name()
    for node in ast.walk(place.function):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield) and node.value.value:
            node.value = ast.parse(f"{name}.append({written(node.value.value)})", mode="eval").body
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.YieldFrom):
            node.value = ast.parse(f"{name}.extend({written(node.value.value)})", mode="eval").body
        elif isinstance(node, ast.Return):
            return False
    body = place.function.body
    place.function.body = [*ast.parse(f"{name} = []").body, *body]
    place.function.body += ast.parse(f"return {name}").body
    return True


def _operator(name: str | None = None) -> Rewrite:
    """The function of mindspore.ops of this name, or of the same name."""

    def rewrite(place: Place) -> bool:
        node, operators = place.node, place.operators()
        if not isinstance(node, ast.Call) or not operators:
            return False
        last = name or place.own.file.qualified(node.func).rpartition(".")[2]
        given = node.args[:1] if name == "stack" else node.args
        return place.put(f"{operators}.{last}({', '.join(map(written, given))})")

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
    name, at = written(node.targets[0].value), written(node.targets[0].slice)
    text = f"{name} = tuple({name}[:{at}]) + ({written(node.value)},) + tuple({name}[{at} + 1:])"
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
    found = method(place)
    if found is None or len(found[1].args) != 1:
        return False
    assert isinstance(found[1].func, ast.Attribute)
    sign = {"add_": "+", "sub_": "-", "mul_": "*", "div_": "/"}.get(found[1].func.attr)
    if sign is None:
        return False
    return place.replace_statement(f"{found[0]} = {found[0]} {sign} ({written(found[1].args[0])})")


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
    text = f"def {name}({written(made.args)}):\n    return {written(made.body)}"
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
    name, mask = written(target.value), written(target.slice)
    text = f"{name} = {operators}.where({mask}, {written(value.value)}, {name})"
    return place.replace_statement(text)


_REWRITES: dict[str, Rewrite] = {
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
    "dict.pop": dict_pop,
    "dict.or": dict_or,
    "cells.reversed": cells_reversed,
    "list.copy": called_as("list({name})"),
    "list.reverse": statement_as("{name} = {name}[::-1]", 0),
    "list.extend": extended,
    "list.pop": list_pop,
    "list.insert": statement_as("{name} = {name}[:{0}] + [{1}] + {name}[{0}:]", 2),
    "deque": deque,
    "reduce": reduce,
    "list.reversed": reversed_list,
    "cells.sequence_slice": sequence_slice,
    "dict.call": dict_call,
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
