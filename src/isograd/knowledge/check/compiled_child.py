"""The process that executes ports of examples in the static graph; each run is a fork.

    python -m isograd.knowledge.check.compiled_child JOBS OUT [DEVICE]

A job's code runs eagerly, under `jit` and in GRAPH_MODE: its result, the gradients of its float
inputs and of the parameters of the cell that it builds, and the gradients of another value that is
returned beside the result: what runs in plain Python within the graph takes those, too.
"""

from __future__ import annotations

import ast
import functools
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np

from isograd.static_graph.check.frame import described, forked, module_of


def main(jobs_file: str, out_file: str, device: str = "CPU") -> None:
    """Execute all jobs: a line of the results of each."""
    from isograd.knowledge.check import mindspore_side

    mindspore_side.prepare(device)
    mindspore_side.space()
    folder = Path(jobs_file).parent
    with Path(out_file).open("a", encoding="utf-8") as out:
        for job in json.loads(Path(jobs_file).read_text(encoding="utf-8")):
            runs = {}
            for way in ("eager", "jit", "graph"):
                run = _Run(job, way, folder)
                phases = {"forward": run.forward, "training": run.gradients}
                runs[way] = forked(phases, folder / "result.json")
            print(json.dumps({"key": job["key"], "runs": runs}), file=out, flush=True)


class _Run:
    """One way of running one job."""

    def __init__(self, job: dict[str, Any], way: str, folder: Path) -> None:
        self._job, self._way, self._folder = job, way, folder

    @functools.cached_property
    def _given(self) -> dict[str, Any]:
        from isograd.knowledge.check.drawing import draw
        from isograd.knowledge.check.mindspore_side import tensor_of

        return {name: tensor_of(draw(name, text, 0, False)) for name, text in self._job["inputs"]}

    @functools.cached_property
    def _space(self) -> dict[str, Any]:
        """The names of the code: the packages, and the cell that it builds."""
        import mindspore as ms

        from isograd.knowledge.check.mindspore_side import space
        from isograd.knowledge.check.torch_side import compiled

        ms.set_context(mode=ms.GRAPH_MODE if self._way == "graph" else ms.PYNATIVE_MODE)
        ms.set_seed(0)
        np.random.seed(0)  # noqa: NPY002 - initial values are drawn from it
        names = space()
        self._load_runtime(names["composites"])
        if self._job["construction"]:
            text = ast.unparse(compiled(self._job["construction"], []))
            names["CELL"] = self._defined(text.replace("def run", "def build"), "build", space())()
        return names

    def _load_runtime(self, runtime: Any) -> None:
        """The compiler looks into a module's own names, which load when they are asked for."""
        text = f"{self._job['construction']}\n{self._job['code']}"
        for name in re.findall(r"\bcomposites\.(\w+)", text):
            vars(runtime).setdefault(name, getattr(runtime, name))

    def _defined(self, text: str, name: str, space: dict[str, Any]) -> Any:
        path = self._folder / f"{name}_{self._way}.py"
        path.write_text(text, encoding="utf-8")
        return vars(module_of(path, space))[name]

    @functools.cached_property
    def _function(self) -> Any:
        from isograd.knowledge.check.torch_side import compiled

        text = ast.unparse(compiled(self._job["code"], list(self._given)))
        return self._defined(text, "run", self._space)

    def _in_way(self, function: Any) -> Any:
        import mindspore as ms

        return ms.jit(function) if self._way == "jit" else function

    def forward(self) -> Any:
        """The result."""
        run: Any = self._function
        if self._way == "graph":
            listed = ", ".join(self._given)
            text = f"class Net(nn.Cell):\n    def construct(self, {listed}):\n"
            text += f"        return run({listed})\n"
            run = self._defined(text, "Net", {**self._space, "run": run})()
        return described(_plain(self._in_way(run)(*self._given.values())))

    def gradients(self) -> Any:
        """Gradients of the float inputs and the parameters; none where there is nothing of them."""
        import mindspore as ms

        names, values = list(self._given), list(self._given.values())
        positions = [i for i, value in enumerate(values) if _is_float(value)]
        cell = self._space.get("CELL")
        weights = list(cell.trainable_params()) if isinstance(cell, ms.nn.Cell) else []
        listed = ", ".join(names)
        space = {**self._space, "run": self._function}
        steps = []
        results = self._results()
        floats = [path for path, tensor in results if _is_float(tensor)]
        if floats and (positions or weights):
            terms = " + ".join(f"({path} * {path}).sum()" for path in floats)
            text = f"def total({listed}):\n    result = run({listed})\n    return {terms}\n"
            steps.append(self._step(self._defined(text, "total", space), positions, weights))
        if positions and results:
            text = f"def both({listed}):\n    return run({listed}), {names[positions[0]]} * 2\n"
            space["both"] = self._defined(text, "both", space)
            text = f"def total({listed}):\n    _, beside = both({listed})\n"
            text += "    return (beside * beside).sum()\n"
            steps.append(self._step(self._defined(text, "total", space), positions[:1], []))
        return {"steps": steps}

    def _results(self) -> list[tuple[str, Any]]:
        """The tensors of the result, which is called `result`, by expressions for them."""
        import mindspore as ms

        from isograd.frameworks.mindspore.static_graph.texts import walk

        ms.set_context(mode=ms.PYNATIVE_MODE)
        places = list(walk(_plain(self._function(*self._given.values())), "result"))
        ms.set_context(mode=ms.GRAPH_MODE if self._way == "graph" else ms.PYNATIVE_MODE)
        return places

    def _step(self, total: Any, positions: list[int], weights: list[Any]) -> Any:
        """The value of a function of the inputs, and its gradients by some of them."""
        import mindspore as ms

        gradient = ms.value_and_grad(total, tuple(positions) or None, weights or None)
        listed = ", ".join(self._given)
        text = f"def step({listed}):\n    return GRAD({listed})\n"
        step = self._in_way(self._defined(text, "step", {"GRAD": gradient}))
        return described(step(*self._given.values()))


def _is_float(value: Any) -> bool:
    import mindspore as ms

    from isograd.frameworks.mindspore.differentiate import FLOATS

    return isinstance(value, ms.Tensor) and value.dtype in FLOATS


def _plain(value: Any) -> Any:
    """Named tuples as the tuples that runtime functions return when they are compiled."""
    if isinstance(value, tuple):
        return tuple(_plain(part) for part in value)
    return [_plain(part) for part in value] if isinstance(value, list) else value


if __name__ == "__main__":
    main(*sys.argv[1:4])
