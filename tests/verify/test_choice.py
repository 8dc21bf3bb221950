"""Messages about the module that a person names."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from isograd.errors import UsageError
from isograd.frameworks.base import CallInfo, ModuleInfo, Structure
from isograd.model import ListedModule
from isograd.verify.choice import called_modules, require_module, require_partner
from isograd.verify.units import Unit

CALLS = (
    CallInfo("", 0, None, (), ()),
    CallInfo("blocks.0", 0, 0, (), ()),
    CallInfo("blocks.0.norm", 0, 1, (), ()),
    CallInfo("blocks.0.norm", 1, 1, (), ()),
)
NAMES = ("", "blocks", "blocks.0", "blocks.0.norm", "unused")


@pytest.fixture
def session() -> Any:
    modules = tuple(ModuleInfo(name, "Kind", True) for name in NAMES)
    return SimpleNamespace(reference_structure=Structure("", modules, (), CALLS))


def test_called_modules_are_listed_with_the_root_by_its_name(session: Any) -> None:
    assert called_modules(session) == (
        ListedModule("network", "Kind", 1),
        ListedModule("blocks.0", "Kind", 1),
        ListedModule("blocks.0.norm", "Kind", 2),
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "norm",
            "the reference has no module 'norm'. Near matches: blocks.0.norm. List all with "
            "`isograd diagnose CASE.toml --list`.",
        ),
        (
            "blocks",
            "the reference never calls its module 'blocks'. Diagnose one of its parts: blocks.0, "
            "blocks.0.norm.",
        ),
        (
            "unused",
            "the reference never calls its module 'unused'. List all with "
            "`isograd diagnose CASE.toml --list`.",
        ),
    ],
)
def test_a_module_that_cannot_be_diagnosed(name: str, message: str, session: Any) -> None:
    with pytest.raises(UsageError) as caught:
        require_module(session, name)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("units", "name", "message"),
    [
        (
            [Unit(0, 0, ())],
            "blocks.0.norm",
            "the port has no partner of the reference's module 'blocks.0.norm' to compare it with. "
            "Diagnose the module around it: --module network.",
        ),
        (
            [Unit(0, 0, ()), Unit(1, 1, ())],
            "blocks.0.norm",
            "the port has no partner of the reference's module 'blocks.0.norm' to compare it with. "
            "Diagnose the module around it: --module blocks.0.",
        ),
        (
            [],
            "",
            "the port has no partner of the reference's module as a whole to compare it with. "
            "Name its parameters under [weights] rename in the case.",
        ),
        (
            [Unit(0, 0, ())],
            "head",
            "the reference does not call its module 'head' in eval mode. Choose the other --mode, "
            "or a module that this mode calls.",
        ),
    ],
)
def test_a_module_without_a_partner(units: list[Unit], name: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        require_partner(CALLS, units, name, "eval")
    assert str(caught.value) == message


def test_what_can_be_diagnosed_passes(session: Any) -> None:
    """The checks return nothing where there is nothing to refuse."""
    assert require_module(session, "blocks.0") is None  # type: ignore[func-returns-value]
    assert require_module(session, "") is None  # type: ignore[func-returns-value]
    units = [Unit(1, 1, ())]
    assert require_partner(CALLS, units, "blocks.0", "train") is None  # type: ignore[func-returns-value]
