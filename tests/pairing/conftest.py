"""Structures for the tests: from a few words, from a torch module and from a MindSpore cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from isograd.frameworks.base import CallInfo, ModuleInfo, ParameterInfo, Structure

Network = Callable[..., Structure]

_LAYERS: dict[str, Callable[[list[int]], dict[str, tuple[int, ...]]]] = {
    "Linear": lambda n: {"weight": (n[1], n[0]), "bias": (n[1],)},
    "LinearNoBias": lambda n: {"weight": (n[1], n[0])},
    "Conv2d": lambda n: {"weight": (n[1], n[0], n[2], n[2])},
    "BatchNorm2d": lambda n: {
        "weight": (n[0],),
        "bias": (n[0],),
        "running_mean": (n[0],),
        "running_var": (n[0],),
    },
    "LayerNorm": lambda n: {"weight": (n[0],), "bias": (n[0],)},
    "Embedding": lambda n: {"weight": (n[0], n[1])},
}
_MINDSPORE = {
    "BatchNorm2d": {
        "weight": "gamma",
        "bias": "beta",
        "running_mean": "moving_mean",
        "running_var": "moving_variance",
    },
    "LayerNorm": {"weight": "gamma", "bias": "beta"},
    "Embedding": {"weight": "embedding_table"},
}


def _network(framework: str, *lines: str, used: Sequence[str] = ()) -> Structure:
    """A structure of lines ``name Kind sizes…``; ``name = sizes…`` is a raw parameter.

    used: names of modules in the order of their calls; without them there are no calls.
    """
    modules = {"": ModuleInfo("", "Net", library=False)}
    parameters = []
    for line in lines:
        name, kind, *rest = line.split()
        if kind == "=":
            module, _, attribute = name.rpartition(".")
            _add_containers(modules, module)
            shape = tuple(map(int, rest))
            parameters.append(ParameterInfo(name, module, attribute, shape, "float32", True))
            continue
        _add_containers(modules, name.rpartition(".")[0])
        library = kind in _LAYERS or kind[0] != "_"
        modules[name] = ModuleInfo(name, kind.removesuffix("NoBias").strip("_"), library)
        shapes = _LAYERS[kind](list(map(int, rest))) if kind in _LAYERS else {}
        for role, shape in shapes.items():
            attribute = role
            if framework == "mindspore":
                attribute = _MINDSPORE.get(kind, {}).get(role, role)
            statistic = role.startswith("running")
            parameters.append(
                ParameterInfo(
                    f"{name}.{attribute}",
                    name,
                    attribute,
                    shape,
                    "float32",
                    trainable=not statistic,
                    is_buffer=statistic and framework == "torch",
                )
            )
    calls = [CallInfo("", 0, None, (), ())] if used else []
    counts: dict[str, int] = {}
    for name in used:
        calls.append(CallInfo(name, counts.get(name, 0), 0, (), ((2, 4),)))
        counts[name] = counts.get(name, 0) + 1
    return Structure(framework, tuple(modules.values()), tuple(parameters), tuple(calls))


def _add_containers(modules: dict[str, ModuleInfo], name: str) -> None:
    parts = name.split(".") if name else []
    for depth in range(1, len(parts) + 1):
        path = ".".join(parts[:depth])
        modules.setdefault(path, ModuleInfo(path, "Block", library=False))


def _of_torch(net: Any) -> Structure:
    import torch

    modules = [
        ModuleInfo(name, type(module).__name__, type(module).__module__.startswith("torch."))
        for name, module in net.named_modules()
    ]
    first: dict[int, str] = {}
    parameters = []
    tensors: list[tuple[str, Any, bool]] = [
        *((name, value, False) for name, value in net.named_parameters(remove_duplicate=False)),
        *((name, value, True) for name, value in net.named_buffers()),
    ]
    for name, value, is_buffer in tensors:
        assert isinstance(value, torch.Tensor)
        module, _, attribute = name.rpartition(".")
        known = first.setdefault(id(value), name)
        parameters.append(
            ParameterInfo(
                name,
                module,
                attribute,
                tuple(value.shape),
                str(value.dtype).removeprefix("torch."),
                trainable=value.requires_grad,
                is_buffer=is_buffer,
                tied_to=known if known != name else None,
            )
        )
    return Structure("torch", tuple(modules), tuple(parameters))


def _of_mindspore(net: Any) -> Structure:
    cells = list(net.cells_and_names())
    modules = [
        ModuleInfo(name, type(cell).__name__, type(cell).__module__.startswith("mindspore."))
        for name, cell in cells
    ]
    parameters = []
    for name, cell in cells:
        for attribute, value in cell._params.items():
            if value is None:
                continue
            parameters.append(
                ParameterInfo(
                    f"{name}.{attribute}" if name else attribute,
                    name,
                    attribute,
                    tuple(value.shape),
                    str(value.dtype).lower(),
                    trainable=value.requires_grad,
                )
            )
    return Structure("mindspore", tuple(modules), tuple(parameters))


@pytest.fixture(scope="session")
def network() -> Network:
    """Make a structure from lines of text."""
    return _network


@pytest.fixture(scope="session")
def of_torch() -> Callable[[Any], Structure]:
    """Make a structure from a torch module."""
    pytest.importorskip("torch")
    return _of_torch


@pytest.fixture(scope="session")
def of_mindspore() -> Callable[[Any], Structure]:
    """Make a structure from a MindSpore cell."""
    pytest.importorskip("mindspore")
    return _of_mindspore
