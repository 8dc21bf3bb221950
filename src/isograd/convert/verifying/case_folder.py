"""A case of `verify` in a folder: two sides that find their network by path, and the inputs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isograd.convert.verifying.builders import Builder
from isograd.convert.verifying.places import Place
from isograd.verify.case import TensorSpec

_CHILDREN = Path(__file__).parent / "children"
_PROBE_S = 300


@dataclass(frozen=True)
class SideNotes:
    """How far a side came; files: what it imported below its own roots."""

    imported: bool = False
    built: bool = False
    files: tuple[str, ...] = ()


class CaseFolder:
    """A folder in which a case is written for one builder."""

    def __init__(
        self,
        folder: Path,
        original: Place,
        port: Place,
        builder: Builder,
        port_builder: Builder,
        reference_python: str | None = None,
    ) -> None:
        self.path = folder / "case.toml"
        self._folder = folder
        self._python = reference_python
        self._write_side("reference", "torch_side.py", original, builder, ())
        self._write_side("port", "mindspore_side.py", port, port_builder, ("torch",))
        self._copy("_isograd_case_side.py", "_isograd_case_side.py")
        self._copy("probe.py", "probe.py")

    def _copy(self, source: str, target: str) -> None:
        text = (_CHILDREN / source).read_text(encoding="utf-8")
        (self._folder / target).write_text(text, encoding="utf-8")

    def _write_side(
        self, side: str, source: str, place: Place, builder: Builder, forbidden: Sequence[str]
    ) -> None:
        self._copy(source, f"{side}_side.py")
        settings = {
            "module": builder.module,
            "name": builder.name,
            "arguments": repr(dict(builder.arguments)),
            "search": [str(path) for path in place.search],
            "packages": {name: str(path) for name, path in place.packages},
            "preludes": [str(path) for path in place.preludes],
            "forbidden": list(forbidden),
        }
        (self._folder / f"{side}_side.json").write_text(json.dumps(settings), encoding="utf-8")

    def notes(self, side: str) -> SideNotes:
        """How far a side came; the notes of a side that never started are empty."""
        try:
            text = (self._folder / f"{side}_side.notes.json").read_text(encoding="utf-8")
            value = json.loads(text)
            return SideNotes(value["imported"], value["built"], tuple(value["files"]))
        except (OSError, ValueError, KeyError):
            return SideNotes()

    def guess_inputs(self) -> tuple[TensorSpec, ...] | str:
        """The inputs by the reference's first layer, or why they are not known."""
        command = [self._python or sys.executable, str(self._folder / "probe.py")]
        try:
            done = subprocess.run(
                [*command, str(self._folder)],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_PROBE_S,
                cwd=self._folder,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"no answer within {_PROBE_S} s"
        try:
            answer = json.loads(done.stdout.strip().splitlines()[-1])
        except (ValueError, IndexError):
            words = done.stderr.strip().splitlines() or ["nothing"]
            return f"it ended with {words[-1][:300]}"
        if "inputs" not in answer:
            return str(answer["problem"])
        return tuple(
            TensorSpec(tuple(shape), dtype, "integers", low=low, high=high)
            if "int" in dtype
            else TensorSpec(tuple(shape), dtype)
            for shape, dtype, low, high in answer["inputs"]
        )

    def write_case(
        self, inputs: Sequence[TensorSpec], mode: str, steps: int, compiled: str
    ) -> Path:
        """Write the case file."""
        lines = []
        for side, framework in (("reference", "torch"), ("port", "mindspore")):
            lines += [f"[{side}]", f'framework = "{framework}"']
            for name in ("build", "loss", "optimizer"):
                key = "model" if name == "build" else name
                lines.append(f'{key} = "{side}_side.py:{name}"')
            if side == "reference" and self._python:
                lines.append(f"python = {json.dumps(self._python)}")
            lines.append("")
        for spec in inputs:
            lines += ["[[inputs]]", *_tensor_lines(spec), ""]
        lines += ["[verify]", f'mode = "{mode}"', f"steps = {steps}"]
        lines += [f'compiled = "{compiled}"', ""]
        self.path.write_text("\n".join(lines), encoding="utf-8")
        return self.path


def _tensor_lines(spec: TensorSpec) -> list[str]:
    found: list[tuple[str, Any]] = [("shape", list(spec.shape)), ("dtype", spec.dtype)]
    found += [(key, getattr(spec, key)) for key in ("fill", "low", "high")]
    if spec.seed:
        found.append(("seed", spec.seed))
    return [f"{key} = {json.dumps(value)}" for key, value in found if value is not None]
