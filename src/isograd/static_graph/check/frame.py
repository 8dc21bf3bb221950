"""The process that executes constructs; each run is a fork, so that a crash costs one run.

    python -m isograd.static_graph.check.frame JOBS OUT [DEVICE]

A run is a forward pass of three calls and three training steps, with inputs that change sign.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

_LIMIT_S = 60.0
#: What a job runs that names no ways.
_WAYS = ("eager", "jit", "graph", "strict")
_CALLS = 3
_SIZE = 64


def main(jobs_file: str, out_file: str, device: str = "CPU") -> None:
    """Execute all jobs: a line of the results of each."""
    import mindspore as ms

    ms.set_device(device)
    folder = Path(jobs_file).parent
    jobs = json.loads(Path(jobs_file).read_text(encoding="utf-8"))
    with Path(out_file).open("a", encoding="utf-8") as out:
        for job in jobs:
            path = folder / f"construct_{job['number']}.py"
            path.write_text(job["code"], encoding="utf-8")
            runs = {way: _forked(path, way, folder) for way in job.get("ways", _WAYS)}
            print(json.dumps({"key": job["key"], "runs": runs}), file=out, flush=True)


def _forked(path: Path, way: str, folder: Path) -> dict[str, Any]:
    phases = {"forward": lambda: forward(path, way), "training": lambda: training(path, way)}
    return forked(phases, folder / "result.json")


def forked(phases: Mapping[str, Callable[[], Any]], result: Path) -> dict[str, Any]:
    """Phases in a process of their own: what each yields, or which failed and how."""
    result.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        _run_and_leave(phases, result)
    until = time.monotonic() + _LIMIT_S
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return {"failed": "forward", "message": f"no answer within {_LIMIT_S:.0f} s"}
        time.sleep(0.01)
    if not result.exists():
        return {"failed": "forward", "message": "the process ended"}
    found: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    return found


def _run_and_leave(phases: Mapping[str, Callable[[], Any]], result: Path) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    found: dict[str, Any] = {}
    at = "forward"
    try:
        for name, run in phases.items():
            at = name
            found[name] = run()
    except BaseException as error:  # whatever ends a run is what it shows
        found |= {"failed": at, "message": str(error)[:4000] or type(error).__name__}
    result.write_text(json.dumps(found), encoding="utf-8")
    os._exit(0)


def forward(path: Path, way: str) -> dict[str, Any]:
    """Three calls of a network: outputs, watched attributes, parameters."""
    network = _network(path, way)
    network.set_train(network.FWDTRAIN)
    names = "x" if len(_inputs(network.IN, 0)) == 1 else "x, y"
    space = {"network": network}
    run = _compiled(way, _function(path, f"def run({names}): return network({names})", space))
    outputs = [described(run(*_inputs(network.IN, call))) for call in range(_CALLS)]
    return {"outputs": outputs, **_state(network)}


def training(path: Path, way: str) -> dict[str, Any]:
    """Three steps of SGD: losses, gradients of the input and the parameters, parameters after."""
    import mindspore as ms
    from mindspore import nn

    network = _network(path, way)
    network.set_train(True)
    optimizer = nn.SGD(network.trainable_params(), learning_rate=0.05)
    names = "x" if len(_inputs(network.IN, 0)) == 1 else "x, y"
    picked = _PICKS[network.PICK]
    space = {"network": network}
    text = f"def loss({names}):\n    o = network({names})\n    return {picked}"
    loss = _function(path, text, space)
    gradient = ms.value_and_grad(loss, 0, optimizer.parameters)
    text = (
        f"def step({names}):\n    v, (gx, gp) = gradient({names})\n    optimizer(gp)\n"
        "    return v, gx, gp"
    )
    step = _function(path, text, {"gradient": gradient, "optimizer": optimizer})
    step = _compiled(way, step)
    steps = [described(step(*_inputs(network.IN, call))) for call in range(_CALLS)]
    return {"steps": steps, **_state(network)}


_PICKS = {
    "sum": "(o * o).sum()",
    "first": "(o[0] * o[0]).sum()",
    "two": "(o[0] * o[0]).sum() + (o[1] * 2).sum()",
    "a": "(o['a'] * o['a']).sum()",
    "attr": "(o.a * o.a).sum()",
    "plain": "o.sum()",
}


def _state(network: Any) -> dict[str, Any]:
    watched = {name: described(getattr(network, name, None)) for name in network.WATCH}
    return {
        "watched": watched,
        # By their order: a slice of a CellList gives its parameters other names.
        "parameters": [described(p) for p in network.get_parameters()],
    }


def _function(path: Path, text: str, space: dict[str, Any]) -> Any:
    """A function in a file and a module of its own, as the compiler wants it."""
    file = path.with_name(f"{path.stem}_{'_'.join(space)}.py")
    file.write_text(text + "\n", encoding="utf-8")
    module = module_of(file, space)
    return next(v for n, v in vars(module).items() if n in ("run", "loss", "step"))


def module_of(path: Path, space: dict[str, Any] | None = None) -> Any:
    """A file as a module that holds these values; the compiler looks names up in modules."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    vars(module).update(space or {})
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _network(path: Path, way: str) -> Any:
    import mindspore as ms

    ms.set_context(mode=ms.GRAPH_MODE if way == "graph" else ms.PYNATIVE_MODE)
    if way == "eager":
        ms.runtime.launch_blocking()
    ms.set_seed(0)
    np.random.seed(0)  # noqa: NPY002 - examples draw from it
    module = module_of(path)
    kinds = [
        v
        for v in vars(module).values()
        if isinstance(v, type) and issubclass(v, module.Base) and v is not module.Base
    ]
    network = kinds[-1]()
    drawn = np.random.RandomState(1)
    for parameter in network.get_parameters():
        if parameter.dtype == ms.float32 and parameter.name.rpartition(".")[2] in _DRAWN:
            values = drawn.randn(*parameter.shape).astype("f4") * 0.5
            parameter.set_data(ms.Tensor(values))
    return network


