"""Hears of calls, branches and indexing while a file is read, and finds the hazards in them."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable

from isograd.scan.hazards.catalog import CATALOG
from isograd.scan.model import Hazard
from isograd.scan.state import UNSURE, RawUse
from isograd.scan.values import (
    COMPUTED,
    MASKS,
    PARAMETER,
    RAGGED,
    ClassInfo,
    FunctionInfo,
    Plain,
    Tensor,
    Value,
)

_EXACT: dict[str, list[str]] = defaultdict(list)
_BELOW: list[tuple[str, str]] = []
for _rule in CATALOG.values():
    for _api in _rule.apis:
        if _api.endswith("."):
            _BELOW.append((_api, _rule.code))
        else:
            _EXACT[_api].append(_rule.code)

_CONVOLUTIONS = frozenset(
    f"torch.nn.{kind}{size}d" for kind in ("Conv", "ConvTranspose") for size in (1, 2, 3)
)
_REDUCTIONS = frozenset(
    """sum mean max min argmax argmin prod std var norm all any softmax log_softmax logsumexp cumsum
    cumprod transpose permute flip unsqueeze squeeze swapaxes movedim""".split()
)
_HALF = frozenset(("torch.float16", "torch.half", "torch.Tensor.half", "torch.nn.Module.half"))
_SCALERS = ("torch.amp.GradScaler", "torch.cuda.amp.GradScaler")
_QUIET_METHODS = frozenset(("requires_grad_", "share_memory_", "detach_", "retain_grad_", "copy_"))


class Hazards:
    """One file's hazards."""

    def __init__(self, text: str, functions: list[FunctionInfo]) -> None:
        """text: the file's code; functions: those being read now, the innermost last."""
        self._text = text
        self._lines: list[str] | None = None
        self._functions = functions
        self._found: dict[tuple[int, str], Hazard] = {}
        #: The expression of the statement at hand whose value nobody takes.
        self.dropped: ast.expr | None = None

    def call(
        self,
        node: ast.Call,
        api: str,
        receiver: Value,
        arguments: list[Value],
        keywords: dict[str, Value],
    ) -> None:
        """A call of an API of torch, with the tensor whose method it is."""
        last = api.rpartition(".")[2]
        is_method = api.startswith("torch.Tensor.")
        if last.endswith("_") and is_method:
            self._in_place_method(node, api, last, receiver)
        elif last in _REDUCTIONS:
            self._axis(node, api, arguments if is_method else arguments[1:], keywords)
        elif last in _DETECTORS:
            _DETECTORS[last](self, node, api, arguments if is_method else arguments[1:], keywords)
        elif api in _CONVOLUTIONS:
            self._channels(node, api)

    def condition(self, node: ast.AST, value: Value) -> None:
        """A branch: a hazard where its test depends on the contents of a tensor."""
        if value.__class__ is Tensor or value is COMPUTED:
            self._add("data-dependent-branch", node)

    def subscript(self, node: ast.Subscript, value: Value, bounds: list[Value]) -> None:
        """Indexing: by a mask, or by slices with computed bounds."""
        if node.ctx.__class__ is not ast.Load:
            return
        index = node.slice
        items = index.elts if isinstance(index, ast.Tuple) else [index]
        if any(item.__class__ is ast.Slice for item in items):
            has_masks = not MASKS.isdisjoint(bounds)
            moves = any(bound is COMPUTED or bound.__class__ is Tensor for bound in bounds)
            slices = [item for item in items if isinstance(item, ast.Slice)]
            if moves and not has_masks and any(item.lower or item.upper for item in slices):
                self._add("dynamic-slice", node)
                return
        if not MASKS.isdisjoint(bounds):
            self._add("dynamic-mask", node)

    def class_made(self, node: ast.ClassDef, info: ClassInfo) -> None:
        """A function with a gradient of its own."""
        if info.root == "torch.autograd.Function":
            self._add("custom-autograd", node)

    def attribute_set(self, node: ast.AST, owner: ClassInfo, name: str, value: Value) -> None:
        """A tensor that becomes an attribute of a module without being registered."""
        if owner.is_module and value.__class__ is Tensor and value is not PARAMETER:
            self._add("buffer-assignment", node)

    def in_place(self, node: ast.AugAssign, value: Value) -> None:
        """`name += …` where the name is a view of another tensor."""
        is_view = isinstance(value, Tensor) and value.is_view
        if is_view and isinstance(node.target, ast.Name):
            self._add("in-place-view", node)

    def _in_place_method(self, node: ast.Call, api: str, last: str, receiver: Value) -> None:
        if last.endswith("__") or last in _QUIET_METHODS:
            return
        function = node.func
        if not isinstance(function, ast.Attribute):
            return
        if isinstance(receiver, Tensor) and receiver.is_view and not _is_data(function.value):
            self._add("in-place-view", node)
        elif node is self.dropped:
            subject = _chained(function.value)
            if isinstance(subject, ast.Name) and self._is_read_below(subject.id, node):
                self._add("in-place-reused", node, api)

    def _is_read_below(self, name: str, node: ast.Call) -> bool:
        """Whether the name stands again between the statement and the end of its function."""
        if self._lines is None:
            self._lines = self._text.split("\n")
        function = self._functions[-1].node if self._functions else None
        end = len(self._lines) if function is None else function.end_lineno
        below = "\n".join(self._lines[node.end_lineno : end])
        return re.search(rf"\b{re.escape(name)}\b", below) is not None

    def _axis(
        self, node: ast.Call, api: str, arguments: list[Value], keywords: dict[str, Value]
    ) -> None:
        given = [*arguments, keywords.get("dim"), keywords.get("axis")]
        if any(value is COMPUTED for value in given):
            self._add("dynamic-axis", node, api)

    def _top_k(
        self, node: ast.Call, api: str, arguments: list[Value], keywords: dict[str, Value]
    ) -> None:
        given = keywords.get("k", arguments[0] if arguments else None)
        if given is COMPUTED or given.__class__ is Tensor:
            self._add("dynamic-top-k", node, api)

    def _where(
        self, node: ast.Call, api: str, arguments: list[Value], keywords: dict[str, Value]
    ) -> None:
        if len(node.args) == 1 and not keywords and api == "torch.where":
            self._add("dynamic-result", node, api)

    def _gather(
        self, node: ast.Call, api: str, arguments: list[Value], keywords: dict[str, Value]
    ) -> None:
        if any(value is RAGGED for value in (*arguments, *keywords.values())):
            self._add("dynamic-gather", node, api)

    def _repeat(
        self, node: ast.Call, api: str, arguments: list[Value], keywords: dict[str, Value]
    ) -> None:
        given = keywords.get("repeats", arguments[0] if arguments else None)
        if given.__class__ is Tensor or given is COMPUTED:
            self._add("dynamic-result", node, api)

    def _embedding(
        self, node: ast.Call, api: str, arguments: list[Value], keywords: dict[str, Value]
    ) -> None:
        for keyword in node.keywords:
            if keyword.arg == "sparse" and getattr(keyword.value, "value", None) is True:
                self._add("sparse", node, api)

    def _loader(
        self, node: ast.Call, api: str, arguments: list[Value], keywords: dict[str, Value]
    ) -> None:
        if "collate_fn" in keywords and keywords["collate_fn"].__class__ is not Plain:
            if not any(
                keyword.arg == "collate_fn" and isinstance(keyword.value, ast.Constant)
                for keyword in node.keywords
            ):
                self._add("varying-input", node, api)

    def _channels(self, node: ast.Call, api: str) -> None:
        """Written channels that are no multiple of 16; an image's own 1 to 4 cannot be helped."""
        given = list(node.args[:2])
        given += [k.value for k in node.keywords if k.arg in ("in_channels", "out_channels")]
        for item in given:
            value = item.value if isinstance(item, ast.Constant) else None
            if isinstance(value, int) and value > 4 and value % 16:
                self._add("ascend-channels", node, api)
                return

    def _add(self, code: str, node: ast.AST, api: str = "") -> None:
        line: int = getattr(node, "lineno", 0)
        self._put(code, line, api)

    def _put(self, code: str, line: int, api: str, more: str = "") -> None:
        key = (line, code + api if CATALOG[code].once else code)
        if key not in self._found:
            rule = CATALOG[code]
            message = rule.message.replace("{api}", api.removeprefix("torch.") or "this API") + more
            self._found[key] = Hazard(code, line, message, rule.advice, rule.device)

    def finish(self, uses: Iterable[RawUse]) -> list[Hazard]:
        """All hazards of the file, in the order of lines."""
        many: dict[tuple[str, str], list[int]] = defaultdict(list)
        seen: set[str] = set()
        backward = 0
        for line, _, api, how in sorted(set(uses)):
            if how is UNSURE:
                continue
            seen.add(api)
            if api == "torch.Tensor.backward":
                backward = backward or line
            codes = _EXACT.get(api) or [code for start, code in _BELOW if api.startswith(start)]
            for code in codes:
                if CATALOG[code].once:
                    many[code, api].append(line)
                else:
                    self._put(code, line, api)
        for (code, api), lines in many.items():
            more = f" {len(lines)} uses in this file." if len(lines) > 1 else ""
            self._put(code, lines[0], api, more)
        if backward and seen & _HALF and not seen.intersection(_SCALERS):
            self._put("ascend-loss-scale", backward, "")
        return [self._found[key] for key in sorted(self._found)]


def _chained(node: ast.expr) -> ast.expr:
    """The subject of `x.mul_(a).add_(b)`."""
    while (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr.endswith("_")
    ):
        node = node.func.value
    return node


def _is_data(node: ast.expr) -> bool:
    """`x.data` has a hazard of its own."""
    return isinstance(node, ast.Attribute) and node.attr == "data"


_DETECTORS = {
    "topk": Hazards._top_k,
    "where": Hazards._where,
    "gather": Hazards._gather,
    "repeat_interleave": Hazards._repeat,
    "Embedding": Hazards._embedding,
    "EmbeddingBag": Hazards._embedding,
    "DataLoader": Hazards._loader,
}
