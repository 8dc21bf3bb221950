"""ATen's operators in MindSpore's terms, by the table `aten.toml` and the knowledge.

A row of the table names the API of torch that an operator is, and how its arguments are called
there; the knowledge rewrites the call as it would in a source.  Where no API fits, the row has a
template of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from isograd.knowledge import load_knowledge
from isograd.knowledge.entry import Applicability, Entry, Status
from isograd.knowledge.rewrite import Call, NotRewritten, Rewritten, parameters_of, rewrite

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_TABLE = Path(__file__).with_name("aten.toml")
#: Arguments that say where and how a tensor lies, which no result depends on.
_PLACEMENT = frozenset(
    "device layout pin_memory memory_format non_blocking copy cudnn_enable cudnn_enabled".split()
)
#: The beginnings of ATen's names, and the packages of torch whose functions they are.
_PACKAGES = (
    ("linalg_", "linalg."),
    ("special_", "special."),
    ("fft_", "fft."),
    ("", ""),
    ("", "nn.functional."),
    ("", "Tensor."),
)


@dataclass(frozen=True)
class Operator:
    """How one operator is written; examples: its arguments, as source over `isograd`'s draws."""

    target: str
    api: str = ""
    renamed: Mapping[str, str] | None = None
    dropped: frozenset[str] = frozenset()
    template: str = ""
    signature: str = ""
    examples: tuple[str, ...] = ()
    gradient: bool = True


@lru_cache(maxsize=1)
def operators() -> dict[str, Operator]:
    """The table by operator."""
    table = tomllib.loads(_TABLE.read_text(encoding="utf-8"))
    found = {}
    for target, row in table.items():
        examples = row.get("example", [])
        found[target] = Operator(
            target,
            row.get("api", ""),
            row.get("renamed", {}),
            frozenset(row.get("dropped", ())),
            row.get("template", ""),
            row.get("signature", ""),
            tuple([examples] if isinstance(examples, str) else examples),
            row.get("gradient", True),
        )
    return found


def functional(target: str) -> str:
    """The operator without an effect that gives the same value: `aten.add_.Tensor` is an addition.

    What is stored back is the caller's business.
    """
    packet, _, overload = target.rpartition(".")
    if packet.endswith("_") and not packet.endswith("__") and target not in operators():
        return f"{packet[:-1]}.{overload}"
    return target


@lru_cache(maxsize=4096)
def row_of(target: str) -> Operator | None:
    """The table's row of the operator, or of the one without its effect.

    An operator that is not in the table is the API of its name, if the knowledge may rewrite that
    without a person's look and it was executed.
    """
    meant = functional(target)
    known = operators().get(meant)
    if known is not None or not meant.startswith("aten."):
        return known
    name = meant.split(".")[1]
    for start, package in _PACKAGES:
        if name.startswith(start):
            api = f"torch.{package}{name[len(start) :]}"
            entry = load_knowledge().find(api)
            if entry is not None and _is_sure(entry):
                return Operator(target, api)
    return None


def _is_sure(entry: Entry) -> bool:
    executed = entry.verified is not None and bool(entry.verified.forward)
    return executed and entry.applicability is Applicability.SAFE


def is_known(target: str) -> bool:
    """Whether the operator, or the one without its effect, can be written."""
    return row_of(target) is not None


#: Casts to these dtypes have no gradient in torch; MindSpore 2.10 sends it through.
_CASTS = frozenset(("aten._to_copy.default", "aten.to.dtype"))
_WHOLE = frozenset(f"ms.{name}" for name in "bool_ uint8 int8 int16 int32 int64".split())


def written(target: str, arguments: Mapping[str, str]) -> str | NotRewritten:
    """The expression of an operator; arguments: their sources by the names of ATen's schema."""
    row = row_of(target)
    if row is None:
        return NotRewritten(f"{target} is not in the table of operators")
    given = {
        name: _word(name, source)
        for name, source in arguments.items()
        if name not in row.dropped and name not in _PLACEMENT
    }
    if target in _CASTS and given.get("dtype", "") in _WHOLE:
        given["self"] = f"ops.stop_gradient({given['self']})"
    if row.template:
        entry = Entry(
            row.target, Status.SUPPORTED, signature=row.signature or "(self)", rewrite=row.template
        )
    else:
        known = load_knowledge().find(row.api)
        if known is None:
            return NotRewritten(f"the knowledge has no {row.api}")
        entry = known
    answer = rewrite(entry, _call(entry, row, given))
    return answer.code if isinstance(answer, Rewritten) else answer


def _word(name: str, source: str) -> str:
    """An argument's source: ATen counts the ways to reduce a loss, which have names in torch."""
    is_counted = name == "reduction" and source in ("0", "1", "2")
    return repr(("none", "mean", "sum")[int(source)]) if is_counted else source


def _call(entry: Entry, row: Operator, given: Mapping[str, str]) -> Call:
    """The call by keywords, with a receiver where the API is a method."""
    names = [p.name for p in parameters_of(entry.signature or "()")]
    renamed = dict(row.renamed or {})
    first = names[0] if names else "self"
    keywords = {}
    receiver = ""
    for name, source in given.items():
        meant = renamed.get(name, name)
        if name == "self" and name not in renamed:
            meant = "self" if "self" in names else first
        if meant == "self" and first == "self":
            receiver = source
        else:
            keywords[meant] = source
    return Call((), keywords, receiver)
