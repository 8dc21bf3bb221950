"""One port, eager and under jit: its output and its gradients.  Started by compiled.py.

    python _compiled_child.py SETTINGS.json

The settings name the module and the builder, the packages by folder, preludes, and the inputs.  The
last line of standard output is one JSON object: {"outcome", "error", "gradient", "reason", ...}.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import ops

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src" / "isograd" / "convert"))
sys.path.insert(0, str(Path(sys.path[0]) / "verifying" / "children"))
from _isograd_case_side import Side, weights

_FLOATING = (ms.float16, ms.float32, ms.float64, ms.bfloat16)
#: Two runs whose gradients are further apart than this have drawn something: rounding does less.
DRAWN = 0.05


def drawn(shape: list[int], dtype: str, most: int, seed: int) -> ms.Tensor:
    """An input: normal numbers, or integers below `most`."""
    random = np.random.RandomState(seed)
    if most:
        return ms.Tensor(random.randint(0, most, shape).astype(dtype))
    return ms.Tensor(random.randn(*shape).astype(dtype))


def paths_of(value: Any, path: tuple = ()) -> list[tuple]:
    """Where the floating tensors of an output stand, by keys and positions."""
    if isinstance(value, ms.Tensor):
        return [path] if value.dtype in _FLOATING else []
    if isinstance(value, dict):
        pairs = list(value.items())
    else:
        pairs = list(enumerate(value)) if isinstance(value, (tuple, list)) else []
    return [found for key, part in pairs for found in paths_of(part, (*path, key))]


def at(value: Any, path: tuple) -> Any:
    """What stands at a path."""
    for key in path:
        value = value[key]
    return value


def loss_by(output: Any, paths: list[tuple], uneven: list[Any]) -> tuple[Any, Any]:
    """Every floating output with uneven weights, near zero as its square; and its terms' size."""
    total, size = ops.zeros((), ms.float32), ops.zeros((), ms.float32)
    for number in range(len(paths)):
        tensor = at(output, paths[number])
        square = tensor * tensor
        terms = square / (1 + ops.sqrt(1 + square)) * uneven[number]
        total, size = total + terms.mean(), size + ops.abs(terms).mean()
    return total, size


def distance(one: Any, other: Any) -> float:
    """The norm of the difference over the greater norm, in float64; inf where one is not finite."""
    a, b = one.asnumpy().astype("f8"), other.asnumpy().astype("f8")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return 0.0 if np.array_equal(a, b, equal_nan=True) else float("inf")
    return float(np.linalg.norm(a - b) / max(np.linalg.norm(a), np.linalg.norm(b), 1e-6))


def apart(one: Any, other: Any) -> float:
    """How far two losses are apart, by the size of their terms; 0 for two of the same infinity."""
    (a, size), (b, _) = ([float(part) for part in given] for given in (one, other))
    if not (np.isfinite(a) and np.isfinite(b)):
        return 0.0 if np.array_equal(a, b, equal_nan=True) else float("inf")
    return abs(a - b) / max(size, 1e-6)


def steady(network: Any, inputs: list[Any], paths: list[tuple]) -> list[tuple]:
    """The outputs that are the same in each of some runs: others are drawn anew."""
    first, *others = [network(*inputs) for _ in range(6)]  # a mask of few elements comes twice
    return [
        path
        for path in paths
        if all(distance(at(first, path), at(other, path)) < 1e-5 for other in others)
    ]


def reason_of(error: BaseException) -> str:
    """The compiler's first words, and the line of the port that it names last."""
    lines = str(error).splitlines()
    first = next((line.strip() for line in lines if line.strip(" -")), type(error).__name__)
    places = [line.split("In file ")[1] for line in lines if line.startswith("# ")]
    own = [place for place in places if "site-packages" not in place]
    return f"{first[:200]} [{(own or places or ['?'])[-1][:160]}]"


