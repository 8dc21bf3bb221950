"""A copied network is one of its own, with the functions that it keeps."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from isograd.frameworks.torch.copying import copied  # noqa: E402


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.ModuleDict({"first": torch.nn.Linear(3, 3)})
        modules = self.inner
        self.closed = lambda x: modules["first"](x)
        self.defaulted = lambda x, part=self.inner: part["first"](x)
        self.listed = [torch.sin, lambda x: self.closed(x)]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.closed(x) + self.defaulted(x) + self.listed[1](x)


def test_functions_of_a_copy_call_the_copys_modules() -> None:
    original = Block()
    wide = copied(original).double()
    x = torch.randn(2, 3)
    torch.testing.assert_close(wide(x.double()).float(), original(x))
    assert original.inner["first"].weight.dtype is torch.float32
    assert wide.listed[0] is torch.sin


class Watched(nn.Module):
    """What a layer gave is read from where the network's own hook has put it."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, torch.Tensor] = {}
        self.layer = nn.Linear(3, 3)
        self.layer.register_forward_hook(self.noting("layer"))

    def noting(self, name: str) -> Callable[..., None]:
        def note(module: nn.Module, inputs: object, output: torch.Tensor) -> None:
            self.seen[name] = output.mean()

        return note

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x) + self.seen["layer"]


def test_a_hook_of_a_copy_writes_to_the_copy() -> None:
    original = Watched()
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.equal(copied(original)(x), original(x))
