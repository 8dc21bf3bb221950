"""Which module is the first that differs or does not compile: modules compiled alone."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from isograd.frameworks.base import CallInfo, ModuleInfo
from isograd.frameworks.capabilities import CompilesModules
from isograd.verify.compiled.port import CompiledPort
from isograd.verify.session import Session

#: Modules that are compiled alone at most; more are not looked at, and the one around is named.
_MOST_MODULES = 120
_FINE = ("same", "unknown")


@dataclass(frozen=True)
class Located:
    """A module of the port whose own code differs or is refused.

    call: its recorded call, None where the loss is to blame; place: path and line, and the last
    line of the statement; verdict and detail as `CompiledModules.alone` gives them.
    """

    module: str
    call: int | None
    verdict: str
    detail: dict[str, Any]
    place: tuple[str, int, int] | None


class Locator:
    """Looks for the modules to blame, from the whole network downwards."""

    def __init__(
        self,
        session: Session,
        port: CompiledPort,
        way: str,
        mode: str,
        backward: bool | None = None,
    ) -> None:
        self._session, self._port, self._way = session, port, way
        has_loss = session.case.reference.loss is not None
        self._backward = has_loss if backward is None else backward
        self._mode = mode
        self._calls: tuple[CallInfo, ...] = ()
        self._infos: dict[str, ModuleInfo] = {}
        self._judged: dict[int, dict[str, Any]] = {}
        self._alike: dict[Any, int] = {}

    def run(self) -> list[Located]:
        """Every module whose own code is to blame, in the order of the calls."""
        self._calls = self._port.record(self._mode)
        self._infos = {m.name: m for m in self._session.port_structure.modules}
        if not self._calls:
            return []
        found = self._explore(0) if self.alone(0)["verdict"] not in _FINE else []
        return found or self._loss()

    def below(self, module: str) -> list[Located]:
        """The modules to blame in the first call of a module, itself among them."""
        self._calls = self._port.record(self._mode)
        self._infos = {m.name: m for m in self._session.port_structure.modules}
        call = next((i for i, c in enumerate(self._calls) if c.module == module), None)
        if call is None or self.alone(call)["verdict"] in _FINE:
            return []
        return self._explore(call)

    def alone(self, call: int) -> dict[str, Any]:
        """How a call compiles alone; what was asked before is known."""
        if call not in self._judged:
            module = self._calls[call].module or "the whole network"
            done = len(self._judged)
            self._session.progress.advance(done, max(done + 1, len(self._calls)), f"{module} alone")
            self._judged[call] = self._port.ask(
                CompilesModules.alone, call, self._way, self._backward
            )
        return self._judged[call]

    def _explore(self, call: int) -> list[Located]:
        children = [i for i, c in enumerate(self._calls) if c.parent == call]
        bad = self._bad(children, self._representatives(children))
        if not bad:
            bad = self._bad(children, children)
        found: list[Located] = []
        seen: set[str] = set()
        for child in bad:
            if self._calls[child].module not in seen:
                seen.add(self._calls[child].module)
                found += self._explore(child)
        return found or [self._blame(call)]

    def _bad(self, children: list[int], chosen: list[int]) -> list[int]:
        return [
            child
            for child in chosen
            if (child in self._judged or len(self._judged) < _MOST_MODULES)
            and self.alone(child)["verdict"] not in _FINE
        ]

    def _representatives(self, children: list[int]) -> list[int]:
        """One of those that are alike: the same classes and settings inside, the same shapes."""
        groups: dict[Any, list[int]] = defaultdict(list)
        for child in children:
            groups[self._likeness(child)].append(child)
        return sorted(group[0] for group in groups.values())

    def _likeness(self, call: int) -> Any:
        info = self._calls[call]
        inside = tuple(
            (name[len(info.module) :], m.kind, m.settings)
            for name, m in self._infos.items()
            if name == info.module or name.startswith(f"{info.module}.")
        )
        return info.input_shapes, info.output_shapes, inside

    def _blame(self, call: int) -> Located:
        """The call's own code; its first line that is to blame."""
        judged = self.alone(call)
        module, verdict = self._calls[call].module, judged["verdict"]
        place = _refused_at(judged)
        if place is None or verdict != "refused":
            cut = self._port.ask(
                CompilesModules.statements, call, self._way, self._backward, verdict
            )
            if "file" in cut:
                place = (cut["file"], cut["line"], cut["end"])
        return Located(module, call, verdict, judged, place)

    def _loss(self) -> list[Located]:
        if not self._backward:
            return []
        judged = self._port.ask(CompilesModules.loss_alone, self._way, self._session.targets())
        if judged["verdict"] in _FINE:
            return []
        return [Located("", None, judged["verdict"], judged, _refused_at(judged))]


def _refused_at(judged: dict[str, Any]) -> tuple[str, int, int] | None:
    place = judged.get("place")
    return (place[0], place[1], place[1]) if place else None
