"""Library modules of a fake port, built otherwise for the time of one pass."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from isograd.errors import UserCodeError
from isograd.frameworks.base import PortFix
from isograd.frameworks.fake.network import BatchNorm, Dropout, Module

#: Attributes of modules by torch's function and argument.
_SETTINGS: dict[tuple[str, str], tuple[type[Module], str]] = {
    ("batch_norm", "eps"): (BatchNorm, "eps"),
    ("batch_norm", "momentum"): (BatchNorm, "momentum"),
    ("dropout", "p"): (Dropout, "probability"),
}


def setting_of(module: Module | None, function: str, argument: str, value: Any) -> dict[str, Any]:
    """The setting by the module's own name; empty where the module has none or has it already."""
    kind, attribute = _SETTINGS.get((function, argument), (None, ""))
    if kind is None or not isinstance(module, kind) or getattr(module, attribute) == value:
        return {}
    return {attribute: value}


@contextlib.contextmanager
def fixed(modules: Mapping[str, Module], fixes: tuple[PortFix, ...]) -> Iterator[None]:
    """Make the fixes until the end of the block.

    Raises `UserCodeError` for one that the fake cannot make.
    """
    for fix in fixes:
        module = modules.get(fix.module)
        if (
            fix.kind != "rebuild"
            or module is None
            or not fix.arguments.keys() <= vars(module).keys()
        ):
            raise UserCodeError(
                f"the fake cannot make the fix {fix}",
                "Only settings of its own modules can be changed.",
            )
    changed = [(modules[fix.module], dict(fix.arguments)) for fix in fixes]
    before = [{name: vars(module)[name] for name in given} for module, given in changed]
    try:
        for module, given in changed:
            vars(module).update(given)
        yield
    finally:
        for (module, _), given in reversed(list(zip(changed, before, strict=True))):
            vars(module).update(given)
