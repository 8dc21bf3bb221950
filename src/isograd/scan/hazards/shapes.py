"""Hazards of shape: what a static graph cannot know before it runs."""

from __future__ import annotations

from isograd.scan.hazards.examples import GUIDE, forward, script
from isograd.scan.hazards.rule import Rule

RULES = (
    Rule(
        "dynamic-result",
        "The shape of what {api} returns depends on the values, so a static graph cannot hold it.",
        "Keep the shape: multiply by the mask, or use torch.where with three arguments; else run "
        "this part in PyNative mode, or declare dynamic inputs with set_inputs.",
        bad=(
            forward("return x.nonzero()"),
            forward("return torch.masked_select(x, mask)"),
            forward("return torch.unique(x)"),
            forward("return torch.where(mask)"),
            forward("return x.repeat_interleave(mask)"),
        ),
        good=(
            forward("return torch.where(mask, x, 0)"),
            forward("return x * mask"),
            forward("return x.repeat_interleave(2, dim=0)"),
        ),
        apis=(
            "torch.nonzero",
            "torch.Tensor.nonzero",
            "torch.masked_select",
            "torch.Tensor.masked_select",
            "torch.unique",
            "torch.Tensor.unique",
            "torch.argwhere",
            "torch.unique_consecutive",
            "torch.Tensor.unique_consecutive",
            "torch.Tensor.argwhere",
            "torch.bincount",
            "torch.Tensor.bincount",
        ),
        source=GUIDE,
    ),
    Rule(
        "dynamic-mask",
        "Indexing by a mask returns as many elements as the mask has, so the shape varies.",
        "Keep the shape: torch.where(mask, x, 0), or masked_fill and a sum divided by mask.sum().",
        bad=(
            forward("return x[x > 0]"),
            forward("return x[~mask]"),
            forward("keep = x > 0", "return x[keep]"),
        ),
        good=(
            forward("return x[0]"),
            forward("return x[:, mask.argmax(1)]"),
            forward("x[mask] = 0", "return x"),
        ),
        source=GUIDE,
    ),
    Rule(
        "dynamic-slice",
        "The bound of this slice is computed from the contents of a tensor, so the shape varies.",
        "Slice to a constant length and mask what lies beyond it.",
        bad=(
            forward("n = mask.sum().item()", "return x[:n]"),
            forward("return x[:, : int(mask.max())]"),
        ),
        good=(forward("return x[:, : x.shape[1] // 2]"), forward("return x[:, 1:5]")),
        source=GUIDE,
    ),
    Rule(
        "dynamic-top-k",
        "The number of elements that {api} keeps is computed from the contents of a tensor.",
        "Use a constant k and mask what lies beyond the computed number.",
        bad=(
            forward("return x.topk(int(mask.sum()))"),
            forward("return torch.topk(x, mask.sum())"),
        ),
        good=(forward("return x.topk(5)"), forward("return torch.topk(x, k=x.shape[1])")),
        source=GUIDE,
    ),
    Rule(
        "dynamic-gather",
        "The result of {api} has the shape of its index; where that varies, so does the graph.",
        "Give an index of constant shape, padded where needed.",
        bad=(
            forward("return x.gather(1, mask.nonzero())"),
            forward("return torch.gather(x, 1, mask[mask > 0])"),
        ),
        good=(forward("return x.gather(1, mask)"),),
        source=GUIDE,
    ),
    Rule(
        "dynamic-segment",
        "{api} works on segments whose lengths are data.",
        "Pad the segments to one length, or use ops.unsorted_segment_sum with a constant number.",
        bad=(forward("return torch.segment_reduce(x, 'sum', lengths=mask)"),),
        good=(forward("return x.view(2, -1).sum(1)"),),
        apis=("torch.segment_reduce",),
        source=GUIDE,
    ),
    Rule(
        "dynamic-axis",
        "{api} works along an axis that is computed from the contents of a tensor.",
        "Make the axis a constant: MindSpore's graph needs it at compile time.",
        bad=(
            forward("return x.sum(int(mask.max()))"),
            forward("return x.transpose(0, mask.sum().item())"),
        ),
        good=(forward("return x.sum(1)"), forward("return x.transpose(0, x.dim() - 1)")),
        source=GUIDE,
    ),
    Rule(
        "data-dependent-branch",
        "This branch depends on the contents of a tensor, which a static graph does not know.",
        "Compute both ways and choose with torch.where; else keep this part in PyNative mode.",
        bad=(
            forward("if x.sum() > 0:", "    return x", "return -x"),
            forward("while mask.any():", "    x = x - 1", "return x"),
            forward("n = mask.sum().item()", "return x if n > 1 else -x"),
        ),
        good=(
            forward("if x.shape[0] > 1:", "    return x", "return -x"),
            forward("if mask is not None:", "    return x", "return -x"),
            forward("if self.training:", "    return x", "return -x"),
            forward("if mask.dim() == 2 and x.size(0) > 1:", "    return x", "return -x"),
        ),
        source=GUIDE,
    ),
    Rule(
        "varying-input",
        "Batches that {api} makes differ in shape from each other: a graph is compiled for each.",
        "Pad every batch to the same length, or to one of a few, and set drop_remainder=True.",
        bad=(
            script("from torch.nn.utils.rnn import pad_sequence", "x = pad_sequence([a, b])"),
            script(
                "from torch.utils.data import DataLoader",
                "loader = DataLoader(data, collate_fn=lambda batch: list(batch))",
            ),
        ),
        good=(
            script(
                "from torch.utils.data import DataLoader", "loader = DataLoader(data, batch_size=8)"
            ),
        ),
        apis=("torch.nn.utils.rnn.pad_sequence", "torch.nn.utils.rnn.pack_sequence"),
        source=GUIDE,
    ),
)
