"""Draws valid networks: each statement is executed in torch before it is taken.

NNSmith (Liu et al., ASPLOS 2023) solves constraints for valid models; trying is enough for ours,
because a statement takes microseconds and what torch refuses is drawn again.
"""

from __future__ import annotations

import random
import re
import warnings
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as functional
from catalog import Item, items, snippets, without_layers
from fitting import fitted
from network import Line, Network, Tensor
from torch import nn
from training import draw_ending

_MOST_VALUES = 3000
_LEAST_DEVIATION, _MOST_MAGNITUDE = 1e-3, 50.0
_TRIES = 40
_SHAPES = {2: [(4, 6), (3, 5)], 3: [(2, 4, 6), (3, 6, 8)], 4: [(2, 3, 8, 8), (2, 4, 6, 7)]}
_SHAPES[5] = [(2, 2, 4, 5, 4)]


class RefusedError(Exception):
    """A statement that cannot be part of the network."""


def _target(tensor: Tensor) -> torch.Tensor:
    """A target of this shape and dtype; of classes the first."""
    if tensor.dtype == "float32":
        return torch.randn(tensor.shape)
    return torch.zeros(tensor.shape, dtype=getattr(torch, tensor.dtype))


class Generator:
    """Draws one network.

    native_only: of what MindSpore has as its own layer; most: of how many statements at most.
    """

    def __init__(self, seed: int, native_only: bool = False, most: int = 12) -> None:
        self.draw, self._most = random.Random(seed), most
        self._seed, self._native_only = seed, native_only
        self._container = nn.Module()
        self._space: dict[str, Any] = {"torch": torch, "nn": nn, "F": functional}
        self._space["self"] = self._container
        self._lines: list[Line] = []
        self._tensors: dict[str, Tensor] = {}
        self._values: dict[str, torch.Tensor] = {}
        self._inputs: list[str] = []
        self._number = 0

    def network(self) -> Network:
        """A network of at least two statements."""
        torch.manual_seed(self._seed)
        for _ in range(self.draw.choice([1, 1, 1, 2, 3])):
            self._input(self.draw.choice([2, 3, 3, 4, 4, 4, 5]))
        if self.draw.random() < 0.25:
            self._embedding()
        length = self.draw.randint(max(2, self._most // 6), self._most)
        for _ in range(length * _TRIES):
            if len(self._lines) >= length:
                break
            self._try(self._step())
        read = {name for line in self._lines for name in line.reads}
        ends = [line.result for line in self._lines if line.result not in read]
        if len(ends) > 3:
            ends = ends[-3:]
        reached = self._reached(ends)
        lines = tuple(line for line in self._lines if line.result in reached)
        inputs = tuple(name for name in self._inputs if name in reached)
        if not lines or not inputs:
            return self._another()
        values = [self._values[name] for name in ends]
        returns_dict = len(ends) > 1 and not self._native_only and self.draw.random() < 0.3
        names = [f"output['{n}']" if returns_dict else n for n in ends]
        trains = self._has_parameters(lines)
        ending = draw_ending(self.draw, names, values, returns_dict, trains, self._native_only)
        mode = self.draw.choice(["train", "eval", "both", "both"])
        found = Network(
            self._seed, inputs, lines, self._tensors, tuple(ends), ending, mode, returns_dict
        )
        untouched = self._untouched(found)
        if untouched is None:
            return self._another()
        # MindSpore's optimizers decay what has no gradient, torch's leave it: no equal native port.
        return replace(found, is_native_equal=not untouched)

    def _another(self) -> Network:
        return Generator(self._seed + 7_919_000, self._native_only, self._most).network()

    def _untouched(self, network: Network) -> bool | None:
        """Whether a parameter has no gradient in torch.

        None where torch cannot go back through the network, or has no number to go back with.
        """
        if not network.ending.loss:
            return False
        scope: dict[str, Any] = {}
        exec(network.torch_source(), scope)  # noqa: S102 - our own text
        inputs = [self._values[name].detach().clone() for name in network.inputs]
        values = [
            value.requires_grad_() if value.is_floating_point() else value for value in inputs
        ]
        targets = [_target(tensor) for tensor in network.ending.targets]
        model = scope["build"]()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                loss = scope["loss"](model(*values), *targets)
                if loss.requires_grad:
                    loss.backward()
        except Exception:  # whatever torch refuses is drawn again
            return None
        found = [parameter.grad for parameter in model.parameters()]
        if not all(bool(torch.isfinite(grad).all()) for grad in found if grad is not None):
            return None
        return any(grad is None for grad in found)

    @staticmethod
    def _has_parameters(lines: tuple[Line, ...]) -> bool:
        scope: dict[str, Any] = {"torch": torch, "nn": nn, "F": functional, "self": nn.Module()}
        setup = dict.fromkeys(s for line in lines for s in (*line.classes, *line.setup))
        for statement in setup:
            exec(statement, scope)  # noqa: S102 - our own text
        return any(p.requires_grad for p in scope["self"].parameters())

    def _reached(self, ends: list[str]) -> set[str]:
        reached = set(ends)
        for line in reversed(self._lines):
            if line.result in reached:
                reached.update(line.reads)
        return reached

    # ---- inputs

    def _input(self, rank: int) -> None:
        shape = self.draw.choice(_SHAPES[rank])
        name = f"x{len(self._inputs)}"
        self._inputs.append(name)
        self._keep(name, torch.randn(shape), Tensor(shape))

    def _embedding(self) -> None:
        name = f"x{len(self._inputs)}"
        count, width = self.draw.choice([(7, 4), (11, 6)])
        shape = (3, 5)
        fill = f'fill = "integers"\nlow = 0\nhigh = {count}'
        self._inputs.append(name)
        self._keep(name, torch.randint(0, count, shape), Tensor(shape, "int64", fill))
        layer = self._fresh("embed")
        padding = self.draw.choice(["", "", ", padding_idx=0"])
        self._try(
            Line(
                self._fresh("v"),
                f"self.{layer}({name})",
                (name,),
                (f"self.{layer} = nn.Embedding({count}, {width}{padding})",),
                native_code=f"self.{layer}({name})",
                native_setup=None
                if padding
                else (f"self.{layer} = nn.Embedding({count}, {width})",),
                api="nn.Embedding",
            )
        )

    def _keep(self, name: str, value: torch.Tensor, tensor: Tensor | None = None) -> None:
        self._values[name] = self._space[name] = value
        dtype = str(value.dtype).rpartition(".")[2]
        self._tensors[name] = tensor or Tensor(tuple(value.shape), dtype)

    def _fresh(self, word: str) -> str:
        self._number += 1
        return f"{word}{self._number}"

    # ---- statements

    def _try(self, line: Line | None) -> bool:
        """Execute a statement and keep it if it yields a fair tensor."""
        if line is None or (self._native_only and not line.has_native):
            return False
        try:
            with warnings.catch_warnings(), torch.no_grad():
                warnings.simplefilter("ignore")
                for statement in (*line.classes, *line.setup):
                    exec(statement, self._space)  # noqa: S102 - our own text
                if "\n" in line.code or "for " in line.code:
                    exec(line.code, self._space)  # noqa: S102
                    value = self._space[line.result]
                else:
                    value = eval(line.code, self._space)  # noqa: S307
            self._require_fair(value)
        except Exception:  # whatever torch refuses is drawn again
            return False
        code = line.code if "\n" in line.code else f"{line.result} = {line.code}"
        native = line.native_code
        if native is not None and "\n" not in native:
            native = f"{line.result} = {native}"
        kept = Line(
            line.result,
            code,
            line.reads,
            line.setup,
            line.classes,
            native,
            line.native_setup,
            line.api,
        )
        self._lines.append(kept)
        self._keep(line.result, value)
        return True

    @staticmethod
    def _require_fair(value: Any) -> None:
        if not isinstance(value, torch.Tensor) or value.dtype != torch.float32:
            raise RefusedError
        if not 0 < value.numel() <= _MOST_VALUES or value.dim() < 2 or value.dim() > 5:
            raise RefusedError
        if not torch.isfinite(value).all() or value.abs().max() > _MOST_MAGNITUDE:
            raise RefusedError
        if value.numel() > 1 and value.std() < _LEAST_DEVIATION:
            raise RefusedError

    def _step(self) -> Line | None:
        kinds = ["item"] * 24 + ["again", "sequential", "list", "block", "tied", "dictionary"]
        if not self._native_only:
            kinds += ["snippet"] * 10
        return getattr(self, f"_{self.draw.choice(kinds)}")()  # type: ignore[no-any-return]

    def _recent(self) -> str | None:
        """A value to go on from: mostly the last."""
        names = [n for n, v in self._values.items() if v.is_floating_point()]
        if not names:
            return None
        return names[-1] if self.draw.random() < 0.6 else self.draw.choice(names)

    def _partner(self, name: str) -> str:
        shape = self._values[name].shape
        return self.draw.choice([n for n, v in self._values.items() if v.shape == shape])

    def _chosen(self, rank: int, wanted: str = "") -> Item | None:
        found = [i for i in items() if rank in i.ranks]
        if wanted == "layer":
            found = [i for i in found if i.is_layer and i.call == "{m}({x})"]
        if self._native_only:
            found = [i for i in found if i.native]
        weights = [i.weight for i in found]
        return self.draw.choices(found, weights)[0] if found else None

    def _item(self) -> Line | None:
        name = self._recent()
        item = self._chosen(self._values[name].dim()) if name else None
        if name is None or item is None or not item.takes(self._values[name].shape):
            return None
        texts = item.arguments(self._values[name].shape, self.draw)
        other = self._partner(name)
        result = self._fresh("v")
        texts |= {"x": name, "y": other, "n": result[1:]}
        reads = (name, other) if "{y}" in item.torch + item.call else (name,)
        if not item.is_layer:
            code = item.torch.format(**texts)
            native = item.native_text(texts)
            setup = tuple(item.buffer.format(**texts).split("\n")) if item.buffer else ()
            api = item.torch.partition("(")[0].format(**texts | {"x": "x", "y": "y"})
            own = () if not item.buffer else None
            return Line(result, code, reads, setup, (), native, own, api)
        layer = self._fresh("layer")
        call = item.call.format(**texts, m=f"self.{layer}")
        setup = (f"self.{layer} = {item.torch.format(**texts)}",)
        theirs = item.native_text(texts)
        own = (f"self.{layer} = {theirs}",) if theirs else None
        api = item.torch.partition("(")[0].format(**texts)
        return Line(result, call, reads, setup, (), call, own, api)

    def _again(self) -> Line | None:
        """A layer that is used already, on another value of the same shape."""
        used = [n for n in self._lines if n.setup and len(n.reads) == 1 and "\n" not in n.code]
        if not used:
            return None
        line = self.draw.choice(used)
        other = self._partner(line.reads[0])
        result = self._fresh("v")
        code, native = (
            None
            if text is None
            else re.sub(rf"\b{line.reads[0]}\b", other, text.partition(" = ")[2])
            for text in (line.code, line.native_code)
        )
        assert code is not None
        return Line(
            result, code, (other,), line.setup, line.classes, native, line.native_setup, line.api
        )

    def _layers(self, shape: tuple[int, ...], count: int) -> list[tuple[str, str | None]]:
        """Constructors of layers that can follow one another."""
        value = torch.randn(shape)
        found: list[tuple[str, str | None]] = []
        for _ in range(count * 10):
            item = self._chosen(value.dim(), "layer")
            if item is None:
                raise RefusedError
            texts = item.arguments(tuple(value.shape), self.draw)
            text = item.torch.format(**texts)
            try:
                value = eval(text, self._space)(value)  # noqa: S307 - our own text
            except Exception:  # noqa: S112 - whatever torch refuses is drawn again
                continue
            found.append((text, item.native_text(texts)))
            if len(found) == count:
                return found
        raise RefusedError

    def _sequential(self) -> Line | None:
        return self._container_of("nn.Sequential({})", "nn.SequentialCell({})", 3, "self.{}({})")

    def _dictionary(self) -> Line | None:
        return self._container_of(
            "nn.ModuleDict({{'a': nn.Sequential({0}), 'b': nn.Sequential({0})}})",
            "",
            1,
            "self.{0}['a']({1}) + self.{0}['b']({1})",
        )

    def _container_of(self, torch_text: str, native: str, count: int, call: str) -> Line | None:
        name = self._recent()
        if name is None:
            return None
        try:
            layers = self._layers(tuple(self._values[name].shape), count)
        except RefusedError:
            return None
        own = self._fresh("body")
        natives = [n for _, n in layers if n]
        setup = f"self.{own} = {torch_text.format(', '.join(t for t, _ in layers))}"
        native_setup = None
        if native and len(natives) == len(layers):
            native_setup = (f"self.{own} = {native.format(', '.join(natives))}",)
        code = call.format(own, name)
        return Line(
            self._fresh("v"), code, (name,), (setup,), (), code, native_setup, "nn.Sequential"
        )

    def _list(self) -> Line | None:
        name = self._recent()
        if name is None:
            return None
        width = self._values[name].shape[-1]
        own, result = self._fresh("stack"), self._fresh("v")
        loop = f"for layer in self.{own}:\n    {result} = torch.tanh(layer({result}))"
        code = f"{result} = {name}\n{loop}"
        return Line(
            result,
            code,
            (name,),
            (f"self.{own} = nn.ModuleList([nn.Linear({width}, {width}) for _ in range(2)])",),
            (),
            code.replace("torch.tanh", "ops.tanh"),
            (f"self.{own} = nn.CellList([nn.Dense({width}, {width}) for _ in range(2)])",),
            "nn.ModuleList",
        )

    def _block(self) -> Line | None:
        """Two modules of one class, one after the other, with a residual inside."""
        name = self._recent()
        if name is None:
            return None
        shape = tuple(self._values[name].shape)
        try:
            layers = self._layers(shape, 2)
        except RefusedError:
            return None
        kind, own = self._fresh("Block"), self._fresh("block")
        source = (
            f"class {kind}(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            f"        self.first = {layers[0][0]}\n        self.second = {layers[1][0]}\n\n"
            "    def forward(self, x):\n        return x + self.second(F.relu(self.first(x)))\n\n"
        )
        setup = (f"self.{own}a = {kind}()", f"self.{own}b = {kind}()")
        code = f"self.{own}b(self.{own}a({name}))"
        return Line(self._fresh("v"), code, (name,), setup, (source,), api="block")

    def _tied(self) -> Line | None:
        name = self._recent()
        if name is None:
            return None
        width = self._values[name].shape[-1]
        own = self._fresh("tied")
        setup = [f"self.{own}a = nn.Linear({width}, {width})"]
        code = f"F.linear(torch.tanh(self.{own}a({name})), self.{own}a.weight)"
        if self.draw.random() < 0.5:
            setup += [f"self.{own}b = nn.Linear({width}, {width})"]
            setup += [f"self.{own}b.weight = self.{own}a.weight"]
            code = f"self.{own}b(torch.tanh(self.{own}a({name})))"
        return Line(self._fresh("v"), code, (name,), tuple(setup), api="tied weights")

    def _snippet(self) -> Line | None:
        """An example of the knowledge, its real inputs made from a value of the network."""
        snippet = self.draw.choice(snippets())
        name = self._recent()
        if name is None or not without_layers(snippet):
            return None
        source = (name, self._values[name].numel())
        return fitted(snippet, self._space, self._fresh("v"), source, self._seed)
