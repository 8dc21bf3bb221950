"""Distributions whose names are only asked for `log_prob`, `entropy` and draws, as functions.

distribution = Categorical(logits=network(state))
loss = -(distribution.log_prob(action) * advantage).mean() - 0.01 * distribution.entropy().mean()

A static graph makes no objects of tensors.  In place of a `Categorical` the name holds the
logarithms of its probabilities, or the probabilities where it was made of these; in place of a
`Normal` its mean and its deviation.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from isograd.convert.text import Text
from isograd.convert.tree import Tree, read_tree
from isograd.static_graph.scope import FileScope

WORD = "distributions"
#: What a distribution may be made of, by its class, with what it is called for that.
_MADE_OF: Mapping[str, Mapping[tuple[str, ...], str]] = {
    "Categorical": {("probs",): "probs", ("logits",): "logits"},
    "Normal": {("loc", "scale"): "normal"},
}
_PACKAGE = "torch.distributions."
#: The function that makes what a name holds.
_MAKERS = {"logits": "logits_of_classes", "probs": "probs_of_classes", "normal": "loc_and_scale"}
#: The functions by what a distribution is made of, with those that they call.
_FUNCTIONS = {
    "logits_of_classes": """
def logits_of_classes(logits: torch.Tensor):
    \"\"\"The logarithms of the probabilities of classes.\"\"\"
    return torch.log_softmax(logits, -1)
""",
    "log_prob_by_logits": """
def log_prob_by_logits(logits: torch.Tensor, value: torch.Tensor):
    \"\"\"The logarithm of the probability of a class.\"\"\"
    is_class = torch.arange(logits.shape[-1]) == value.unsqueeze(-1)
    return torch.where(is_class, logits, torch.zeros_like(logits)).sum(-1)
""",
    "entropy_by_logits": """
def entropy_by_logits(logits: torch.Tensor):
    \"\"\"The mean of the negated logarithms of probabilities.\"\"\"
    return -(torch.clamp(logits, min=-3.4028234663852886e38) * torch.exp(logits)).sum(-1)
""",
    "probs_of_classes": """
def probs_of_classes(probs: torch.Tensor):
    \"\"\"The probabilities of classes, whose sum is one.\"\"\"
    return probs / probs.sum(-1, keepdim=True)
""",
    "log_prob_by_probs": """
def log_prob_by_probs(probs: torch.Tensor, value: torch.Tensor):
    \"\"\"The logarithm of the probability of a class.\"\"\"
    eps = torch.finfo(probs.dtype).eps
    logits = torch.log(torch.clamp(probs, eps, 1 - eps))
    is_class = torch.arange(probs.shape[-1]) == value.unsqueeze(-1)
    return torch.where(is_class, logits, torch.zeros_like(logits)).sum(-1)
""",
    "sample_by_logits": """
def sample_by_logits(logits: torch.Tensor):
    \"\"\"A class for each row of the logarithms of probabilities.\"\"\"
    rows = torch.exp(logits.detach()).reshape(-1, logits.shape[-1])
    return torch.multinomial(rows, 1, True).reshape(logits.shape[:-1])
""",
    "sample_by_probs": """
def sample_by_probs(probs: torch.Tensor):
    \"\"\"A class for each row of probabilities.\"\"\"
    rows = probs.detach().reshape(-1, probs.shape[-1])
    return torch.multinomial(rows, 1, True).reshape(probs.shape[:-1])
""",
    "loc_and_scale": """
def loc_and_scale(loc: torch.Tensor, scale: torch.Tensor):
    \"\"\"The mean and the deviation of a normal distribution, of one shape.\"\"\"
    scale = scale * torch.ones_like(loc)
    return loc * torch.ones_like(scale), scale
""",
    "log_prob_by_normal": """
def log_prob_by_normal(normal: tuple[torch.Tensor, torch.Tensor], value: torch.Tensor):
    \"\"\"The logarithm of the density of a normal distribution.\"\"\"
    loc, scale = normal
    return -((value - loc) ** 2) / (2 * scale**2) - torch.log(scale) - 0.9189385332046727
