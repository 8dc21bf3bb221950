"""A random network as a value, and the files that a case of `isograd verify` is made of."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, replace
from pathlib import Path

TORCH_HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"
NATIVE_HEAD = "import mindspore as ms\nfrom mindspore import nn, ops, mint\nimport numpy as np\n"


@dataclass(frozen=True)
class Tensor:
    """A value of the network: shape, dtype, and how an input of this kind is filled."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    fill: str = ""

    def table(self) -> str:
        """The tensor as an entry of a case file."""
        return f'shape = {list(self.shape)}\ndtype = "{self.dtype}"\n{self.fill}\n'


@dataclass(frozen=True)
class Line:
    """One statement of the forward pass, with what it needs in the constructor.

    result: the value that `code` assigns; reads: values that it uses.  setup: statements of the
    constructor, each once; several lines may need the same.  classes: classes before the network.
    native_code, native_setup: MindSpore's own, or None.  api: what it is made of, for the table.
    """

    result: str
    code: str
    reads: tuple[str, ...]
    setup: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    native_code: str | None = None
    native_setup: tuple[str, ...] | None = None
    api: str = ""

    @property
    def has_native(self) -> bool:
        """Whether MindSpore's own layers can say the same."""
        return self.native_code is not None and self.native_setup is not None


@dataclass(frozen=True)
class Ending:
    """How a network is trained: texts of the loss and of the optimizer, and the loss's targets."""

    loss: str = ""
    native_loss: str | None = None
    targets: tuple[Tensor, ...] = ()
    optimizer: str = ""
    native_optimizer: str | None = None


@dataclass(frozen=True)
class Network:
    """Everything that a case is written from; `tensors` knows each value's shape by name.

    is_native_equal: whether MindSpore's optimizers do with all parameters what torch's do.
    """

    seed: int
    inputs: tuple[str, ...]
    lines: tuple[Line, ...]
    tensors: dict[str, Tensor]
    outputs: tuple[str, ...]
    ending: Ending
    mode: str = "both"
    returns_dict: bool = False
    is_native_equal: bool = True

    @property
    def has_native(self) -> bool:
        """Whether the whole network can be written in MindSpore's own layers."""
        ending = self.ending
        return (
            self.is_native_equal
            and all(line.has_native for line in self.lines)
            and ending.native_loss is not None
            and ending.native_optimizer is not None
        )

    def part(self, kept: set[int]) -> Network:
        """The network of some lines alone: what they read from others becomes an input."""
        lines = tuple(line for i, line in enumerate(self.lines) if i in kept)
        made: set[str] = set()
        inputs: list[str] = []
        for line in lines:
            inputs += [n for n in dict.fromkeys(line.reads) if n not in made and n not in inputs]
            made.add(line.result)
        read = {name for line in lines for name in line.reads}
        outputs = tuple(line.result for line in lines if line.result not in read)
        return replace(self, inputs=tuple(inputs), lines=lines, outputs=outputs)

    def _returned(self) -> str:
        if self.returns_dict:
            return "{" + ", ".join(f"'{n}': {n}" for n in self.outputs) + "}"
        return ", ".join(self.outputs)

    def torch_source(self) -> str:
        """The network in torch."""
        setup = dict.fromkeys(s for line in self.lines for s in line.setup)
        classes = dict.fromkeys(c for line in self.lines for c in line.classes)
        body = [line.code for line in self.lines]
        return _source(
            TORCH_HEAD,
            list(classes),
            ("nn.Module", "forward", list(setup), body, self.inputs, self._returned()),
            (self.ending.loss, self.ending.optimizer),
        )

    def native_source(self) -> str:
        """The network in MindSpore's own layers."""
        assert self.has_native
        setup = dict.fromkeys(s for line in self.lines for s in line.native_setup or ())
        body = [line.native_code or "" for line in self.lines]
        return _source(
            NATIVE_HEAD,
            [],
            ("nn.Cell", "construct", list(setup), body, self.inputs, self._returned()),
            (self.ending.native_loss or "", self.ending.native_optimizer or ""),
        )

    def case(self, port: str) -> str:
        """The case file; port: path of the port's file."""
        loss = '\nloss = "net.py:loss"' if self.ending.loss else ""
        optimizer = '\noptimizer = "net.py:optimizer"' if self.ending.optimizer else ""
        parts = [f'[reference]\nframework = "torch"\nmodel = "net.py:build"{loss}{optimizer}\n']
        theirs = (loss + optimizer).replace("net.py", port)
        parts.append(f'[port]\nframework = "mindspore"\nmodel = "{port}:build"{theirs}\n')
        for number, name in enumerate(self.inputs):
            seed = f"seed = {number}"
            parts.append(f"[[inputs]]\n{self.tensors[name].table()}{seed}\n")
        parts += [f"[[targets]]\n{target.table()}" for target in self.ending.targets]
        parts.append(f'[verify]\nmode = "{self.mode}"\nsteps = 3\ncompiled = "off"\n')
        return "\n".join(parts)

    def write(self, folder: Path) -> None:
        """Write the network and, where there is one, its native port with its case."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "net.py").write_text(self.torch_source())
        (folder / "case.toml").write_text(self.case("port/net.py"))
        if self.has_native:
            (folder / "native.py").write_text(self.native_source())
            (folder / "native.toml").write_text(self.case("native.py"))


def _source(
    head: str,
    classes: list[str],
    network: tuple[str, str, list[str], list[str], tuple[str, ...], str],
    ending: tuple[str, str],
) -> str:
    base, method, setup, body, inputs, returned = network
    lines = [head, "", *classes, f"class Net({base}):", "    def __init__(self):"]
    lines.append("        super().__init__()")
    lines += [textwrap.indent(statement, " " * 8) for statement in setup]
    lines += ["", f"    def {method}(self, {', '.join(inputs)}):"]
    lines += [textwrap.indent(statement, " " * 8) for statement in body]
    lines += [f"        return {returned}", "", "", "def build():", "    return Net()", ""]
    loss, optimizer = ending
    if loss:
        lines += ["", textwrap.dedent(loss).strip(), ""]
    if optimizer:
        lines += ["", "def optimizer(model):", f"    return {optimizer}", ""]
    return "\n".join(lines)
