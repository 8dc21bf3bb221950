"""What of torch needs recorded gradients, and where a file names it."""

from __future__ import annotations

import ast

#: What needs recorded gradients, or does not happen in a compiled step.
_RECORDED = (
    "torch.autograd", "torch.func", "torch.enable_grad", "torch.set_grad_enabled",
    "torch.is_grad_enabled", "torch.Tensor.grad", "torch.Tensor.retain_grad",
    "torch.Tensor.register_hook", "torch.Tensor.register_post_accumulate_grad_hook",
    "torch.nn.Module.register_", "torch.nn.utils.parametrize", "torch.nn.utils.parametrizations",
    "torch.nn.utils.weight_norm", "torch.nn.utils.spectral_norm", "torch.nn.utils.stateless",
    "torch.utils.checkpoint", "torch.optim.Optimizer.add_param_group",
    "torch.optim.lr_scheduler.LRScheduler.", "torch.nn.utils.get_total_norm",
)  # fmt: skip
_HARMLESS = (
    "torch.autograd.no_grad", "torch.autograd.grad_mode.no_grad", "torch.autograd.set_detect",
    "torch.nn.Module.register_buffer", "torch.nn.Module.register_parameter",
    "torch.nn.Module.register_module", "torch.autograd.anomaly", "torch.autograd.profiler",
    "torch.optim.lr_scheduler.LRScheduler.step", "torch.optim.lr_scheduler.LRScheduler.get_last_lr",
    "torch.optim.lr_scheduler.LRScheduler.state_dict",
    "torch.optim.lr_scheduler.LRScheduler.load_state_dict",
)  # fmt: skip
#: Written as cells with `bprop`, each class where it can be.
_OF_FUNCTIONS = ("torch.autograd.Function", "torch.autograd.function.")


def is_recorded(api: str) -> bool:
    """Whether an API needs recorded gradients."""
    return api.startswith(_RECORDED) and not api.startswith((*_HARMLESS, *_OF_FUNCTIONS))


def named_in(api: str, tree: ast.Module | None) -> list[ast.AST]:
    """Where a file says the last part of an API's name, without imports if it is elsewhere, too."""
    last = api.rpartition(".")[2]
    found: list[ast.AST] = []
    for node in ast.walk(tree) if tree is not None else ():
        names = (getattr(node, name, "") or "" for name in ("attr", "id", "name"))
        if last in (name.rpartition(".")[2] for name in names):  # `import a.b.last as other`
            found.append(node)
    return [node for node in found if not isinstance(node, ast.alias)] or found
