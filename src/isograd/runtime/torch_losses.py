"""torch.nn's losses and distances, by torch's arguments; the settings go to the functions."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from mindspore import nn, ops  # noqa: TID253

from isograd.runtime import losses, reductions, torch_functions
from isograd.runtime.torch_layers import Linear
from isograd.runtime.torch_module import Module
from isograd.runtime.torch_settings import WithSettings

#: torch's retired arguments, in the place where they stand.
_OLD = {"size_average": None, "reduce": None}
#: Settings that torch's losses hold as buffers, so that a checkpoint has them.
_BUFFERS = {"weight", "pos_weight"}


class AnyLoss(WithSettings):
    """What the losses share: a reduction, also by torch's retired arguments."""

    arguments: ClassVar[dict[str, Any]] = {**_OLD, "reduction": "mean"}
    inputs: ClassVar[tuple[str, ...]] = ("input", "target")
    function: Any = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in _BUFFERS & self.arguments.keys():
            value = getattr(self, name)
            delattr(self, name)
            self.register_buffer(name, value)
        average, reduce = getattr(self, "size_average", None), getattr(self, "reduce", None)
        if average is not None or reduce is not None:
            whole = "sum" if average is False else "mean"
            self.reduction = "none" if reduce is False else whole

    def construct(self, *inputs: Any, **named: Any) -> Any:
        """The loss of the inputs, by their places or torch's names."""
        inputs += tuple(named[name] for name in self.inputs[len(inputs) :])
        settings = {key: getattr(self, key) for key in self.arguments if key not in _OLD}
        return type(self).function(*inputs, **settings)


class AnyWeightedLoss(AnyLoss):
    """What the losses with a weight for each class share."""

    arguments: ClassVar[dict[str, Any]] = {"weight": None, **_OLD, "reduction": "mean"}


class CrossEntropyLoss(AnyLoss, nn.CrossEntropyLoss):  # type: ignore[misc]
    """torch.nn.CrossEntropyLoss."""

    arguments: ClassVar[dict[str, Any]] = {
        "weight": None, "size_average": None, "ignore_index": -100, "reduce": None,
        "reduction": "mean", "label_smoothing": 0.0,
    }  # fmt: skip
    function = staticmethod(losses.cross_entropy)


class NLLLoss(AnyLoss, nn.NLLLoss):  # type: ignore[misc]
    """torch.nn.NLLLoss."""

    arguments: ClassVar[dict[str, Any]] = {
        "weight": None, "size_average": None, "ignore_index": -100, "reduce": None,
        "reduction": "mean",
    }  # fmt: skip
    function = staticmethod(losses.nll_loss)


class MSELoss(AnyLoss, nn.MSELoss):  # type: ignore[misc]
    """torch.nn.MSELoss."""

    function = staticmethod(losses.mse_loss)


class L1Loss(AnyLoss, nn.L1Loss):  # type: ignore[misc]
    """torch.nn.L1Loss."""

    function = staticmethod(losses.l1_loss)


class SmoothL1Loss(AnyLoss, nn.SmoothL1Loss):  # type: ignore[misc]
    """torch.nn.SmoothL1Loss."""

    arguments: ClassVar[dict[str, Any]] = {**_OLD, "reduction": "mean", "beta": 1.0}
    function = staticmethod(losses.smooth_l1_loss)


class HuberLoss(AnyLoss, nn.HuberLoss):  # type: ignore[misc]
    """torch.nn.HuberLoss."""

    arguments: ClassVar[dict[str, Any]] = {"reduction": "mean", "delta": 1.0}
    function = staticmethod(torch_functions.huber_loss)


class BCELoss(AnyWeightedLoss, nn.BCELoss):  # type: ignore[misc]
    """torch.nn.BCELoss."""

    function = staticmethod(losses.binary_cross_entropy)


class BCEWithLogitsLoss(AnyLoss, nn.BCEWithLogitsLoss):  # type: ignore[misc]
    """torch.nn.BCEWithLogitsLoss."""

    arguments: ClassVar[dict[str, Any]] = {
        "weight": None, **_OLD, "reduction": "mean", "pos_weight": None,
    }  # fmt: skip
    function = staticmethod(losses.binary_cross_entropy_with_logits)


class MultiMarginLoss(AnyLoss, nn.MultiMarginLoss):  # type: ignore[misc]
    """torch.nn.MultiMarginLoss."""

    arguments: ClassVar[dict[str, Any]] = {
        "p": 1, "margin": 1.0, "weight": None, **_OLD, "reduction": "mean",
    }  # fmt: skip
    function = staticmethod(losses.multi_margin_loss)


class KLDivLoss(AnyLoss, nn.KLDivLoss):  # type: ignore[misc]
    """torch.nn.KLDivLoss."""

    arguments: ClassVar[dict[str, Any]] = {**_OLD, "reduction": "mean", "log_target": False}
    function = staticmethod(losses.kl_div)


class SoftMarginLoss(AnyLoss, nn.SoftMarginLoss):  # type: ignore[misc]
    """torch.nn.SoftMarginLoss."""

    function = staticmethod(losses.soft_margin_loss)


class PoissonNLLLoss(AnyLoss, nn.PoissonNLLLoss):  # type: ignore[misc]
    """torch.nn.PoissonNLLLoss."""

    inputs: ClassVar[tuple[str, ...]] = ("log_input", "target")
    arguments: ClassVar[dict[str, Any]] = {
        "log_input": True, "full": False, "size_average": None, "eps": 1e-8, "reduce": None,
        "reduction": "mean",
    }  # fmt: skip
    function = staticmethod(losses.poisson_nll_loss)


