"""Hazards of state: what is changed, kept, hooked or loaded beside the computation."""

from __future__ import annotations

from isograd.scan.hazards.examples import HEAD, body, forward, script
from isograd.scan.hazards.rule import Rule

RULES = (
    Rule(
        "sparse",
        "{api} makes or needs a sparse tensor; MindSpore has COOTensor and CSRTensor with few "
        "operators.",
        "Use a dense tensor where it fits; else COOTensor with ops.SparseTensorDenseMatmul, and "
        "EmbeddingLookup(sparse=True) for embeddings. CSR matrix products have no CPU kernel.",
        bad=(
            script("s = torch.sparse_coo_tensor(i, v, (2, 3))"),
            script("e = nn.Embedding(10, 4, sparse=True)"),
            forward("return x.to_sparse()"),
        ),
        good=(script("e = nn.Embedding(10, 4)"),),
        apis=(
            "torch.sparse_coo_tensor",
            "torch.sparse_csr_tensor",
            "torch.sparse_csc_tensor",
            "torch.sparse_bsr_tensor",
            "torch.sparse_bsc_tensor",
            "torch.sparse_compressed_tensor",
            "torch.Tensor.to_sparse",
            "torch.Tensor.to_sparse_csr",
            "torch.Tensor.to_sparse_coo",
            "torch.Tensor.coalesce",
            "torch.sparse.",
            "torch.Tensor.sparse_mask",
            "torch.optim.SparseAdam",
        ),
    ),
    Rule(
        "in-place-view",
        "This changes a view in place, and the tensor behind it with it; in MindSpore it may "
        "change neither.",
        "Write to the tensor itself: x[…] = …, which MindSpore does carry out.",
        bad=(
            forward("y = x[:, 0]", "y.add_(1)", "return x"),
            forward("y = x.view(-1)", "y += 1", "return x"),
            forward("x[:, 0].zero_()", "return x"),
        ),
        good=(
            forward("x[:, 0] += 1", "return x"),
            forward("y = x + 1", "y += x", "return y"),
            forward("y = x[:, 0] + 1", "return y"),
        ),
        source="executed: facts of MindSpore 2.10 on a CPU",
    ),
    Rule(
        "in-place-reused",
        "{api} changes a tensor that is used again below; MindSpore may return the new value and "
        "leave the tensor as it was.",
        "Bind the result: x = x.add(…).",
        bad=(forward("x.mul_(2)", "return x"), forward("y = x + 1", "y.clamp_(0)", "return y")),
        good=(forward("x = x.mul_(2)", "return x"), forward("return x.mul_(2)")),
        source="executed: facts of MindSpore 2.10 on a CPU",
    ),
    Rule(
        "data-attribute",
        "`.data` reads or writes past the gradient; MindSpore has no such attribute.",
        "To read, use ops.stop_gradient(x); to write a parameter, parameter.set_data(value).",
        bad=(
            forward("return x.data"),
            script("layer = nn.Linear(2, 2)", "layer.weight.data.zero_()"),
        ),
        good=(forward("return x.detach()"), script("import torch.utils.data")),
        apis=("torch.Tensor.data",),
    ),
    Rule(
        "custom-autograd",
        "A function with a gradient of its own has to be written anew.",
        "Write an nn.Cell whose bprop method returns the gradients, or ops.Custom for a kernel.",
        bad=(
            HEAD + "class Sign(torch.autograd.Function):\n    @staticmethod\n"
            "    def forward(ctx, x):\n        return x.sign()\n",
        ),
        good=(body("def forward(self, x):", "    return x.sign()"),),
    ),
    Rule(
        "hook",
        "{api} is silently skipped in MindSpore's graph mode.",
        "Return what the hook reads from the network, or stay in PyNative mode.",
        bad=(
            script("layer = nn.Linear(2, 2)", "layer.register_forward_hook(print)"),
            forward("x.register_hook(print)", "return x"),
        ),
        good=(body("def __init__(self):", "    self.register_buffer('b', torch.zeros(2))"),),
        apis=(
            "torch.Tensor.register_hook",
            "torch.Tensor.register_post_accumulate_grad_hook",
            "torch.nn.Module.register_forward_hook",
            "torch.nn.Module.register_forward_pre_hook",
            "torch.nn.Module.register_full_backward_hook",
            "torch.nn.Module.register_backward_hook",
            "torch.nn.Module.register_full_backward_pre_hook",
            "torch.nn.Module.register_load_state_dict_post_hook",
            "torch.nn.Module.register_load_state_dict_pre_hook",
            "torch.nn.Module.register_state_dict_post_hook",
            "torch.nn.Module.register_state_dict_pre_hook",
        ),
        source="executed: facts of MindSpore 2.10 on a CPU",
    ),
    Rule(
        "buffer-assignment",
        "A tensor is kept as an attribute: it is no buffer that is saved and moved, and a graph "
        "takes it for a constant.",
        "Register it in the constructor; where forward changes it, make it a Parameter with "
        "requires_grad=False and use ops.assign.",
        bad=(
            body("def forward(self, x):", "    self.last = x.detach()", "    return x"),
            body("def __init__(self):", "    super().__init__()", "    self.mask = torch.ones(3)"),
        ),
        good=(
            body("def __init__(self):", "    self.w = nn.Parameter(torch.ones(3))"),
            body("def __init__(self):", "    self.register_buffer('b', torch.zeros(2))"),
            body("def __init__(self):", "    self.n = 3", "    self.layer = nn.Linear(2, 2)"),
        ),
    ),
    Rule(
        "cuda-extension",
        "{api} loads code that is compiled for torch.",
        "Compose it from MindSpore's operators, or write it as ops.Custom.",
        bad=(
            script("from torch.utils.cpp_extension import load", "op = load('op', ['op.cu'])"),
            script("torch.ops.load_library('libop.so')"),
        ),
        good=(script("x = torch.ones(2)"),),
        apis=("torch.utils.cpp_extension.", "torch.ops.load_library", "torch.library."),
    ),
)
