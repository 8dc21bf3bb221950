"""Classes of a project by what is derived from them."""

from __future__ import annotations

from collections.abc import Iterable

from isograd.scan.values import ClassInfo


def mixed_into_modules(classes: Iterable[ClassInfo]) -> frozenset[ClassInfo]:
    """Those that are no modules themselves and are bases of some."""
    found: set[ClassInfo] = set()
    waiting = [info for info in classes if info.is_module]
    while waiting:
        for base in waiting.pop().bases:
            if isinstance(base, ClassInfo) and base not in found:
                waiting.append(base)
                if not base.is_module and not base.root:
                    found.add(base)
    return frozenset(found)


def has_own_train(info: ClassInfo) -> bool:
    """Whether a class, or one of the project that it is derived from, has a `train`."""
    bases = [base for base in info.bases if isinstance(base, ClassInfo)]
    return "train" in info.methods or any(map(has_own_train, bases))


def with_modes(classes: Iterable[ClassInfo]) -> frozenset[ClassInfo]:
    """Those from which others with a `train` of their own are derived."""
    found: set[ClassInfo] = set()
    waiting = [info for info in classes if info.is_module and "train" in info.methods]
    while waiting:
        for base in waiting.pop().bases:
            if isinstance(base, ClassInfo) and base not in found:
                found.add(base)
                waiting.append(base)
    return frozenset(found)