class GaussianNLLLoss(AnyLoss, nn.GaussianNLLLoss):  # type: ignore[misc]
    """torch.nn.GaussianNLLLoss."""

    inputs: ClassVar[tuple[str, ...]] = ("input", "target", "var")
    arguments: ClassVar[dict[str, Any]] = {"full": False, "eps": 1e-6, "reduction": "mean"}
    function = staticmethod(ops.gaussian_nll_loss)


class HingeEmbeddingLoss(AnyLoss, nn.HingeEmbeddingLoss):  # type: ignore[misc]
    """torch.nn.HingeEmbeddingLoss."""

    arguments: ClassVar[dict[str, Any]] = {"margin": 1.0, **_OLD, "reduction": "mean"}
    function = staticmethod(losses.hinge_embedding_loss)


class MarginRankingLoss(AnyLoss, nn.MarginRankingLoss):  # type: ignore[misc]
    """torch.nn.MarginRankingLoss."""

    inputs: ClassVar[tuple[str, ...]] = ("input1", "input2", "target")
    arguments: ClassVar[dict[str, Any]] = {"margin": 0.0, **_OLD, "reduction": "mean"}
    function = staticmethod(losses.margin_ranking_loss)


class CosineEmbeddingLoss(AnyLoss, nn.CosineEmbeddingLoss):  # type: ignore[misc]
    """torch.nn.CosineEmbeddingLoss."""

    inputs: ClassVar[tuple[str, ...]] = ("input1", "input2", "target")
    arguments: ClassVar[dict[str, Any]] = {"margin": 0.0, **_OLD, "reduction": "mean"}
    function = staticmethod(losses.cosine_embedding_loss)


class TripletMarginLoss(AnyLoss, nn.TripletMarginLoss):  # type: ignore[misc]
    """torch.nn.TripletMarginLoss."""

    inputs: ClassVar[tuple[str, ...]] = ("anchor", "positive", "negative")
    arguments: ClassVar[dict[str, Any]] = {
        "margin": 1.0, "p": 2.0, "eps": 1e-6, "swap": False, **_OLD, "reduction": "mean",
    }  # fmt: skip
    function = staticmethod(losses.triplet_margin_loss)


class TripletMarginWithDistanceLoss(AnyLoss):
    """torch.nn.TripletMarginWithDistanceLoss."""

    inputs: ClassVar[tuple[str, ...]] = ("anchor", "positive", "negative")
    arguments: ClassVar[dict[str, Any]] = {
        "distance_function": None, "margin": 1.0, "swap": False, "reduction": "mean",
    }  # fmt: skip
    function = staticmethod(losses.triplet_margin_with_distance_loss)


class LinearCrossEntropyLoss(Module):
    """torch.nn.LinearCrossEntropyLoss."""

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Any = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: Any = None,
    ) -> None:
        super().__init__()
        self.num_classes, self.out_features = num_classes, tuple(out_features)
        self.reduction, self.ignore_index = reduction, ignore_index
        self.label_smoothing, self.options = label_smoothing, options
        self.register_buffer("weight", weight)
        self.linear = Linear(in_features, num_classes * math.prod(out_features), bias, dtype=dtype)

    def construct(self, input: Any, target: Any) -> Any:
        """The cross entropy of the layer's outputs."""
        shape = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return losses.linear_cross_entropy(
            input,
            self.linear.weight.reshape(*shape, -1),
            target,
            linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
        )


class MultiLabelSoftMarginLoss(AnyLoss, nn.MultiLabelSoftMarginLoss):  # type: ignore[misc]
    """torch.nn.MultiLabelSoftMarginLoss."""

    arguments: ClassVar[dict[str, Any]] = {"weight": None, **_OLD, "reduction": "mean"}
    function = staticmethod(ops.multilabel_soft_margin_loss)


class MultiLabelMarginLoss(AnyLoss, nn.MultilabelMarginLoss):  # type: ignore[misc]
    """torch.nn.MultiLabelMarginLoss."""

    function = staticmethod(losses.multilabel_margin_loss)


class CTCLoss(AnyLoss, nn.CTCLoss):  # type: ignore[misc]
    """torch.nn.CTCLoss."""

    inputs: ClassVar[tuple[str, ...]] = ("log_probs", "targets", "input_lengths", "target_lengths")
    arguments: ClassVar[dict[str, Any]] = {
        "blank": 0, "reduction": "mean", "zero_infinity": False,
    }  # fmt: skip
    function = staticmethod(losses.ctc_loss)


# ---- distances


class CosineSimilarity(WithSettings):
    """torch.nn.CosineSimilarity."""

    arguments: ClassVar[dict[str, Any]] = {"dim": 1, "eps": 1e-8}

    def construct(self, x1: Any, x2: Any) -> Any:
        """The cosine between two."""
        return losses.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(WithSettings):
    """torch.nn.PairwiseDistance."""

    arguments: ClassVar[dict[str, Any]] = {"p": 2.0, "eps": 1e-6, "keepdim": False}

    def construct(self, x1: Any, x2: Any) -> Any:
        """The length of the difference."""
        return reductions.pairwise_distance(x1, x2, self.p, self.eps, self.keepdim)
