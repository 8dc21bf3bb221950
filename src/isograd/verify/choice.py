"""The module that a person names: whether it exists, is called, and has a partner."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence

from isograd.errors import UsageError
from isograd.frameworks.base import CallInfo
from isograd.model import ListedModule
from isograd.verify.session import Session
from isograd.verify.units import Unit

#: The names with a meaning of their own: the loss alone, and the root module's own code.
LOSS = "loss"
NETWORK = "network"
_MOST_NAMES = 5


def called_modules(session: Session) -> tuple[ListedModule, ...]:
    """The modules of the reference that a pass calls, in their order."""
    structure = session.reference_structure
    counts = Counter(call.module for call in structure.calls)
    return tuple(
        ListedModule(m.name or NETWORK, m.kind, counts[m.name])
        for m in structure.modules
        if counts[m.name]
    )


def require_module(session: Session, name: str) -> None:
    """Raise `UsageError` unless the reference has a module of this name and calls it."""
    structure = session.reference_structure
    names = [m.name for m in structure.modules]
    called = {call.module for call in structure.calls}
    if name not in names:
        raise UsageError(f"the reference has no module {name!r}", _near(name, sorted(called)))
    if name in called:
        return
    parts = [n for n in names if n in called and n.startswith(f"{name}.")]
    advice = f"Diagnose one of its parts: {_some(parts)}." if parts else _near(name, sorted(called))
    raise UsageError(f"the reference never calls its module {name!r}", advice)


def require_partner(calls: Sequence[CallInfo], units: Sequence[Unit], name: str, mode: str) -> None:
    """Raise `UsageError` unless a call of this module has a partner in the port."""
    paired = {calls[unit.reference].module for unit in units}
    if name in paired:
        return
    shown = repr(name) if name else "as a whole"
    own = [index for index, call in enumerate(calls) if call.module == name]
    if not own:
        raise UsageError(
            f"the reference does not call its module {shown} in {mode} mode",
            "Choose the other --mode, or a module that this mode calls.",
        )
    around = _around(calls, paired, own[0])
    advice = f"Diagnose the module around it: --module {around or NETWORK}."
    raise UsageError(
        f"the port has no partner of the reference's module {shown} to compare it with",
        advice if around is not None else "Name its parameters under [weights] rename in the case.",
    )


def _around(calls: Sequence[CallInfo], paired: set[str], call: int) -> str | None:
    parent = calls[call].parent
    while parent is not None:
        if calls[parent].module in paired:
            return calls[parent].module
        parent = calls[parent].parent
    return None


def _near(name: str, names: Sequence[str]) -> str:
    """Names like this one: by letters, and those that end alike."""
    known = [n for n in names if n]
    last = name.rpartition(".")[2]
    found = difflib.get_close_matches(name, known, _MOST_NAMES)
    found += [n for n in known if n.rpartition(".")[2] == last]
    near = list(dict.fromkeys(found))
    advice = "List all with `isograd diagnose CASE.toml --list`."
    return f"Near matches: {_some(near)}. {advice}" if near else advice


def _some(names: Sequence[str]) -> str:
    more = "" if len(names) <= _MOST_NAMES else f" and {len(names) - _MOST_NAMES} more"
    return ", ".join(names[:_MOST_NAMES]) + more
