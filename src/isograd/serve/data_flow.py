"""Who feeds whom in a recorded network: its innermost calls, and the tensors between them."""

from __future__ import annotations

from pathlib import Path

from isograd.errors import IsogradError
from isograd.recording.format import Call
from isograd.recording.reader import RecordedStep, Recording
from isograd.report.document import GraphNode, GraphSide

#: The node of what the network is called with.
INPUT = "input"


def flow_of(folder: Path, title: str) -> GraphSide:
    """The graph of a recording's first step; without nodes where there is none to read."""
    try:
        recording = Recording(str(folder))
        kinds = {module.name: module.kind for module in recording.structure.modules}
        step = next(iter(recording), None)
    except IsogradError:
        return GraphSide(title, (), ())
    return GraphSide(title, (), ()) if step is None else _Flow(step, kinds).side(title)


class _Flow:
    """One step's calls turned into nodes and edges.

    A module that is called several times is one node.  A tensor comes from the last call before
    that handed it out; what a module hands out without that a call inside of it made it, such as a
    view, comes from the last of these calls.
    """

    def __init__(self, step: RecordedStep, kinds: dict[str, str]) -> None:
        self._step = step
        self._kinds = kinds
        self._nodes: dict[str, GraphNode] = {}
        self._positions: dict[str, int] = {}
        self._edges: dict[tuple[int, int], None] = {}
        self._made: dict[int, int] = {}
        self._last: dict[int, int] = {}

    def side(self, title: str) -> GraphSide:
        calls = self._step.calls
        around = {call.parent for call in calls if call.parent is not None}
        for value in {slot.value for call in calls if call.parent is None for slot in call.inputs}:
            self._made[value] = self._node(INPUT, "", value)
        opened: list[int] = []
        for number, call in enumerate(calls):
            while opened and opened[-1] != call.parent:
                self._close(opened.pop())
            if number in around:
                opened.append(number)
            else:
                self._leaf(call)
        while opened:
            self._close(opened.pop())
        # Modules that contain others have no edges of their own, but colours.
        for number in sorted(around):
            call = calls[number]
            if call.name:
                self._node(call.name, self._kinds.get(call.name, ""), _first(call))
        return GraphSide(title, list(self._nodes.values()), list(self._edges))

    def _leaf(self, call: Call) -> None:
        path = self._path(call, self._step.calls)
        kind = self._kinds.get(call.name, "") if call.kind == "module" else "operation"
        node = self._node(path, kind, _first(call))
        for slot in call.inputs:
            source = self._made.get(slot.value)
            if source is not None and source != node:
                self._edges[source, node] = None
        for slot in call.outputs:
            self._made[slot.value] = node
        above = call.parent
        while above is not None:
            self._last[above] = node
            above = self._step.calls[above].parent

    def _close(self, number: int) -> None:
        """A module's end: what it hands out is made by now."""
        for slot in self._step.calls[number].outputs:
            if number in self._last:
                self._made.setdefault(slot.value, self._last[number])

    def _path(self, call: Call, calls: tuple[Call, ...]) -> str:
        """The module's name; of an operation its own, counted, below the module around it."""
        if call.kind == "module":
            return call.name or "network"
        around = "" if call.parent is None else calls[call.parent].name
        name = call.name.rpartition(".")[2].replace(".", "_") or "operation"
        mark = f"{name}#{call.occurrence}" if call.occurrence else name
        return f"{around}.{mark}" if around else mark

    def _node(self, path: str, kind: str, value: int | None) -> int:
        if path not in self._nodes:
            info = None if value is None else self._step.info.values[value]
            shape = "" if info is None else "×".join(map(str, info.shape))
            self._positions[path] = len(self._nodes)
            self._nodes[path] = GraphNode(path, kind, shape)
        return self._positions[path]


def _first(call: Call) -> int | None:
    """The value of a call's first output."""
    return call.outputs[0].value if call.outputs else None
