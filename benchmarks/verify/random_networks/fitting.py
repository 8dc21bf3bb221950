"""Makes an example of the knowledge a statement: its inputs come from a value of the network."""

from __future__ import annotations

import math
import re
import warnings
from dataclasses import dataclass, field
from typing import Any

import torch
from catalog import Snippet, names_of
from network import Line
from torch import nn

from isograd.knowledge.check.drawing import draw

_MOST_WEIGHTS = 40_000


@dataclass
class _Block:
    """The statements of one example, and how it calls its inputs."""

    setup: list[str] = field(default_factory=list)
    code: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)


def fitted(
    snippet: Snippet, space: dict[str, Any], result: str, source: tuple[str, int], seed: int
) -> Line | None:
    """The example on inputs that a linear layer makes of a value; None where that cannot be.

    space: the names of the network so far.  source: the value and how many elements it has.
    """
    block = _inputs(snippet, result, source, seed)
    if block is None or not block.setup:
        return None
    if snippet.layer:
        block.setup.append(f"self.layer_{result} = {snippet.layer}")
        block.texts["LAYER"] = f"self.layer_{result}"
    text = _renamed(snippet.code, block.texts)
    block.code.append(f"{result} = {text}")
    value = _tried(space, block, result)
    if isinstance(value, (tuple, list)):
        places = [i for i, v in enumerate(value) if _is_real(v)]
        if not places:
            return None
        block.code[-1] = f"{result} = ({text})[{places[0]}]"
        value = value[places[0]]
    if not isinstance(value, torch.Tensor) or value.is_complex():
        return None
    if value.dtype != torch.float32:
        block.code.append(f"{result} = {result}.float()")
    if value.dim() < 2:
        block.code.append(f"{result} = {result}.reshape(1, -1)")
    code = "\n".join(block.code)
    return Line(result, code, (source[0],), tuple(block.setup), api=snippet.api)


def _inputs(snippet: Snippet, result: str, source: tuple[str, int], seed: int) -> _Block | None:
    """Real inputs from the source, whole and boolean ones as buffers, numbers as they are."""
    block, (name, count) = _Block(), source
    used = set(names_of(snippet.code))
    for given, expression in snippet.inputs:
        if given not in used:
            continue
        value = draw(given, expression, seed)
        own = block.texts[given] = f"{given}_{result}"
        if not hasattr(value, "shape"):
            block.code.append(f"{own} = {value!r}")
        elif value.dtype.kind == "f" and not expression.startswith("definite"):
            size = math.prod(value.shape)
            if count * size > _MOST_WEIGHTS or value.dtype.itemsize != 4:
                return None
            block.setup.append(f"self.fit_{own} = nn.Linear({count}, {size})")
            made = f"self.fit_{own}({name}.flatten()).reshape({tuple(value.shape)})"
            if value.ndim and value.shape[-1] > 2 and (value[..., 1:] >= value[..., :-1]).all():
                made = f"torch.sort({made})[0]"  # edges of bins, for example, line by line
            block.code.append(f"{own} = {_within(made, value.min(), value.max(), expression)}")
        else:
            kept = f"torch.tensor({value.tolist()}, dtype=torch.{value.dtype})"
            block.setup.append(f"self.register_buffer('{own}', {kept})")
            block.code.append(f"{own} = self.{own}")
    return block


def _is_real(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _within(text: str, low: float, high: float, expression: str) -> str:
    """The same between the bounds that the example's input has."""
    if expression.startswith("uniform"):
        numbers = re.findall(r"-?\d+\.?\d*", expression)[:2]
        low, high = float(numbers[0]), float(numbers[1])
        return f"{low} + {high - low:.4g} * torch.sigmoid({text})"
    return text if low < 0 < high else f"torch.sigmoid({text})"


def _renamed(code: str, texts: dict[str, str]) -> str:
    for name, text in texts.items():
        code = re.sub(rf"(?<![\w.'\"]){name}\b(?!\s*=[^=])", text, code)
    return code


def _tried(space: dict[str, Any], block: _Block, result: str) -> Any:
    """What the statements yield in torch; None where it refuses."""
    names = {**space, "self": nn.Module()}
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            for statement in (*block.setup, *block.code):
                exec(statement, names)  # noqa: S102 - our own text
    except Exception:  # whatever torch refuses is drawn again
        return None
    return names[result]
