"""The hand-written TOML, and the entries that it means.

One table per API; its key is the canonical name.  Beside the fields of an Entry:

    also = ["method", "in-place"]   the same facts for torch.Tensor.NAME and torch.Tensor.NAME_
    differs = "…"                   the difference in one sentence; makes the status "differs"
    missing = "compose"             the way out (replace, compose, custom, ask); status "missing"
    rewrite = "…" or ["…", "…"]     one template, or one for each overload
    value = "…"                     what replaces it without a call; "" where nothing does
    base = "composites.NAME"       what classes that derive from the layer derive from in a port
    factory = "cells.NAME"          what makes MindSpore's own layer by torch's arguments
    attributes = {weight = "gamma"} the names that this layer has for what torch's has
    integers = ["n", "*size", "dim="]  arguments that are integers: "*" several, too; "=" by name
    settings = {eps = "composites.NAME"}  what sets it after the layer is made; "" for a plain write
    instance = "…"                  the class for isinstance and annotations, if not `value`
    examples = ["…", {code = "…"}]  an example that needs nothing but code is a string
    in_place = {skip = [0]}         examples that torch does not run in place; gradient = false
    inputs = {x = "…"}              the entry's own inputs by name; else those of inputs.toml
    ties = false                    equal numbers and zeros differ, for a reason beside it
    look = true                     a rewrite that a person should look at
    setup = "NAME"                  statements of setups.toml that stand before each example

Text that is the same for many APIs stands once: `[group.NAME]` tables hold `apis` and the rest.
functions_in_place.toml names the functions (`torch.exp_`) that do what Tensor's method of the name
does to their first argument; their entries are made of the methods'.
"""

from __future__ import annotations

import ast
import dataclasses
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from isograd.knowledge.entry import Applicability, Entry, Example, Status, Way
from isograd.knowledge.rewrite import parameters_of
from isograd.knowledge.store import FOLDER

DATA = FOLDER / "data"
INPUTS_FILE = DATA / "inputs.toml"
SETUPS_FILE = DATA / "setups.toml"
FUNCTIONS_FILE = DATA / "functions_in_place.toml"
IN_PLACE = "in_place"
_WAYS = {way.name.lower(): way for way in Way}
_FIELDS = {
    "also", "aliases", "apis", "applicability", "arguments", "advice", "differs", "examples",
    "gradient", "compare", "hazard", "inputs", "look", "mint", "missing", "rewrite", "signature",
    "source", "target", "ties", "method_aliases", "in_place", "value", "instance",
    "factory", "base", "attributes", "settings", "integers",
}  # fmt: skip
_IN_PLACE_DIFFERENCE = (
    "On a CPU MindSpore's in-place methods return the right value and change nothing, or have no "
    "kernel: assign the new value to the name, or `copy_` it where other names share the tensor."
)
_NOT_EXECUTED = "Nothing is known of a difference, but this was not executed."
_CALL = re.compile(r"^\(?\s*((?:[A-Za-z_]\w*\.)+\w+)")
#: A call of a name with nothing but places.
_PLAIN_CALL = re.compile(
    r"^(?P<name>(?:ops|mint|composites)\.\w+)\((?P<places>(?:[, ]*\{[^{}]*\})+)\)$"
)
_PACKAGES = {
    "ops": "mindspore.ops", "nn": "mindspore.nn", "mint": "mindspore.mint", "ms": "mindspore",
    "optim": "mindspore.experimental.optim", "ds": "mindspore.dataset", "np": "numpy",
    "vision": "mindspore.dataset.vision", "amp": "mindspore.amp",
    "comm": "mindspore.communication.comm_func", "communication": "mindspore.communication",
    "initializer": "mindspore.common.initializer", "composites": "isograd composites",
    "transforms": "mindspore.dataset.transforms",
}  # fmt: skip


def read_entries(folder: Path = DATA) -> list[Entry]:
    """All entries of the TOML files, sorted by name.

    Raises ValueError for an unknown field and for an API that is described twice.
    """
    standard = tomllib.loads((folder / INPUTS_FILE.name).read_text(encoding="utf-8"))
    setups = tomllib.loads((folder / SETUPS_FILE.name).read_text(encoding="utf-8"))
    found: dict[str, Entry] = {}
    for path in sorted(folder.glob("*.toml")):
        if path.name in (INPUTS_FILE.name, SETUPS_FILE.name, FUNCTIONS_FILE.name):
            continue
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
        for name, given in _ungrouped(tables):
            table = _with_setup(given, setups)
            for entry in _entries(name, table, standard, path):
                if entry.api in found:
                    raise ValueError(f"{path.name}: {entry.api} is described twice.")
                found[entry.api] = entry
    found.update((entry.api, entry) for entry in _functions_in_place(folder, found))
    return [found[name] for name in sorted(found)]