@dataclass(frozen=True)
class Eager:
    """What a network computes eagerly.

    gradient: the function of loss and gradients, as `run` calls it from the same weights.  loss,
    gradients: what it answers.  drift: how far a run with nudged inputs is away.  paths: the
    outputs that are compared.
    """

    gradient: Any
    run: Any
    loss: Any
    gradients: Any
    drift: float
    paths: list[tuple]


def eagerly(network: Any, inputs: list[Any], before: list[Any], training: bool) -> Eager | None:
    """What a network computes in a mode, from the weights that it had before.

    None where an output or a gradient is drawn anew in training (stochastic depth, dropout): a
    layer's scale of 1e-6 hides in the output that its rows are dropped.
    """
    network.set_train(training)
    output = network(*inputs)
    every = paths_of(output)
    paths = steady(network, inputs, every)
    if training and paths != every:
        return None
    uneven = [ms.Tensor(weights(at(output, p).size).reshape(at(output, p).shape)) for p in paths]
    parameters = network.trainable_params()

    def loss(*given: Any) -> tuple[Any, Any]:
        return loss_by(network(*given), paths, uneven)

    gradient = ms.value_and_grad(loss, None, tuple(parameters), has_aux=True)

    def run(function: Any, given: list[Any]) -> tuple[Any, Any]:
        for parameter, kept in zip(network.get_parameters(), before, strict=True):
            ops.assign(parameter, kept)
        return function(*given)

    value, eager = run(gradient, inputs)
    nudged = [x * (1 + 1e-7) if x.dtype in _FLOATING else x for x in inputs]
    drift = max(worst(eager, run(gradient, nudged)[1])[0] for _ in range(2 if training else 1))
    if training and drift > DRAWN:
        return None
    return Eager(gradient, run, value, eager, drift, paths)


def compared(network: Any, inputs: list[Any]) -> dict[str, Any]:
    """What jit makes of the forward pass and the gradients, against the same network eagerly."""
    before = [parameter.value().copy() for parameter in network.get_parameters()]
    found = eagerly(network, inputs, before, training=True)
    found = found or eagerly(network, inputs, before, training=False)
    gradient, run, eager, drift = found.gradient, found.run, found.gradients, found.drift
    parameters = network.trainable_params()

    @ms.jit
    def step(*given: Any) -> Any:
        return gradient(*given)

    started = time.perf_counter()
    try:
        jitted_value, jitted = run(step, inputs)
        ms.runtime.synchronize()
    except Exception as error:
        return {"outcome": "refused", "reason": reason_of(error)}
    compile_s = time.perf_counter() - started
    lost = [
        p.name
        for p, a, b in zip(parameters, eager, jitted, strict=True)
        if a.asnumpy().any() and not b.asnumpy().any()
    ]
    error = apart(found.loss, jitted_value)
    greatest, place = worst(eager, jitted)
    is_same = error < 1e-4 and not lost and greatest < max(2e-3, 10 * drift)
    name = parameters[place].name if parameters else ""
    return {"outcome": "same" if is_same else "differs", "error": error, "gradient": greatest,
            "drift": drift, "in_training": network.training, "compared": len(found.paths),
            "compile_s": round(compile_s, 1),
            "reason": "" if is_same else f"lost: {lost[:3]}" if lost else name}  # fmt: skip


def worst(some: Any, others: Any) -> tuple[float, int]:
    """The greatest distance of two rows of gradients, and its place."""
    errors = [distance(a, b) for a, b in zip(some, others, strict=True)]
    return (max(errors), int(np.argmax(errors))) if errors else (0.0, 0)


def main() -> None:
    """Answer for the settings."""
    settings = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    ms.set_seed(0)
    np.random.seed(0)  # noqa: NPY002 - ports draw from numpy's global generator
    inputs = [drawn(*given, seed) for seed, given in enumerate(settings["inputs"])]
    try:
        network = Side(sys.argv[1]).build()
        answer = compared(network, inputs)
    except Exception as error:
        answer = {"outcome": "error", "reason": f"{type(error).__name__}: {reason_of(error)}"}
    sys.stdout.write("\n" + json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
