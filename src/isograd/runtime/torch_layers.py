"""torch.nn's linear layers, embeddings, dropouts and shapes, by torch's arguments."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import mindspore as ms  # noqa: TID253
from mindspore import nn, ops  # noqa: TID253

from isograd.runtime import layers, lookups, shapes
from isograd.runtime.starting import init_normal, init_uniform
from isograd.runtime.torch_convolutions import parameter
from isograd.runtime.torch_module import Module, NamedLayer
from isograd.runtime.torch_settings import NEEDED, WithSettings
from isograd.runtime.writing import write


class Identity(Module, nn.Identity):  # type: ignore[misc]
    """torch.nn.Identity: takes any arguments."""

    def construct(self, input: Any) -> Any:
        """The input."""
        return input


class Linear(NamedLayer, nn.Dense):  # type: ignore[misc]
    """torch.nn.Linear."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = parameter(out_features, in_features, dtype=dtype)
        self.bias = parameter(out_features, dtype=dtype) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform by the number of inputs."""
        bound = 1 / math.sqrt(self.in_features) if self.in_features else 0.0
        init_uniform(self.weight, -bound, bound)
        if self.bias is not None:
            init_uniform(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        """Features and whether there is a bias."""
        sizes = f"in_features={self.in_features}, out_features={self.out_features}"
        return f"{sizes}, bias={self.bias is not None}"

    def construct(self, input: Any) -> Any:
        """Rows times the transposed weight, plus the bias."""
        return layers.linear(input, self.weight, self.bias)


class Bilinear(Module, nn.BiDense):  # type: ignore[misc]
    """torch.nn.Bilinear."""

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in1_features, self.in2_features = in1_features, in2_features
        self.out_features = out_features
        bound = 1 / math.sqrt(in1_features)
        self.weight = parameter(out_features, in1_features, in2_features, dtype=dtype)
        self.bias = parameter(out_features, dtype=dtype) if bias else None
        init_uniform(self.weight, -bound, bound)
        if self.bias is not None:
            init_uniform(self.bias, -bound, bound)

    def construct(self, input1: Any, input2: Any) -> Any:
        """One number for each pair of inputs and each output."""
        return ops.bidense(input1, input2, self.weight, self.bias)


class _Table(NamedLayer):
    """Rows by their positions: a normal start, the padding's row zero."""

    def _begin(
        self,
        rows: int,
        columns: int,
        padding_idx: int | None,
        weight: Any,
        dtype: Any = None,
    ) -> None:
        self.num_embeddings, self.embedding_dim = rows, columns
        self.padding_idx = padding_idx if padding_idx is None else padding_idx % rows
        if weight is None:
            self.weight = parameter(rows, columns, dtype=dtype)
            self.reset_parameters()
        else:
            # A copy: a Parameter of a Tensor of a view cannot be assigned to.
            self.weight = ms.Parameter(weight.copy())

    def reset_parameters(self) -> None:
        """Normal, the padding's row zero."""
        init_normal(self.weight)
        if self.padding_idx is not None:
            rows = ops.arange(self.num_embeddings).expand_dims(1) != self.padding_idx
            write(self.weight, self.weight * rows.astype(self.weight.dtype))


class Embedding(_Table, nn.Embedding):  # type: ignore[misc]
    """torch.nn.Embedding: the padding's row is unlearnt."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Any = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self._begin(num_embeddings, embedding_dim, padding_idx, _weight, dtype)
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        self.weight.requires_grad = not _freeze

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Any,
        freeze: bool = True,
        padding_idx: int | None = None,
        *settings: Any,
        **named: Any,
    ) -> Any:
        """A table with these rows."""
        rows, columns = embeddings.shape
        given = {"_weight": embeddings, "_freeze": freeze, **named}
        return cls(rows, columns, padding_idx, *settings, **given)

    def construct(self, input: Any) -> Any:
        """Rows of the table."""
        settings = self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq
        return lookups.embedding(input, self.weight, *settings)


class EmbeddingBag(_Table):
    """torch.nn.EmbeddingBag."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Any = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if scale_grad_by_freq:
            raise NotImplementedError("scale_grad_by_freq has no counterpart for bags")
        self._begin(num_embeddings, embedding_dim, padding_idx, _weight, dtype)
        self.max_norm, self.norm_type = max_norm, norm_type
        self.mode, self.include_last_offset = mode, include_last_offset
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse

    @classmethod
    def from_pretrained(cls, embeddings: Any, freeze: bool = True, **settings: Any) -> Any:
        """Of a matrix, which does not learn if frozen."""
        settings.pop("sparse", None)
        rows, columns = embeddings.shape
        layer = cls(rows, columns, _weight=embeddings, **settings)
        layer.weight.requires_grad = not freeze
        return layer

    def construct(self, input: Any, offsets: Any = None, per_sample_weights: Any = None) -> Any:
        """One row for each bag: a line of positions, or those from an offset."""
        if self.max_norm is not None:
            lookups.shorten_rows(self.weight, input, self.max_norm, self.norm_type)
        settings = self.mode, offsets, per_sample_weights
        more = self.include_last_offset, self.padding_idx
        return lookups.embedding_bag(input, self.weight, *settings, *more)


