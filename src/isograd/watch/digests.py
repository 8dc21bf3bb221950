"""The child of `twice`: runs a script and writes a checksum of all that happens, in order."""

from __future__ import annotations

import importlib
import json
import sys
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from isograd.runs.script import run_script
from isograd.watch.session import TrainingStopped

_SEEDERS = (
    ("random", "random", "seed"),
    ("numpy", "numpy.random", "seed"),
    ("torch", "torch", "manual_seed"),
    ("mindspore", "mindspore", "set_seed"),
)


class Digests:
    """Writes an entry per module's output, batch, and weight."""

    def __init__(self, stream: TextIO, steps: int) -> None:
        self._stream = stream
        self._left = steps
        self._step = 0
        self._depth = 0
        self._roots: set[int] = set()
        self._names: dict[int, str] = {}

    def watch(self, framework: str) -> None:
        """Begin: the framework has just been imported."""
        _watch_seeds(self._stream)
        if framework == "torch":
            self._watch_torch()
        else:
            self._watch_mindspore()

    def _watch_torch(self) -> None:
        torch: Any = importlib.import_module("torch")

        def numbers(tensor: Any) -> Any:
            return tensor.detach().float().cpu().numpy()

        self._replace_call(
            torch.nn.Module, "torch", torch.Tensor, numbers, lambda m: m.named_modules(), _weights
        )

        def stepped(optimizer: Any, *_: Any) -> None:
            values = ((str(n), numbers(p)) for n, p in enumerate(_parameters(optimizer)))
            self._stepped("torch", values)

        hooks: Any = importlib.import_module("torch.optim.optimizer")
        hooks.register_optimizer_step_post_hook(stepped)

    def _watch_mindspore(self) -> None:
        mindspore: Any = importlib.import_module("mindspore")

        def numbers(tensor: Any) -> Any:
            return tensor.astype(mindspore.float32).asnumpy()

        self._replace_call(
            mindspore.nn.Cell,
            "mindspore",
            mindspore.Tensor,
            numbers,
            lambda c: c.cells_and_names(),
            lambda c: ((p.name, p) for p in c.get_parameters()),
        )

    def _replace_call(
        self,
        owner: Any,
        framework: str,
        tensor: Any,
        numbers: Callable[[Any], Any],
        parts: Callable[[Any], Iterable[tuple[str, Any]]],
        weights: Callable[[Any], Iterable[tuple[str, Any]]],
    ) -> None:
        original = owner.__call__
        optimizers = _optimizer_bases(framework)

        def call(module: Any, *args: Any, **kwargs: Any) -> Any:
            if isinstance(module, optimizers):
                found = original(module, *args, **kwargs)
                values = ((p.name, numbers(p)) for p in module.parameters)
                self._stepped(framework, values)
                return found
            if self._depth == 0 and id(module) not in self._roots:
                self._roots.add(id(module))
                self._names.update({id(part): name for name, part in parts(module)})
                for name, weight in weights(module):
                    self._write("weights", name, numbers(weight), framework)
            if self._depth == 0:
                for at, value in enumerate((*args, *kwargs.values())):
                    if isinstance(value, tensor):
                        self._write("batch", str(at), numbers(value), framework)
            self._depth += 1
            try:
                output = original(module, *args, **kwargs)
            finally:
                self._depth -= 1
            if isinstance(output, tensor):
                name = self._names.get(id(module), type(module).__name__)
                self._write("output", name, numbers(output), framework)
            return output

        owner.__call__ = call

    def _stepped(self, framework: str, values: Iterable[tuple[str, Any]]) -> None:
        for name, value in values:
            self._write("gradient", name, value, framework)
        self._step += 1
        if self._step >= self._left:
            self._stream.flush()
            raise TrainingStopped

    def _write(self, what: str, name: str, values: Any, framework: str) -> None:
        digest = zlib.crc32(np.ascontiguousarray(values).tobytes())
        entry = {"what": what, "name": name, "step": self._step, "digest": digest}
        self._stream.write(json.dumps({**entry, "framework": framework}) + "\n")


def _weights(module: Any) -> Iterable[tuple[str, Any]]:
    found: Iterable[tuple[str, Any]] = module.named_parameters()
    return found


def _parameters(optimizer: Any) -> Iterable[Any]:
    return (p for group in optimizer.param_groups for p in group["params"])


def _optimizer_bases(framework: str) -> tuple[Any, ...]:
    if framework == "torch":
        return ()
    from isograd.watch.mindspore_calls import optimizer_classes

    return optimizer_classes()


def _watch_seeds(stream: TextIO) -> None:
    """Note which libraries the script seeds."""
    for label, name, attribute in _SEEDERS:
        module = sys.modules.get(name)
        original = getattr(module, attribute, None)
        if module is None or original is None or hasattr(original, "__wrapped__"):
            continue

        def seed(*args: Any, original: Any = original, label: str = label, **kwargs: Any) -> Any:
            stream.write(json.dumps({"seeded": [label]}) + "\n")
            return original(*args, **kwargs)

        seed.__wrapped__ = original  # type: ignore[attr-defined]  # marks what is watched already
        setattr(module, attribute, seed)


def main(arguments: list[str]) -> int:
    """Run `target steps script arguments…`."""
    target, steps, script = Path(arguments[0]), int(arguments[1]), Path(arguments[2])
    with target.open("w", encoding="utf-8") as stream:
        end = run_script(script, arguments[3:], Digests(stream, steps).watch)
    if end.trace and not isinstance(end.error, TrainingStopped):
        sys.stderr.write(end.trace)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
