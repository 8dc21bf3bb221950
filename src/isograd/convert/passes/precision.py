"""What a port does not do by itself, reported there: mixed precision, names of checkpoints."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.model import Level
from isograd.convert.passes.example import Example

_AUTOCAST = "torch.autocast"
_SAVE = "torch.save"
#: Endings by which people and tools expect torch's format.
_TORCHS_ENDINGS = (".pth", ".pt", ".pth.tar", ".pt.tar")
_PRECISION = "torch computes this in mixed precision; the port computes in the dtypes that it has"
_PRECISION_ADVICE = (
    "For mixed precision build the network with "
    'mindspore.amp.auto_mixed_precision(net, "auto", mindspore.float16).'
)
_NAME = "the file is written in MindSpore's format under a name that says torch's"
_NAME_ADVICE = (
    "Let the name end in .ckpt, here and where it is read; "
    "`isograd weights` writes it in torch's format."
)


class Precision:
    """`with torch.autocast("cuda"):`, `torch.save(state, "best.pth")`."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "mixed precision",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                with torch.autocast('cuda'):
                    return torch.mm(x, y)
            """,
        ),
        Example(
            "a checkpoint under torch's ending",
            """
            net = nn.Linear(2, 2)
            torch.save(net.state_dict(), 'best.pth')
            """,
        ),
    )
    counterexamples = (
        Example(
            "mixed precision that is off",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                with torch.autocast('cuda', enabled=False):
                    return torch.mm(x, y)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Report it; the call itself is for other passes."""
        assert isinstance(node, ast.Call)
        entry = file.entry(file.api_of_call(node)) if file.api_of_call(node) else None
        api = "" if entry is None else entry.api
        if api == _AUTOCAST and not _is_off(node):
            file.finding(
                node, "mixed-precision", _PRECISION, _PRECISION_ADVICE, level=Level.LOOK, api=api
            )
        elif api == _SAVE and any(_ending(part) for part in node.args[1:2]):
            file.finding(node, "checkpoint-name", _NAME, _NAME_ADVICE, level=Level.LOOK, api=api)
        return False


def _is_off(node: ast.Call) -> bool:
    """Whether a call says that nothing is cast: `autocast("cuda", enabled=False)`."""
    return any(
        part.arg == "enabled" and isinstance(part.value, ast.Constant) and not part.value.value
        for part in node.keywords
    )


def _ending(node: ast.expr) -> bool:
    """Whether a path is written out with an ending of torch's checkpoints."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and node.value.endswith(_TORCHS_ENDINGS)
    if isinstance(node, ast.JoinedStr):
        return bool(node.values) and _ending(node.values[-1])
    if isinstance(node, ast.BinOp):
        return _ending(node.right)
    return isinstance(node, ast.Call) and bool(node.args) and _ending(node.args[-1])
