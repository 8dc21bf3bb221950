"""Prefixes that wrappers put before the names of a network, and the names without them."""

from __future__ import annotations

from collections.abc import Sequence

#: Added by torch.compile, FSDP, activation checkpointing and Lightning Fabric, at any depth.
_ANYWHERE = frozenset(
    {"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "_forward_module"}
)
#: Added by DataParallel and DistributedDataParallel before every name.
_FIRST = "module."


def without_wrappers(names: Sequence[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Each name without the wrappers' prefixes, and the prefixes that were left out.

    Where two names would become one, all stay as they are.
    """
    left: list[str] = []
    plain = {}
    for name in names:
        parts = name.split(".")
        kept = [part for part in parts if part not in _ANYWHERE]
        left += [part for part in parts if part in _ANYWHERE]
        plain[name] = ".".join(kept)
    if plain and all(name.startswith(_FIRST) for name in plain.values()):
        left.append(_FIRST.rstrip("."))
        plain = {old: name.removeprefix(_FIRST) for old, name in plain.items()}
    if len(set(plain.values())) != len(plain) or not all(plain.values()):
        return {name: name for name in names}, ()
    return plain, tuple(dict.fromkeys(left))