def _functions_in_place(folder: Path, found: Mapping[str, Entry]) -> Iterator[Entry]:
    """The entries of functions that change their first argument as a method does its tensor."""
    path = folder / FUNCTIONS_FILE.name
    names = set(tomllib.loads(path.read_text(encoding="utf-8"))["apis"])
    for method in list(found.values()):
        own = [api.replace("torch.Tensor.", "torch.") for api in (method.api, *method.aliases)]
        own = [api for api in own if api in names]
        if own and _is_in_place(method.api):
            names.difference_update(own)
            yield _as_function(method, own)
    if names:
        raise ValueError(f"{path.name}: no method does what {sorted(names)} do.")


def _as_function(method: Entry, names: list[str]) -> Entry:
    """The function `torch.exp_` beside the method `torch.Tensor.exp_`."""
    templates = [text.replace("{self}", "{input}") for text in (method.rewrite, *method.others)]
    called, last = method.api.rpartition(".")[2], names[0]
    examples = [
        dataclasses.replace(
            example, code=example.code.replace(f"old.{called}()", f"{last}(old)")
            .replace(f"old.{called}(", f"{last}(old, "),
        )
        for example in method.examples
    ]  # fmt: skip
    return dataclasses.replace(
        method,
        api=names[0],
        aliases=tuple(names[1:]),
        signature=method.signature.replace("self", "input", 1),
        rewrite=templates[0],
        others=tuple(templates[1:]),
        examples=(*examples, *(_taken(example) for example in examples[:1])),
    )


def _taken(example: Example) -> Example:
    """An example of a function in place whose result is taken as well as its argument."""
    code = example.code.replace("\ntorch.", "\nnew = torch.").replace(
        "\nreturn old", "\nreturn new"
    )
    return dataclasses.replace(example, code=code)


def _with_setup(table: Mapping[str, Any], setups: Mapping[str, str]) -> Mapping[str, Any]:
    """A table whose examples begin with the statements that it names."""
    if "setup" not in table:
        return table
    before = setups[table["setup"]]
    rows = [{"code": row} if isinstance(row, str) else row for row in table["examples"]]
    rows = [{**row, "code": f"{before}\n{row['code']}"} for row in rows]
    return {**{key: part for key, part in table.items() if key != "setup"}, "examples": rows}


