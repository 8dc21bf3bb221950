"""`Categorical(logits=x)` whose names are only asked for `log_prob` and `entropy`, as functions.

distribution = Categorical(logits=network(state))
loss = -(distribution.log_prob(action) * advantage).mean() - 0.01 * distribution.entropy().mean()

A static graph makes no objects of tensors.  In place of the distribution the name holds the
logarithms of its probabilities, or the probabilities where it was made of these.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from isograd.convert.text import Text
from isograd.convert.tree import Tree, read_tree
from isograd.static_graph.scope import FileScope

WORD = "Categorical"
_APIS = ("torch.distributions.Categorical", "torch.distributions.categorical.Categorical")
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
    "entropy_by_probs": """
def entropy_by_probs(probs: torch.Tensor):
    \"\"\"The mean of the negated logarithms of probabilities.\"\"\"
    eps = torch.finfo(probs.dtype).eps
    return -(torch.log(torch.clamp(probs, eps, 1 - eps)) * probs).sum(-1)
""",
}
_METHODS = {"log_prob": ("value",), "entropy": ()}


@dataclass(frozen=True)
class _Name:
    """A name of one scope that holds nothing but such distributions; kind: logits or probs."""

    made: tuple[ast.Call, ...]
    asked: tuple[ast.Call, ...]
    kind: str


def written_categoricals(text: str, tree: ast.Module) -> list[tuple[int, int, str]]:
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
        if len(kinds) != 1 or "" in kinds or not asked:
            return None
        return _Name(tuple(made), tuple(asked), *kinds)

    def _asked(self, method: ast.AST) -> ast.Call | None:
        """The call of `log_prob` or `entropy` of a name."""
        call = self.tree.parents.get(method)
        is_method = isinstance(method, ast.Attribute) and method.attr in _METHODS
        if not is_method or not isinstance(call, ast.Call) or call.func is not method:
            return None
        given = [*("value" for _ in call.args), *(part.arg for part in call.keywords)]
        has_star = any(isinstance(part, ast.Starred) for part in call.args)
        return call if tuple(given) == _METHODS[method.attr] and not has_star else None  # type: ignore[attr-defined]

    def _edits(self, name: _Name) -> Iterator[tuple[int, int, str]]:
        for call in name.made:
            yield (*self.text.span(call.func), self._function(f"{name.kind}_of_classes", call))
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
    given = [*("probs" for _ in call.args), *(part.arg or "" for part in call.keywords)]
    has_star = any(isinstance(part, ast.Starred) for part in call.args)
    if file.qualified(call.func) not in _APIS or has_star or given not in (["probs"], ["logits"]):
        return ""
    is_none = isinstance((call.args or [part.value for part in call.keywords])[0], ast.Constant)
    return "" if is_none else given[0]
