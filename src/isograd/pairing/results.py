"""What pairing answers: pairs, and everything that has no partner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from isograd.pairing.transforms import Transform
from isograd.tensors import Array

How = Literal["rename", "name", "structure", "value"]
ModuleEvidence = Literal["root", "parameters", "name", "order"]


class Values(Protocol):
    """Looks up the values of a parameter by the side and its name."""

    def __call__(self, side: Literal["reference", "port"], name: str, /) -> Array:
        """The values of one parameter."""
        ...


@dataclass(frozen=True)
class ParameterPair:
    """Parameters that are one; several on one side where the other fuses them.

    ambiguous_with: parameters of the port that could be meant as well.
    may_be_transposed: a square matrix that one side may store the other way.
    untied: the reference shares this parameter, the port keeps a copy of its own.
    tied_only_in_port: the port shares a parameter that the reference keeps apart.
    """

    reference: tuple[str, ...]
    port: tuple[str, ...]
    transform: Transform
    how: How
    ambiguous_with: tuple[str, ...] = ()
    may_be_transposed: bool = False
    untied: bool = False
    tied_only_in_port: bool = False


@dataclass(frozen=True)
class ParameterPairing:
    """How the parameters of two networks correspond.

    unpaired: parameters and statistics without a partner; each is a gap.
    unpaired_buffers: constants that the constructor derives, and frozen parameters of the port.
    shape_conflicts: unpaired parameters with the same name whose shapes contradict each other.
    alone_by_convention: what the other framework does not keep, such as num_batches_tracked.
    """

    pairs: tuple[ParameterPair, ...]
    unpaired_reference: tuple[str, ...] = ()
    unpaired_port: tuple[str, ...] = ()
    unpaired_buffers_reference: tuple[str, ...] = ()
    unpaired_buffers_port: tuple[str, ...] = ()
    shape_conflicts: tuple[tuple[str, str], ...] = ()
    alone_by_convention: tuple[str, ...] = ()

    @property
    def ambiguous(self) -> tuple[tuple[ParameterPair, ...], ...]:
        """Groups of pairs whose partners could be exchanged."""
        groups: list[tuple[set[str], list[ParameterPair]]] = []
        for pair in self.pairs:
            if not pair.ambiguous_with:
                continue
            names = {*pair.port, *pair.ambiguous_with}
            members = [pair]
            apart = []
            for group in groups:
                if group[0] & names:
                    names |= group[0]
                    members = group[1] + members
                else:
                    apart.append(group)
            groups = [*apart, (names, members)]
        return tuple(tuple(members) for _, members in groups)

    @property
    def is_complete(self) -> bool:
        """Whether every parameter has one sure partner."""
        return not (self.unpaired_reference or self.unpaired_port or any(self.ambiguous))


@dataclass(frozen=True)
class ModulePair:
    """Modules that are one, and what says so."""

    reference: str
    port: str
    how: ModuleEvidence


@dataclass(frozen=True)
class ModulePairing:
    """How the modules of two networks correspond.

    unpaired: modules that hold parameters and have no partner.
    parameterless: modules without parameters or partner, functional in the other network.
    Modules within a layer of the library are its own business and not listed.
    """

    pairs: tuple[ModulePair, ...]
    unpaired_reference: tuple[str, ...] = ()
    unpaired_port: tuple[str, ...] = ()
    parameterless_reference: tuple[str, ...] = ()
    parameterless_port: tuple[str, ...] = ()