def _ungrouped(tables: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, table in tables.items():
        if name != "group":
            yield name, table
            continue
        for group in table.values():
            for api in group["apis"]:
                yield api, _filled(group, api)


def _filled(group: Mapping[str, Any], api: str) -> Mapping[str, Any]:
    """A group's fields for one of its APIs: NAME means the last part of its name."""
    name = api.rpartition(".")[2]

    def fill(value: Any) -> Any:
        if isinstance(value, str):
            return value.replace("NAME", name)
        if isinstance(value, list):
            return [fill(part) for part in value]
        if isinstance(value, dict):
            return {key: fill(part) for key, part in value.items()}
        return value

    return {key: fill(value) for key, value in group.items() if key != "apis"}


def _entries(
    api: str, table: Mapping[str, Any], standard: Mapping[str, str], path: Path
) -> Iterator[Entry]:
    if unknown := set(table) - _FIELDS:
        raise ValueError(f"{path.name}: {api} has unknown fields {sorted(unknown)}.")
    entry = _entry(api, table, standard)
    yield entry
    also = table.get("also", [])
    if not also:
        return
    aliases = table.get("method_aliases", [alias.rpartition(".")[2] for alias in entry.aliases])
    method = _as_method(entry, aliases)
    if "method" in also:
        yield method
    if "in-place" in also:
        yield _as_in_place(method, table.get("in_place", {}))


def _entry(api: str, table: Mapping[str, Any], standard: Mapping[str, str]) -> Entry:
    given = table.get("rewrite", "")
    templates = [given] if isinstance(given, str) else list(given)
    way = _WAYS[table["missing"]] if "missing" in table else None
    difference = table.get("differs", "")
    composed = templates[0].startswith("composites.")
    in_place = _is_in_place(api)
    if composed and way is None and not (difference or in_place):
        way = Way.COMPOSE
    if way is not None:
        status = Status.MISSING
    else:
        status = Status.DIFFERS if difference else Status.SUPPORTED
    if status is Status.SUPPORTED and not table.get("examples"):
        status, difference = Status.DIFFERS, _NOT_EXECUTED
    if in_place and way is None:
        status, difference = Status.DIFFERS, difference or _IN_PLACE_DIFFERENCE
    own = {**standard, **table.get("inputs", {})}
    defaults = {key: table[key] for key in ("gradient", "compare", "ties") if key in table}
    value = table["value"] if "value" in table else _value(api, templates[0], table)
    examples = [_example(row, own, defaults) for row in table.get("examples", ())]
    if value:
        examples += _by_value(api, examples)
    return Entry(
        api=api,
        status=status,
        target=table.get("target", "") or _target(templates[0], api),
        mint=table.get("mint", ""),
        aliases=tuple(table.get("aliases", ())),
        signature=table.get("signature", ""),
        rewrite=templates[0],
        others=tuple(templates[1:]),
        value=value,
        factory=table.get("factory", ""),
        base=table.get("base", ""),
        attributes=tuple(table.get("attributes", {}).items()),
        settings=tuple(table.get("settings", {}).items()),
        instance=table.get("instance", ""),
        arguments=tuple(table.get("arguments", {}).items()),
        integers=tuple(table.get("integers", ())),
        difference=difference,
        applicability=_applicability(table, templates[0], in_place),
        hazard=table.get("hazard", IN_PLACE if in_place else ""),
        way=way,
        advice=table.get("advice", ""),
        source=table.get("source", ""),
        examples=tuple(examples),
    )


def _is_in_place(api: str) -> bool:
    """Whether a method or a function changes its tensor: those of torch.nn.init have no tensor."""
    home, _, name = api.rpartition(".")
    is_changing = name.endswith("_") and not name.endswith("__")
    return is_changing and home in ("torch.Tensor", "torch", "torch.nn.functional")


def _applicability(table: Mapping[str, Any], template: str, in_place: bool) -> Applicability:
    if "applicability" in table:
        return Applicability(table["applicability"])
    if not template and not table.get("target"):
        return Applicability.HAND
    return Applicability.LOOK if table.get("look") or in_place else Applicability.SAFE


def _target(template: str, api: str) -> str:
    """MindSpore's public name of what the template calls."""
    if found := _CALL.match(template):
        first, _, rest = found.group(1).partition(".")
        if first == "composites" or first not in _PACKAGES:
            return ""
        return f"{_PACKAGES[first]}.{rest}"
    if found := re.match(r"^\{self\}\.(\w+)", template):
        owner = api.rpartition(".")[0]
        home = {"torch.Tensor": "mindspore.Tensor", "torch.nn.Module": "mindspore.nn.Cell"}
        functions = "mindspore.Tensor" if owner.count(".") == 0 else ""
        owned = home.get(owner, functions)
        return f"{owned}.{found.group(1)}" if owned else ""
    return ""


def _value(api: str, template: str, table: Mapping[str, Any]) -> str:
    """The function that a template calls with torch's first arguments in torch's order.

    It may mean torch's where that is passed around: an argument that it does not take is an
    error there, never another result.
    """
    found = _PLAIN_CALL.match(template)
    is_function = not (api.startswith("torch.Tensor.") or _is_in_place(api))
    if found is None or not table.get("signature") or not is_function:
        return ""
    places = [place.strip() for place in found["places"].split("{") if place.strip()]
    names = [place.strip(", }").partition("=")[::2] for place in places]
    order = [p.name for p in parameters_of(table["signature"]) if p.kind == "positional"]
    given = [key for key, _ in names]
    renamed = any(other and other != key for key, other in names)
    return found["name"] if given == order[: len(given)] and not renamed else ""


def _example(row: Any, inputs: Mapping[str, str], defaults: Mapping[str, Any]) -> Example:
    fields = {**defaults, **({"code": row} if isinstance(row, str) else row)}
    named = {**inputs, **fields.get("inputs", {})}
    used = {node.id for node in ast.walk(ast.parse(fields["code"])) if isinstance(node, ast.Name)}
    return Example(
        code=fields["code"],
        inputs=tuple((name, text) for name, text in named.items() if name in used),
        port=fields.get("port", ""),
        gradient=fields.get("gradient", fields.get("compare") != "distribution"),
        compare=fields.get("compare", "values"),
        ties=fields.get("ties", True),
    )


def _by_value(api: str, examples: list[Example]) -> list[Example]:
    """The examples that call an API, once more with its name held by a variable."""
    found = []
    for example in examples:
        call = f"{api}("
        if example.code.startswith(call) and not example.port and "\n" not in example.code:
            code = f"named = {api}\nreturn named({example.code[len(call) :]}"
            found.append(dataclasses.replace(example, code=code))
    return found


def _as_method(entry: Entry, aliases: list[str]) -> Entry:
    """The Tensor method that does the same as a function."""
    name = entry.api.rpartition(".")[2]
    first = re.match(r"\(\s*(\w+)", entry.signature)
    if first is None:
        raise ValueError(f"{entry.api}: a method needs a signature with a first parameter.")
    parameter = first.group(1)
    place = re.compile(rf"\{{{parameter}(?=[:}}])")
    rewrites = [place.sub("{self", text) for text in (entry.rewrite, *entry.others)]
    return Entry(
        api=f"torch.Tensor.{name}",
        status=entry.status,
        target=entry.target,
        mint=entry.mint,
        aliases=tuple(f"torch.Tensor.{alias}" for alias in aliases),
        signature=entry.signature.replace(parameter, "self", 1),
        rewrite=rewrites[0],
        others=tuple(rewrites[1:]),
        arguments=entry.arguments,
        integers=entry.integers,
        difference=entry.difference,
        applicability=entry.applicability,
        hazard=entry.hazard,
        way=entry.way,
        advice=entry.advice,
        source=entry.source,
        examples=tuple(_method_examples(entry.api, name, entry.examples)),
    )


def _method_examples(api: str, name: str, examples: tuple[Example, ...]) -> Iterator[Example]:
    for example in examples:
        code = _method_call(api, name, example.code)
        if code and not example.port:
            yield dataclasses.replace(example, code=code)


def _method_call(api: str, name: str, code: str) -> str:
    """`torch.add(x, y)` as `x.add(y)`; empty where the example is no plain call of the function."""
    try:
        tree = ast.parse(code, mode="eval").body
    except SyntaxError:
        return ""
    if not (isinstance(tree, ast.Call) and ast.unparse(tree.func) == api and tree.args):
        return ""
    first, *rest = tree.args
    if isinstance(first, (ast.Starred, ast.Constant)):
        return ""
    receiver = ast.unparse(first)
    if not isinstance(first, (ast.Name, ast.Call, ast.Attribute, ast.Subscript)):
        receiver = f"({receiver})"
    call = ast.Call(ast.Name("call"), rest, tree.keywords)
    return f"{receiver}.{name}{ast.unparse(call)[len('call') :]}"


def _as_in_place(method: Entry, settings: Mapping[str, Any]) -> Entry:
    """The in-place method beside a method: the same value, which the port assigns."""
    return Entry(
        api=f"{method.api}_",
        status=Status.DIFFERS,
        target=method.target,
        aliases=tuple(f"{alias}_" for alias in method.aliases),
        signature=method.signature,
        rewrite=method.rewrite,
        others=method.others,
        arguments=method.arguments,
        integers=method.integers,
        difference=_IN_PLACE_DIFFERENCE,
        applicability=Applicability.LOOK,
        hazard=IN_PLACE,
        source=method.source,
        examples=tuple(_in_place_examples(method, settings)),
    )


def _in_place_examples(method: Entry, settings: Mapping[str, Any]) -> Iterator[Example]:
    name = method.api.rpartition(".")[2]
    for number, example in enumerate(method.examples):
        if number in settings.get("skip", ()):
            continue
        head, found, tail = example.code.partition(f".{name}(")
        if found and head.isidentifier():
            gradient = example.gradient and settings.get("gradient", True)
            code = f"old = {head}.clone()\nold.{name}_({tail}\nreturn old"
            yield dataclasses.replace(example, code=code, port="", gradient=gradient)