_DRAWN = ("weight", "bias", "w", "embedding_table")


def _compiled(way: str, function: Any) -> Any:
    import mindspore as ms

    if way == "jit":
        return ms.jit(function)
    return ms.jit(function, fullgraph=True) if way == "strict" else function


def _inputs(kind: str, call: int) -> tuple[Any, ...]:
    """The arguments of one call; the second call has the other sign."""
    import mindspore as ms

    sign = -1.0 if call == 1 else 1.0
    x = np.abs(np.random.RandomState(10 + call % 2).randn(3, 4)).astype("f4") * np.float32(sign)
    first = ms.Tensor(x)
    if kind == "img":
        drawn = np.random.RandomState(call % 2).randn(2, 3, 8, 8)
        return (ms.Tensor((drawn * sign).astype("f4")),)
    second: dict[str, Any] = {
        "xy": ms.Tensor(x[::-1].copy() * 2),
        "xm": ms.Tensor(x > 0.5),
        "xi": ms.Tensor(np.array([1, 1] if call == 1 else [2, 0], "i4")),
        "xn": ms.Tensor(2 if call == 1 else 3, ms.int32),
        "xint": 2 if call == 1 else 3,
        "xstr": "b" if call == 1 else "a",
        "xNone": None,
        "xlist": [ms.Tensor(x * 2), ms.Tensor(x * 3)],
        "xdict": {"a": ms.Tensor(x * 2), "b": ms.Tensor(x * 3)},
    }
    return (first,) if kind == "x" else (first, second[kind])


def described(value: Any) -> Any:
    """A result as plain values: kind, dtype, shape, and up to 64 numbers."""
    import mindspore as ms

    if isinstance(value, ms.Tensor):
        array = value.asnumpy()
        numbers = array.astype("f8").ravel()[:_SIZE].round(6).tolist()
        return {"tensor": numbers, "dtype": str(value.dtype), "shape": list(array.shape)}
    if isinstance(value, dict):
        parts = {str(k): described(v) for k, v in value.items()}
        return {"kind": type(value).__name__, "parts": parts}
    if isinstance(value, (tuple, list)):
        parts = {str(i): described(v) for i, v in enumerate(value)}
        return {"kind": type(value).__name__, "parts": parts}
    if isinstance(value, (int, float, str, bool, type(None))):
        return value
    held = getattr(value, "__dict__", {})
    parts = {k: described(v) for k, v in held.items() if isinstance(v, (ms.Tensor, int, float))}
    return {"kind": type(value).__name__, "parts": parts}


if __name__ == "__main__":
    main(*sys.argv[1:4])
