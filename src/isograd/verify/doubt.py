"""Settling by experiment what names, shapes and order leave open about the pairing.

A square matrix of a user's own module may be stored transposed, and alike layers may have been
given in another order.  Each possibility is tried on the smallest unit that holds the parameters:
the one under which the port computes what the reference computes is the right one.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence

from isograd.frameworks.base import Tensors
from isograd.model import Stage
from isograd.noise.envelope import ISOLATED_THRESHOLD
from isograd.pairing.calls import pair_calls
from isograd.pairing.evidence import closeness
from isograd.pairing.modules import pair_modules
from isograd.pairing.results import ParameterPair, ParameterPairing
from isograd.pairing.transforms import Identity, Transform, Transpose
from isograd.verify.replay import Replayer
from isograd.verify.session import Session
from isograd.verify.units import enclosing, make_unit
from isograd.worker.protocols import Networks, Passes

_MOST_TOGETHER = 3
_MOST_TRIALS = 200

Change = tuple[tuple[ParameterPair, ParameterPair], ...]


def settle_pairing(session: Session, state: Tensors, mode: str) -> list[str]:
    """Try the open possibilities; the session's pairing is changed where one is confirmed.

    Returns a sentence for each change and for each confirmed guess.

    state: by name, the shapes and dtypes of the reference's parameters and buffers.
    """
    transposable = _transposable(session.pairing)
    exchangeable = [list(group) for group in session.pairing.ambiguous]
    if not transposable and not exchangeable:
        return []
    session.reference.ask(Networks.load_state, state)
    session.port.ask(Networks.load_state, session.transfer(state))
    request = session.pass_request(mode, record=True)
    session.reference.ask(Passes.forward, request)
    session.port.ask(Passes.forward, request)
    trial = _Trial(session, state, mode)
    notes: list[str] = []
    for group in [*trial.by_unit(transposable), *exchangeable]:
        notes += trial.settle(group)
    return notes


def _transposable(pairing: ParameterPairing) -> list[ParameterPair]:
    return [p for p in pairing.pairs if p.may_be_transposed and _is_plain(p.transform)]


def _is_plain(transform: Transform) -> bool:
    return isinstance(transform, (Identity, Transpose))


def _turned(transform: Transform) -> Transform:
    """The other way in which a square matrix may be stored."""
    return Identity() if isinstance(transform, Transpose) else Transpose((1, 0))


class _Trial:
    """Tries changes of the pairing on the unit that holds the parameters."""

    def __init__(self, session: Session, state: Tensors, mode: str) -> None:
        self._session = session
        self._state = state
        self._mode = mode
        self._reference = session.reference.ask(Passes.calls)
        self._port = session.port.ask(Passes.calls)

    def by_unit(self, pairs: Sequence[ParameterPair]) -> list[list[ParameterPair]]:
        """The pairs, together where only one unit can tell."""
        partner = self._partner()
        groups: dict[tuple[int, ...], list[ParameterPair]] = {}
        for pair in pairs:
            units = self._units_of(self._owners([pair]), partner)
            groups.setdefault(tuple(units), []).append(pair)
        return list(groups.values())

    def settle(self, group: Sequence[ParameterPair]) -> list[str]:
        """Keep the pairing where the unit agrees; else take the first change that makes it."""
        if self._agrees(group):
            self._confirm(group)
            return []
        before = self._session.pairing
        for change in self._changes(group):
            self._apply(before, change)
            if self._agrees(group):
                names = ", ".join(f"{a.reference[0]} → {_shown(b)}" for a, b in change)
                self._confirm([b for _, b in change])
                return [f"settled by experiment: {names}"]
        self._apply(before, ())
        return []

    def _changes(self, group: Sequence[ParameterPair]) -> Iterator[Change]:
        """Other orders and transpositions, the fewest changes first."""
        if len(group) > 2 * _MOST_TOGETHER:
            flipped = [(p, dataclasses.replace(p, transform=_turned(p.transform))) for p in group]
            yield tuple(flipped)
            return
        options = []
        for order in self._orders(group):
            for flips in itertools.product((False, True), repeat=len(group)):
                if any(f and not p.may_be_transposed for f, p in zip(flips, group, strict=True)):
                    continue
                change = tuple(
                    (
                        pair,
                        dataclasses.replace(
                            pair,
                            port=port,
                            transform=_turned(pair.transform) if flip else pair.transform,
                        ),
                    )
                    for pair, port, flip in zip(group, order, flips, strict=True)
                    if flip or port != pair.port
                )
                if change:
                    options.append(change)
        yield from sorted(options, key=len)[:_MOST_TRIALS]

    def _orders(self, group: Sequence[ParameterPair]) -> Iterator[tuple[tuple[str, ...], ...]]:
        """The ways to hand out the port's parameters; a telling name keeps its own."""
        _, theirs = self._session.infos()
        ports = [pair.port for pair in group]
        fixed = [not pair.ambiguous_with and _named_alike(pair) for pair in group]
        for order in itertools.permutations(ports):
            moved = [port != pair.port for pair, port in zip(group, order, strict=True)]
            if any(m and f for m, f in zip(moved, fixed, strict=True)):
                continue
            if all(
                theirs[port[0]].shape == theirs[pair.port[0]].shape
                for pair, port in zip(group, order, strict=True)
            ):
                yield order

    def _apply(self, pairing: ParameterPairing, change: Change) -> None:
        replaced = {id(old): new for old, new in change}
        pairs = tuple(replaced.get(id(p), p) for p in pairing.pairs)
        self._session.pairing = dataclasses.replace(pairing, pairs=pairs)
        self._session.port.ask(Networks.load_state, self._session.transfer(self._state))

    def _confirm(self, group: Sequence[ParameterPair]) -> None:
        names = {pair.reference for pair in group}
        pairs = tuple(
            dataclasses.replace(p, ambiguous_with=(), may_be_transposed=False)
            if p.reference in names
            else p
            for p in self._session.pairing.pairs
        )
        self._session.pairing = dataclasses.replace(self._session.pairing, pairs=pairs)

    def _agrees(self, group: Sequence[ParameterPair]) -> bool:
        """Whether the smallest unit around these parameters computes alike on both sides."""
        partner = self._partner()
        replayer = Replayer(
            self._session, self._mode, False, self._reference, self._port, ISOLATED_THRESHOLD
        )
        for call in self._units_of(self._owners(group), partner):
            result = replayer.run_aside(make_unit(self._reference, self._port, partner, call))
            forward = [t.ratio for t in result.tensors if t.stage is Stage.FORWARD]
            if result.failure or not forward or not max(forward) <= ISOLATED_THRESHOLD:
                return False
        return True

    def _partner(self) -> dict[int, int]:
        session = self._session
        reference = dataclasses.replace(session.reference_structure, calls=self._reference)
        port = dataclasses.replace(session.port_structure, calls=self._port)
        modules = pair_modules(reference, port, session.pairing)
        return dict(pair_calls(reference, port, modules, None))

    def _owners(self, group: Sequence[ParameterPair]) -> set[str]:
        infos, _ = self._session.infos()
        return {infos[name].module for pair in group for name in pair.reference}

    def _units_of(self, owners: set[str], partner: dict[int, int]) -> list[int]:
        calls = [i for i, call in enumerate(self._reference) if call.module in owners]
        found: list[int] = []
        for call in calls:
            around: int | None = call
            if len(owners) > 1 or call not in partner:
                around = enclosing(self._reference, partner, call)
            if around is not None and around not in found:
                found.append(around)
        return found or [0]


def _named_alike(pair: ParameterPair) -> bool:
    paths = [tuple(names[0].split(".")[-2:]) for names in (pair.reference, pair.port)]
    return pair.how in ("rename", "name") or closeness(paths[0], paths[1]) > 0


def _shown(pair: ParameterPair) -> str:
    transposed = " transposed" if isinstance(pair.transform, Transpose) else ""
    return " + ".join(pair.port) + transposed
