"""Runs the examples of aten.toml with torch: `python aten_torch.py OUT_FOLDER`.

Writes every example's arguments by ATen's names, and its result and gradients as arrays.
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from isograd.convert.graph.operators import operators
from isograd.knowledge.check.drawing import Drawer, output_weights


def arguments_of(text: str, drawer: Drawer) -> tuple[list[Any], dict[str, Any]]:
    known = {key: getattr(drawer, key) for key in dir(drawer) if not key.startswith("_")}
    call = ast.parse(f"f({text})", mode="eval").body
    assert isinstance(call, ast.Call)

    def value(node: ast.expr) -> Any:
        code = compile(ast.Expression(node), "<example>", "eval")
        return eval(code, {"np": np, "torch": torch, **known})

    return [value(a) for a in call.args], {str(k.arg): value(k.value) for k in call.keywords}


class Example:
    def __init__(self, target: str, number: int, text: str, with_gradient: bool) -> None:
        self.key = f"{target}#{number}"
        self.arrays: dict[str, Any] = {}
        self._leaves: dict[str, Any] = {}
        self._with_gradient = with_gradient
        packet, overload = target.removeprefix("aten.").rsplit(".", 1)
        operator = getattr(getattr(torch.ops.aten, packet), overload)
        args, kwargs = arguments_of(text, Drawer(0, self.key))
        named = {
            a.name: args[i] if i < len(args) else kwargs[a.name]
            for i, a in enumerate(operator._schema.arguments)
            if i < len(args) or a.name in kwargs
        }
        self.sources = {name: self._source(value, name) for name, value in named.items()}
        self._run(operator, args, kwargs)

    def _source(self, value: Any, name: str) -> str:
        if isinstance(value, np.ndarray):
            self.arrays[f"{self.key}/in/{name}"] = value
            return name
        if isinstance(value, (list, tuple)):
            parts = [self._source(part, f"{name}_{i}") for i, part in enumerate(value)]
            return f"({', '.join(parts)},)"
        if isinstance(value, torch.dtype):
            return f"ms.{str(value).removeprefix('torch.')}"
        return repr(value)

    def _tensor(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            found = torch.from_numpy(value.copy())
            name = next(k for k, v in self.arrays.items() if v is value)
            is_fixed = "/in/running_" in name
            if found.is_floating_point() and self._with_gradient and not is_fixed:
                found.requires_grad_()
            self._leaves[name.replace("/in/", "/gradient/")] = found
            return found
        return [self._tensor(v) for v in value] if isinstance(value, list) else value

    def _run(self, operator: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
        result = operator(
            *[self._tensor(a) for a in args], **{k: self._tensor(v) for k, v in kwargs.items()}
        )
        results = list(result) if isinstance(result, (tuple, list)) else [result]
        total = None
        for number, part in enumerate(results):
            self.arrays[f"{self.key}/out/{number}"] = part.detach().numpy()
            if part.requires_grad:
                weights = torch.from_numpy(output_weights(tuple(part.shape), number, 0))
                part = (part * weights.to(part.dtype)).sum()
                total = part if total is None else total + part
        if total is not None:
            total.backward()
            for name, leaf in self._leaves.items():
                if leaf.grad is not None:
                    self.arrays[name] = leaf.grad.numpy()


def main() -> None:
    folder = Path(sys.argv[1])
    arrays: dict[str, Any] = {}
    sources: dict[str, Any] = {}
    problems: dict[str, str] = {}
    for target, row in operators().items():
        for number, text in enumerate(row.examples):
            try:
                example = Example(target, number, text, row.gradient)
            except Exception as error:
                problems[f"{target}#{number}"] = f"torch: {type(error).__name__}: {error}"
                continue
            arrays.update(example.arrays)
            sources[example.key] = example.sources
    np.savez(folder / "torch.npz", **arrays)
    (folder / "sources.json").write_text(json.dumps(sources))
    (folder / "problems.json").write_text(json.dumps(problems))


if __name__ == "__main__":
    main()
