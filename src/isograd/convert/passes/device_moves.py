"""`x.to(y.device)`: MindSpore's context says where tensors lie, so that nothing is moved."""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.analysis.absent_arguments import may_be_absent
from isograd.convert.analysis.devices import DEVICES, Devices, is_device
from isograd.convert.file import FileEdit
from isograd.convert.origins import asks_for_a_copy
from isograd.convert.passes.elements import POSTFIX
from isograd.convert.passes.example import Example
from isograd.convert.tree import is_none
from isograd.knowledge.rewrite import Call

MOVE = "torch.Tensor.to"
_MOVES = frozenset((MOVE, "torch.nn.Module.to"))
#: What of a move says where to, and how.
_WHERE = frozenset("device non_blocking memory_format".split())


class DeviceMoves:
    """Tensors that are sent to a device, and the dtype that may stand beside it."""

    kinds = (ast.Call,)
    after = ("Casts",)
    examples = (
        Example(
            "to another tensor's device",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return x.to(y.device)
            """,
        ),
        Example(
            "to a device by name",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                rows, columns, device = *x.shape, x.device
                return y.to(device) + rows
            """,
        ),
        Example(
            "to a device that the module chose",
            """
            DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

            def f(x: torch.Tensor, y: torch.Tensor):
                return x.to(DEVICE) * y.to(device=DEVICE, non_blocking=True)
            """,
        ),
        Example(
            "to a device that a method is given",
            """
            class Net(nn.Module):
                def forward(self, x):
                    return x * self.mask(x.shape[0], x.device)

                def mask(self, n, device):
                    return torch.arange(n).float().to(device)
            """,
        ),
        Example(
            "a network to a device",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
                net = nn.Linear(2, 2).to(device)
                net.to(memory_format=torch.channels_last)
                return net
            """,
        ),
        Example(
            "to a device as a dtype",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return x.to('cuda', torch.float16)
            """,
        ),
    )
    counterexamples = (
        Example(
            "to what an argument brings",
            """
            def f(x: torch.Tensor, kind):
                return x.to(kind)
            """,
        ),
        Example(
            "to a copy",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return x.to('cpu', torch.float32, False, True).add_(1) + x.to('cpu', copy=True)
            """,
        ),
        Example(
            "to a dtype alone",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return x.to(torch.float16)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Leave what is moved as it is; what may be a dtype or a tensor is for other passes."""
        assert isinstance(node, ast.Call)
        use = file.use(node.func)
        if use is None or not use.is_sure or use.api not in _MOVES:
            return False
        assert isinstance(node.func, ast.Attribute)
        where = devices_of(file)
        named = {part.arg: part.value for part in node.keywords}
        dtype = named.pop("dtype", None)
        if not named.keys() <= _WHERE or (dtype is not None and use.api != MOVE):
            return False
        devices = [*node.args[:1], *(v for k, v in named.items() if k == "device")]
        if not all(is_none(part) or is_device(part, where) for part in devices):
            return False
        rest = [part for part in node.args[1:] if not _is_switch(part)]
        if asks_for_a_copy(node):
            return False
        rest += [dtype] if dtype is not None else []
        if not (devices or named) or len(rest) > (use.api == MOVE):
            return False
        if rest and not _is_dtype(rest[0], file):
            return False
        value = node.func.value
        code = file.source(value)
        if not isinstance(value, POSTFIX):
            code = f"({code})"
        layout.write(file, node, f"{code}.astype({file.source(rest[0])})" if rest else code)
        file.uses += 1
        file.converted += 1
        return True


def devices_of(file: FileEdit) -> Devices:
    """Where a file's devices are looked for."""
    starting = file.settings.starting
    return Devices(file.tree, file.use, file.named, lambda name: starting.is_taken(name, file.file))


def _is_switch(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, bool)


def _is_dtype(value: ast.expr, file: FileEdit) -> bool:
    """Whether an argument names a dtype of torch's."""
    use = file.use(value)
    if use is None or use.is_member or not isinstance(value, ast.Attribute):
        return False
    return use.is_sure and use.api.count(".") == 1 and use.api not in DEVICES


def with_its_dtype(call: Call, node: ast.Call, file: FileEdit) -> Call:
    """`x.to(…)` with what is known for a dtype by its name, and what may be None by its place.

    Of None torch's `to` changes nothing, where MindSpore's cast raises.
    """
    if len(node.args) == 1 and file.names.kind(file.named.get(node.args[0], "")) == "d":
        return Call((), {"dtype": call.positional[0], **call.keywords}, call.receiver)
    dtypes = [part.value for part in node.keywords if part.arg == "dtype"]
    if not node.args and dtypes and may_be_absent(dtypes[0], file.tree):
        others = {name: code for name, code in call.keywords.items() if name != "dtype"}
        return Call((call.keywords["dtype"],), others, call.receiver)
    return call