# ---- dropouts


class AnyDropout(WithSettings):
    """What the dropouts share: a probability."""

    arguments: ClassVar[dict[str, Any]] = {"p": 0.5, "inplace": False}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not 0 <= self.p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {self.p}")


class Dropout(AnyDropout, nn.Dropout):  # type: ignore[misc]
    """torch.nn.Dropout."""

    def construct(self, input: Any) -> Any:
        """Drops elements in training."""
        return layers.dropout(input, self.p, self.training)


class Dropout1d(AnyDropout, nn.Dropout1d):  # type: ignore[misc]
    """torch.nn.Dropout1d."""

    def construct(self, input: Any) -> Any:
        """Drops channels in training."""
        return layers.dropout_channels(input, self.p, self.training, 1)


class Dropout2d(AnyDropout, nn.Dropout2d):  # type: ignore[misc]
    """torch.nn.Dropout2d."""

    def construct(self, input: Any) -> Any:
        """Drops channels in training."""
        return layers.dropout_channels(input, self.p, self.training, 2)


class Dropout3d(AnyDropout, nn.Dropout3d):  # type: ignore[misc]
    """torch.nn.Dropout3d."""

    def construct(self, input: Any) -> Any:
        """Drops channels in training."""
        return layers.dropout_channels(input, self.p, self.training, 3)


class AlphaDropout(AnyDropout):
    """torch.nn.AlphaDropout."""

    def construct(self, input: Any) -> Any:
        """Drops elements in training, to SELU's lowest value."""
        return layers.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(AnyDropout):
    """torch.nn.FeatureAlphaDropout."""

    def construct(self, input: Any) -> Any:
        """Drops channels in training, to SELU's lowest value."""
        return layers.feature_alpha_dropout(input, self.p, self.training)


# ---- shapes


class Flatten(WithSettings, nn.Flatten):  # type: ignore[misc]
    """torch.nn.Flatten."""

    arguments: ClassVar[dict[str, Any]] = {"start_dim": 1, "end_dim": -1}

    def construct(self, input: Any) -> Any:
        """These axes as one."""
        return shapes.flatten(input, self.start_dim, self.end_dim)


class Unflatten(WithSettings, nn.Unflatten):  # type: ignore[misc]
    """torch.nn.Unflatten."""

    arguments: ClassVar[dict[str, Any]] = {"dim": NEEDED, "unflattened_size": NEEDED}

    def construct(self, input: Any) -> Any:
        """One axis as several."""
        return shapes.unflatten(input, self.dim, self.unflattened_size)


class PixelShuffle(WithSettings, nn.PixelShuffle):  # type: ignore[misc]
    """torch.nn.PixelShuffle."""

    arguments: ClassVar[dict[str, Any]] = {"upscale_factor": NEEDED}

    def construct(self, input: Any) -> Any:
        """Channels as pixels."""
        return ops.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(WithSettings, nn.PixelUnshuffle):  # type: ignore[misc]
    """torch.nn.PixelUnshuffle."""

    arguments: ClassVar[dict[str, Any]] = {"downscale_factor": NEEDED}

    def construct(self, input: Any) -> Any:
        """Pixels as channels."""
        return ops.pixel_unshuffle(input, self.downscale_factor)


class ChannelShuffle(WithSettings, nn.ChannelShuffle):  # type: ignore[misc]
    """torch.nn.ChannelShuffle."""

    arguments: ClassVar[dict[str, Any]] = {"groups": NEEDED}

    def construct(self, input: Any) -> Any:
        """Channels of the groups in turn."""
        return shapes.channel_shuffle(input, self.groups)


class Unfold(WithSettings):
    """torch.nn.Unfold."""

    arguments: ClassVar[dict[str, Any]] = {
        "kernel_size": NEEDED, "dilation": 1, "padding": 0, "stride": 1,
    }  # fmt: skip

    def construct(self, input: Any) -> Any:
        """Windows as columns."""
        return shapes.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(WithSettings):
    """torch.nn.Fold."""

    arguments: ClassVar[dict[str, Any]] = {
        "output_size": NEEDED, "kernel_size": NEEDED, "dilation": 1, "padding": 0, "stride": 1,
    }  # fmt: skip

    def construct(self, input: Any) -> Any:
        """Columns added into windows."""
        sizes = (self.output_size, self.kernel_size)
        return shapes.fold(input, *sizes, self.dilation, self.padding, self.stride)
