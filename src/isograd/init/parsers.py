"""An argparse parser: the defaults of its arguments are the values that a program runs with."""

from __future__ import annotations

from isograd.init.values import Known, Parser, Parts, Value


def method(
    owner: Parser, name: str, arguments: tuple[list[Value], dict[str, Value]]
) -> Value | None:
    """A method of a parser; the parser counts as its namespace, too."""
    if name == "add_argument":
        _add_argument(owner, arguments)
        return Value()
    if name in ("parse_args", "parse_known_args"):
        return owner if name == "parse_args" else Parts(None, [owner, Value()])
    return None


def _add_argument(owner: Parser, arguments: tuple[list[Value], dict[str, Value]]) -> None:
    words = [v.value for v in arguments[0] if isinstance(v, Known) and isinstance(v.value, str)]
    chosen = next((w for w in words if w.startswith("--")), words[0] if words else "")
    name = chosen.lstrip("-").replace("-", "_")
    given = arguments[1]
    if "dest" in given and isinstance(given["dest"], Known):
        name = str(given["dest"].value)
    default = given.get("default")
    action = given.get("action")
    if default is None and isinstance(action, Known):
        default = {"store_true": Known("False", False), "store_false": Known("True", True)}.get(
            str(action.value)
        )
    owner.defaults[name] = Known("None", None) if default is None else default
