"""Causes that no table of hypotheses names: what shows each, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Source:
    """A place in isograd, other than a table of hypotheses, that names a cause.

    file: where it is named; what: the cause in words; seen: what shows it; advice: what to do.
    reference, port: two lines of code that differ in it, where code shows it.
    """

    id: str
    file: str
    what: str
    seen: str
    advice: str
    reference: str = ""
    port: str = ""


def _bias(id: str, reference: str, port: str) -> Source:
    return Source(
        id,
        "verify/parameters.py",
        "a bias that one side lacks",
        "A layer of one side has a parameter that the paired layer of the other has not.",
        "Give the layer of the port a bias where the reference has one, or take it away.",
        reference,
        port,
    )


#: The file of each holds the id.
OTHER_SOURCES = (
    _bias("conv.bias", "nn.Conv2d(3, 8, 3)", "nn.Conv2d(3, 8, 3, pad_mode='valid')"),
    _bias("linear.bias", "nn.Linear(8, 5)", "nn.Dense(8, 5, has_bias=False)"),
    _bias("layer_norm.bias", "nn.LayerNorm(8, bias=False)", "nn.LayerNorm((8,))"),
    _bias("rnn.bias", "nn.LSTM(8, 5)", "nn.LSTM(8, 5, has_bias=False)"),
    Source(
        "precision.cast",
        "verify/parameters.py",
        "a parameter of another dtype",
        "The paired parameters have different dtypes when both networks are built.",
        "Cast the port's parameter, or build its layer in the reference's dtype.",
        "self.fc = nn.Linear(8, 5)",
        "self.fc = nn.Dense(8, 5, dtype=ms.float16)",
    ),
    Source(
        "optimizer.frozen",
        "verify/parameters.py",
        "a parameter that one side does not train",
        "One of two paired parameters has requires_grad = False.",
        "Set requires_grad of the port's parameter as the reference has it.",
        "self.table.requires_grad_(False)",
        "self.table.requires_grad = True",
    ),
    Source(
        "optimizer.frozen",
        "verify/update_causes.py",
        "a parameter that the port's optimizer does not hold",
        "A step of the optimizer on the reference's gradients leaves the parameter as it was.",
        "Give the optimizer all parameters that the reference trains.",
        "optim.SGD(model.parameters(), 0.1)",
        "nn.SGD(model.head.trainable_params(), 0.1)",
    ),
    Source(
        "dropout.active",
        "verify/findings.py",
        "dropout that is active on one side only",
        "In this mode one side drops elements where the other passes them.",
        "Set the rate that the reference has, and the mode: set_train(True) to train, "
        "set_train(False) to evaluate; F.dropout without training= drops in evaluation too.",
        "self.drop = nn.Dropout(0.1)",
        "self.drop = nn.Dropout(p=0.0)",
    ),
    Source(
        "random.active",
        "verify/findings.py",
        "draws in eval mode on one side only",
        "In eval mode the code of one side draws random numbers, that of the other none.",
        "Guard the draw by self.training, as the reference does.",
        "nn.RReLU()  # takes the mean slope in evaluation",
        "nn.RReLU()  # draws its slopes in evaluation too",
    ),
    Source(
        "random.mask",
        "verify/masks.py",
        "masks that are drawn along other axes",
        "With real chance other parts of a tensor stay together: a mask for each sample drops "
        "whole samples, one for each element drops single elements.",
        "Draw the mask in the shape that the reference draws it in.",
        "x * x.new_empty(x.shape[0], 1, 1, 1).bernoulli_(keep) / keep",
        "nn.Dropout(p=1 - keep)(x)",
    ),
    Source(
        "random.noise",
        "verify/masks.py",
        "noise that is drawn along other axes",
        "With real chance other parts of a tensor move together: noise for each element moves "
        "every element alone, noise of one row moves all samples alike.",
        "Draw the noise in the shape that the reference draws it in.",
        "x + 0.1 * torch.randn_like(x)",
        "x + 0.1 * ops.randn(1, x.shape[1])",
    ),
    Source(
        "dropout.p",
        "verify/findings.py",
        "dropout that zeroes another share",
        "Run on ones, the two dropouts zero shares that differ by more than chance allows (1e-6).",
        "Set the reference's rate; MindSpore's old keep_prob is 1 minus it.",
        "nn.Dropout(0.1)",
        "nn.Dropout(keep_prob=0.1)",
    ),
    Source(
        "optimizer.no_decay",
        "diagnose/update/parts.py",
        "weight decay on parameters that the reference leaves out of it, or the other way round",
        "A step on the reference's gradients moves some parameters as a weight decay would.",
        "Give the port's optimizer the reference's groups of parameters.",
        "optim.AdamW([{'params': decayed}, {'params': norms, 'weight_decay': 0.0}], 1e-3)",
        "nn.AdamWeightDecay(model.trainable_params(), 1e-3, weight_decay=0.01)",
    ),
    Source(
        "optimizer.kind",
        "diagnose/update/hypotheses.py",
        "altogether another optimizer",
        "No setting of the reference's rule gives the port's step; another rule does.",
        "Use the counterpart of the reference's optimizer; `isograd scan` names it.",
        "optim.AdamW(model.parameters(), 1e-3)",
        "nn.Lamb(model.trainable_params(), 1e-3)",
    ),
    Source(
        "optimizer.schedule",
        "diagnose/update/hypotheses.py",
        "another learning rate per step",
        "From step to step the port's updates follow another learning rate.",
        "Step the schedule as often as the reference does (each step or each epoch), with its "
        "values.",
        "scheduler.step()  # once an epoch",
        "nn.SGD(model.trainable_params(), nn.cosine_decay_lr(0.0, 0.1, steps, 1, epochs))",
    ),
)