""",
    "entropy_by_normal": """
def entropy_by_normal(normal: tuple[torch.Tensor, torch.Tensor]):
    \"\"\"The entropy of a normal distribution.\"\"\"
    loc, scale = normal
    return 1.4189385332046727 + torch.log(scale)
""",
    "rsample_by_normal": """
def rsample_by_normal(normal: tuple[torch.Tensor, torch.Tensor]):
    \"\"\"A draw of a normal distribution, through which gradients go.\"\"\"
    loc, scale = normal
    return loc + scale * torch.randn_like(loc)
""",
    "sample_by_normal": """
def sample_by_normal(normal: tuple[torch.Tensor, torch.Tensor]):
    \"\"\"A draw of a normal distribution.\"\"\"
    loc, scale = normal
    return (loc + scale * torch.randn_like(loc)).detach()
""",
    "entropy_by_probs": """
def entropy_by_probs(probs: torch.Tensor):
    \"\"\"The mean of the negated logarithms of probabilities.\"\"\"
    eps = torch.finfo(probs.dtype).eps
    return -(torch.log(torch.clamp(probs, eps, 1 - eps)) * probs).sum(-1)
""",
}
_METHODS = {"log_prob": ("value",), "entropy": (), "sample": (), "rsample": ()}
_DENSITIES = ("log_prob", "entropy")


@dataclass(frozen=True)
class _Name:
    """A name of one scope that holds nothing but such distributions; kind: of what they are."""

    made: tuple[ast.Call, ...]
    asked: tuple[ast.Call, ...]
    kind: str


def written_distributions(text: str, tree: ast.Module) -> list[tuple[int, int, str]]:
    """The edits of a file that write its distributions as functions of tensors."""
    return _Writer(read_tree(tree, frozenset()), Text(text)).edits()


@dataclass
class _Writer:
    """The edits of one file."""

    tree: Tree
    text: Text
    names: dict[str, str] = field(default_factory=dict)
    first: ast.stmt | None = None

    def edits(self) -> list[tuple[int, int, str]]:
        """Replacements by their places in the text."""
        file = FileScope(self.tree.module)
        torch = next((own for own, full in file.imports.items() if full == "torch"), "")
        found = [edit for one in self._found(file) for edit in self._edits(one)] if torch else []
        if self.first is None:
            return []
        decorators = [part.lineno for part in getattr(self.first, "decorator_list", [])]
        at = self.text.line_start(min([self.first.lineno, *decorators]))
        lines = [
            code.strip("\n").replace("torch.", f"{torch}.").replace(name, own, 1)
            for name, own in self.names.items()
            for code in [_FUNCTIONS[name]]
        ]
        new = "\n\n\n".join(lines) + "\n\n\n"
        return [(at, at, new.replace("\n", self.text.newline)), *found]

    def _found(self, file: FileScope) -> Iterator[_Name]:
        """The names that are written otherwise."""
        by_name: dict[tuple[ast.AST, str], list[ast.Name]] = {}
        others: set[tuple[ast.AST, str]] = set()
        for node in self.tree.walked(self.tree.module):
            if isinstance(node, ast.Name):
                by_name.setdefault((self.tree.scope(node), node.id), []).append(node)
            elif isinstance(node, ast.arg):
                others.add((self.tree.scope(node), node.arg))
            elif isinstance(node, (ast.Global, ast.Nonlocal)):
                others.update((self.tree.scope(node), name) for name in node.names)
        for (scope, name), nodes in by_name.items():
            if (scope, name) in others or self._is_shared(scope, name, by_name, others):
                continue
            one = self._name(nodes, file)
            if one is not None:
                yield one

    def _is_shared(
        self,
        scope: ast.AST,
        name: str,
        by_name: Mapping[tuple[ast.AST, str], list[ast.Name]],
        others: Collection[tuple[ast.AST, str]],
    ) -> bool:
        """Whether functions within a scope read or bind its name."""
        for (inner, same), nodes in by_name.items():
            if same != name or inner is scope or scope not in self.tree.above(inner):
                continue
            is_own = any(isinstance(node.ctx, ast.Store) for node in nodes)
            if (inner, name) in others or not is_own:
                return True
        return False

    def _name(self, nodes: list[ast.Name], file: FileScope) -> _Name | None:
        """What a name of a scope holds and is asked for; None where it is anything else."""
        made, asked, kinds = list[ast.Call](), list[ast.Call](), set[str]()
        for node in nodes:
            parent = self.tree.parents[node]
            if isinstance(node.ctx, ast.Load):
                call = self._asked(parent)
                if call is None:
                    return None
                asked.append(call)
                continue
            value = parent.value if isinstance(parent, ast.Assign) else None
            if not isinstance(value, ast.Call) or parent.targets != [node]:  # type: ignore[attr-defined]
                return None
            kinds.add(_kind_of(value, file))
            made.append(value)
        methods = {call.func.attr for call in asked}  # type: ignore[attr-defined] # as `_asked` says
        if len(kinds) != 1 or "" in kinds or methods.isdisjoint(_DENSITIES):
            return None
        (kind,) = kinds
        has_all = all(f"{method}_by_{kind}" in _FUNCTIONS for method in methods)
        return _Name(tuple(made), tuple(asked), kind) if has_all else None

    def _asked(self, method: ast.AST) -> ast.Call | None:
        """The call of a method of a name that a function replaces."""
        call = self.tree.parents.get(method)
        is_method = isinstance(method, ast.Attribute) and method.attr in _METHODS
        if not is_method or not isinstance(call, ast.Call) or call.func is not method:
            return None
        given = [*("value" for _ in call.args), *(part.arg for part in call.keywords)]
        has_star = any(isinstance(part, ast.Starred) for part in call.args)
        return call if tuple(given) == _METHODS[method.attr] and not has_star else None  # type: ignore[attr-defined]

    def _edits(self, name: _Name) -> Iterator[tuple[int, int, str]]:
        for call in name.made:
            yield (*self.text.span(call.func), self._function(_MAKERS[name.kind], call))
        for call in name.asked:
            assert isinstance(call.func, ast.Attribute)
            own = self.text.original[slice(*self.text.span(call.func.value))]
            start, end = self.text.span(call.func)
            given = f"{own}, " if call.args or call.keywords else own
            yield start, end, self._function(f"{call.func.attr}_by_{name.kind}", call)
            at = self.text.original.index("(", end) + 1
            yield at, at, given

    def _function(self, name: str, call: ast.Call) -> str:
        """The name of a function, which stands above what calls it."""
        top: ast.AST = call
        while self.tree.parents[top] is not self.tree.module:
            top = self.tree.parents[top]
        assert isinstance(top, ast.stmt)
        if self.first is None or top.lineno < self.first.lineno:
            self.first = top
        own = self.names.get(name, name)
        while name not in self.names and own in self.tree.used | self.tree.stored:
            own += "_"
        return self.names.setdefault(name, own)


def _kind_of(call: ast.Call, file: FileScope) -> str:
    """What a distribution is made of; empty where it is none of these."""
    api = file.qualified(call.func)
    made_of = _MADE_OF.get(api.rpartition(".")[2], {}) if api.startswith(_PACKAGE) else {}
    longest: tuple[str, ...] = max(made_of, key=len, default=())
    given = (*longest[: len(call.args)], *(part.arg or "" for part in call.keywords))
    has_star = any(isinstance(part, ast.Starred) for part in call.args)
    if has_star or given not in made_of or len(call.args) > len(longest):
        return ""
    first = call.args[0] if call.args else call.keywords[0].value
    return "" if isinstance(first, ast.Constant) else made_of[given]
