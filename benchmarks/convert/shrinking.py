"""Builds a network with some arguments inside it replaced: shallower, by data of builders.toml.

Original and port have the same names, so one text serves both sides.
"""

import functools
import importlib
import inspect


def build(module: str, name: str, arguments: dict, replaced: dict) -> object:
    """The network of a builder; replaced: "package.module:callable" to arguments by name."""
    for place, given in replaced.items():
        _replace(place, given)
    target = importlib.import_module(module)
    for part in name.split("."):
        target = getattr(target, part)
    return target(**arguments)


def _replace(place: str, given: dict) -> None:
    module, _, dotted = place.partition(":")
    owner = importlib.import_module(module)
    *path, last = dotted.split(".")
    for part in path:
        owner = getattr(owner, part)
    found = inspect.getattr_static(owner, last)
    function = found.__func__ if isinstance(found, (classmethod, staticmethod)) else found
    signature = inspect.signature(function)

    @functools.wraps(function)
    def replacing(*args: object, **kwargs: object) -> object:
        bound = signature.bind(*args, **kwargs)
        bound.arguments.update(given)
        return function(*bound.args, **bound.kwargs)

    setattr(owner, last, classmethod(replacing) if isinstance(found, classmethod) else replacing)
