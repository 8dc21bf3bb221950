"""torch.nn's lazy layers: their first input shows the size that was not given."""

from __future__ import annotations

from typing import Any

from isograd.runtime import torch_convolutions, torch_norms
from isograd.runtime.state_dicts import load_own
from isograd.runtime.torch_layers import Linear
from isograd.runtime.torch_module import Module
from isograd.runtime.writing import write


class LazyLayer(Module):
    """What the lazy layers share.

    The first call gives the Parameters their shapes and draws their values; they stay the same
    Parameters, so that an optimizer that has them learns them.
    """

    eager: Any = None
    #: How many of the layer's arguments stand before `groups`.
    before_groups = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        place = self.before_groups
        groups = args[place] if place and len(args) > place else kwargs.get("groups", 1)
        super().__init__(groups, *args, **kwargs)
        object.__setattr__(self, "_given", (args, kwargs))

    def size_of(self, input: Any) -> int:
        """The number of channels."""
        return int(input.shape[1])

    def construct(self, input: Any, *more: Any, **named: Any) -> Any:
        """The first result, as a layer of the size that was not given; from then on it is one."""
        self._become(self.size_of(input))
        return self.construct(input, *more, **named)

    def _become(self, size: int) -> None:
        args, kwargs = self._given
        made = self.eager(size, *args, **kwargs)
        for name, parameter in made._params.items():
            if parameter is not None:
                write(self._params[name], parameter)
        for name in ("in_features", "in_channels", "num_features"):
            if hasattr(made, name):
                setattr(self, name, getattr(made, name))
        self.__class__ = self.eager

    def size_in(self, weight: Any) -> int:
        """The number of channels that a weight of a checkpoint is of."""
        return int(weight.shape[0])

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        """A checkpoint shows the size, too."""
        held = [state_dict.get(f"{prefix}{name}") for name in ("weight", "running_mean")]
        found = next((values for values in held if values is not None), None)
        if found is not None:
            self._become(self.size_in(found))
        load_own(self, state_dict, prefix, *rest)


class LazyLinear(LazyLayer, Linear):
    """torch.nn.LazyLinear."""

    eager = Linear

    def size_of(self, input: Any) -> int:
        """The length of the last axis."""
        return int(input.shape[-1])

    def size_in(self, weight: Any) -> int:
        """The length of a row."""
        return int(weight.shape[1])


class LazyConvolution(LazyLayer):
    """What the lazy convolutions share."""

    before_groups = 5

    def size_of(self, input: Any) -> int:
        """The number of channels, with or without a batch axis."""
        return int(input.shape[-1 - self.eager.dimensions])

    def size_in(self, weight: Any) -> int:
        """The number of channels that a kernel takes."""
        shape = weight.shape
        return int(shape[0] if self.eager.transposed else shape[1] * self.groups)


class LazyConv1d(LazyConvolution, torch_convolutions.Conv1d):
    """torch.nn.LazyConv1d."""

    eager = torch_convolutions.Conv1d


class LazyConv2d(LazyConvolution, torch_convolutions.Conv2d):
    """torch.nn.LazyConv2d."""

    eager = torch_convolutions.Conv2d


class LazyConv3d(LazyConvolution, torch_convolutions.Conv3d):
    """torch.nn.LazyConv3d."""

    eager = torch_convolutions.Conv3d


class LazyConvTranspose1d(LazyConvolution, torch_convolutions.ConvTranspose1d):
    """torch.nn.LazyConvTranspose1d."""

    eager = torch_convolutions.ConvTranspose1d


class LazyConvTranspose2d(LazyConvolution, torch_convolutions.ConvTranspose2d):
    """torch.nn.LazyConvTranspose2d."""

    eager = torch_convolutions.ConvTranspose2d


class LazyConvTranspose3d(LazyConvolution, torch_convolutions.ConvTranspose3d):
    """torch.nn.LazyConvTranspose3d."""

    eager = torch_convolutions.ConvTranspose3d


class LazyBatchNorm1d(LazyLayer, torch_norms.BatchNorm1d):
    """torch.nn.LazyBatchNorm1d."""

    eager = torch_norms.BatchNorm1d


class LazyBatchNorm2d(LazyLayer, torch_norms.BatchNorm2d):
    """torch.nn.LazyBatchNorm2d."""

    eager = torch_norms.BatchNorm2d


class LazyBatchNorm3d(LazyLayer, torch_norms.BatchNorm3d):
    """torch.nn.LazyBatchNorm3d."""

    eager = torch_norms.BatchNorm3d


class LazyInstanceNorm1d(LazyLayer, torch_norms.InstanceNorm1d):
    """torch.nn.LazyInstanceNorm1d."""

    eager = torch_norms.InstanceNorm1d


class LazyInstanceNorm2d(LazyLayer, torch_norms.InstanceNorm2d):
    """torch.nn.LazyInstanceNorm2d."""

    eager = torch_norms.InstanceNorm2d


class LazyInstanceNorm3d(LazyLayer, torch_norms.InstanceNorm3d):
    """torch.nn.LazyInstanceNorm3d."""

    eager = torch_norms.InstanceNorm3d
