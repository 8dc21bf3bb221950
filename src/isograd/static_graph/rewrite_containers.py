"""Lists, dictionaries and sequences of cells written otherwise, where that is mechanical."""

from __future__ import annotations

import ast

from isograd.static_graph.place import Place, Rewrite, written


def method(place: Place) -> tuple[str, ast.Call] | None:
    """The name of a value and the method's call on it."""
    node = place.node
    if isinstance(node, ast.Expr):
        node = node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if isinstance(node.func.value, ast.Name):
            return node.func.value.id, node
    return None


def dict_pop(place: Place) -> bool:
    found = method(place)
    if found is None or len(found[1].args) != 1:
        return False
    name, key, made = found[0], written(found[1].args[0]), place.name()
    lines = f"{made} = {name}[{key}]\n"
    lines += f"{name} = {{k: v for k, v in {name}.items() if k != {key}}}"
    return place.put(made) and place.before(lines)


def dict_or(place: Place) -> bool:
    if not isinstance(place.node, ast.BinOp):
        return False
    name = place.name()
    lines = f"{name} = {{}}\n{name}.update({written(place.node.left)})\n"
    lines += f"{name}.update({written(place.node.right)})"
    return place.put(name) and place.before(lines)


def cells_reversed(place: Place) -> bool:
    statement = place.statement()
    if not isinstance(statement, ast.For) or statement.iter is not place.node:
        return False
    assert isinstance(place.node, ast.Call)
    cells, name = written(place.node.args[0]), place.name()
    statement.iter = ast.parse(f"range(len({cells}) - 1, -1, -1)", mode="eval").body
    first = ast.parse(f"{written(statement.target)} = {cells}[{name}]").body
    statement.target = ast.Name(name, ast.Store())
    statement.body = [*first, *statement.body]
    return True


def called_as(text: str) -> Rewrite:
    """A method's call as another expression; {name} is the value."""

    def rewrite(place: Place) -> bool:
        found = method(place)
        return found is not None and place.put(text.format(name=found[0]))

    return rewrite


def statement_as(text: str, count: int) -> Rewrite:
    """A method's call as another statement; {name} is the value, {0} and {1} the arguments."""

    def rewrite(place: Place) -> bool:
        found = method(place)
        if found is None or len(found[1].args) != count:
            return False
        words = [written(argument) for argument in found[1].args]
        return place.replace_statement(text.format(*words, name=found[0]))

    return rewrite


def extended(place: Place) -> bool:
    found = method(place)
    if found is None or len(found[1].args) != 1:
        return False
    given = found[1].args[0]
    words = (
        written(given) if isinstance(given, (ast.List, ast.ListComp)) else f"list({written(given)})"
    )
    return place.replace_statement(f"{found[0]} = {found[0]} + {words}")


def list_pop(place: Place) -> bool:
    found = method(place)
    if found is None:
        return False
    name, made = found[0], place.name()
    at = written(found[1].args[0]) if found[1].args else "-1"
    rest = {"-1": f"{name}[:-1]", "0": f"{name}[1:]"}.get(at)
    if rest is None:
        return False
    return place.put(made) and place.before(f"{made} = {name}[{at}]\n{name} = {rest}")


def deque(place: Place) -> bool:
    node = place.node
    if not isinstance(node, ast.Call) or len(node.args) != 1:
        return False
    statement = place.statement()
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return False
    name = statement.targets[0].id
    if not place.put(f"list({written(node.args[0])})"):
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
        if not list_pop(inner):
            return False
    return False


def reduce(place: Place) -> bool:
    node = place.node
    if not isinstance(node, ast.Call) or len(node.args) != 2:
        return False
    function, values = map(written, node.args)
    made, all_values, one = place.name(), place.name(), place.name()
    lines = f"{all_values} = {values}\n{made} = {all_values}[0]\n"
    lines += f"for {one} in {all_values}[1:]:\n    {made} = {function}({made}, {one})"
    return place.put(made) and place.before(lines)


def reversed_list(place: Place) -> bool:
    node = place.node
    return isinstance(node, ast.Call) and place.put(f"{written(node.args[0])}[::-1]")


def sequence_slice(place: Place) -> bool:
    node = place.node
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Subscript):
        return False
    part, cells = node.func.slice, written(node.func.value)
    if not isinstance(part, ast.Slice) or part.step is not None or len(node.args) != 1:
        return False
    first = written(part.lower) if part.lower else "0"
    last = written(part.upper) if part.upper else f"len({cells})"
    if first.startswith("-") or last.startswith("-"):
        first, last = (f"len({cells}) {w}" if w.startswith("-") else w for w in (first, last))
    made, at = place.name(), place.name()
    lines = f"{made} = {written(node.args[0])}\nfor {at} in range({first}, {last}):\n"
    lines += f"    {made} = {cells}[{at}]({made})"
    return place.put(made) and place.before(lines)


def dict_call(place: Place) -> bool:
    node = place.node
    if not isinstance(node, ast.Call) or len(node.args) > 1:
        return False
    if not node.args:
        parts = [f"{k.arg!r}: {written(k.value)}" for k in node.keywords if k.arg]
        return place.put("{" + ", ".join(parts) + "}")
    if node.keywords:
        return False
    given = written(node.args[0])
    is_pairs = isinstance(node.args[0], (ast.Call, ast.List, ast.ListComp, ast.GeneratorExp))
    return place.put(f"{{k: v for k, v in {given}{'' if is_pairs else '.items()'}}}")
