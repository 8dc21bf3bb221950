"""The child of `twice`: runs a script and writes a checksum of all that happens, in order."""

from __future__ import annotations

import importlib
import json
import sys
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

import numpy as np

from isograd import tree
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
        self._plain_call: Any = None
        self._kinds: set[type] = set()

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
        self._watch_compiled(mindspore, numbers)

    def _watch_compiled(self, mindspore: Any, numbers: Callable[[Any], Any]) -> None:
        """Compiled steps: what goes in, what comes out, and the weights behind it."""
        from isograd.recording.mindspore_optimizers import parameters_of
        from isograd.recording.mindspore_reach import jit_executor_class, optimizer_of
        from isograd.watch.mindspore_calls import is_tensor

        executor, cell = jit_executor_class(), mindspore.nn.Cell
        original, seen = executor.__call__, cell.__call__

        def call(compiled: Any, *args: Any, **kwargs: Any) -> Any:
            optimizer = None if self._depth else optimizer_of(compiled.fn, args)
            if optimizer is None:
                return original(compiled, *args, **kwargs)
            if id(optimizer) not in self._roots:
                self._roots.add(id(optimizer))
                for weight in parameters_of(optimizer):
                    self._write("weights", weight.name, numbers(weight), "mindspore")
            for at, value in enumerate(tree.flatten((args, kwargs), is_tensor)[0]):
                self._write("batch", str(at), numbers(value), "mindspore")
            self._depth += 1
            cell.__call__ = self._plain_call  # which the compiler reads
            try:
                output = original(compiled, *args, **kwargs)
            finally:
                self._depth -= 1
                cell.__call__ = seen
            for value in tree.flatten(output, is_tensor)[0]:
                self._write("output", "the compiled step", numbers(value), "mindspore")
            weights = ((p.name, numbers(p)) for p in parameters_of(optimizer))
            self._stepped("mindspore", weights)
            return output

        executor.__call__ = call

    def _replace_call(
        self,
        owner: Any,
        framework: str,
        tensor: Any,
        numbers: Callable[[Any], Any],
        parts: Callable[[Any], Iterable[tuple[str, Any]]],
        weights: Callable[[Any], Iterable[tuple[str, Any]]],
    ) -> None:
        original = self._plain_call = owner.__call__
        is_optimizer, parameters = _optimizers_of(framework)

        def call(module: Any, *args: Any, **kwargs: Any) -> Any:
            if is_optimizer(module):
                found = original(module, *args, **kwargs)
                self._stepped(framework, ((p.name, numbers(p)) for p in parameters(module)))
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
            if framework == "mindspore" and self._depth == 0:
                self._watch_steps(sys._getframe(1), numbers)
            if isinstance(output, tensor):
                name = self._names.get(id(module), type(module).__name__)
                self._write("output", name, numbers(output), framework)
            return output

        owner.__call__ = call

    def _watch_steps(self, frame: FrameType, numbers: Callable[[Any], Any]) -> None:
        """Steps of optimizers as torch has them, which converted programs bring."""
        from isograd.recording.mindspore_optimizers import optimizers_in_sight, parameters_of

        for one in optimizers_in_sight(frame):
            kind, original = type(one), getattr(type(one), "step", None)
            if kind in self._kinds or original is None:
                continue
            self._kinds.add(kind)

            def step(optimizer: Any, *args: Any, original: Any = original, **kwargs: Any) -> Any:
                found = original(optimizer, *args, **kwargs)
                weights = ((p.name, numbers(p)) for p in parameters_of(optimizer))
                self._stepped("mindspore", weights)
                return found

            kind.step = step

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


def _optimizers_of(framework: str) -> tuple[Callable[[Any], bool], Callable[[Any], list[Any]]]:
    """Whether a module is an optimizer, and what it changes; torch's are no modules."""
    if framework == "torch":
        return (lambda module: False), (lambda module: [])
    from isograd.recording.mindspore_optimizers import is_optimizer, parameters_of

    return is_optimizer, parameters_of


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
