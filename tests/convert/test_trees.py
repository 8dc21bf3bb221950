"""Trees of containers: the port's functions beside torch's own."""

from __future__ import annotations

import collections
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.convert.support import converted, run_port

from isograd.convert import trees

theirs = pytest.importorskip("torch.utils._pytree")


class Pair(NamedTuple):
    first: Any
    second: Any


def _dictionaries(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.dictionaries(st.text(max_size=3), parts, max_size=3)


TREES = st.recursive(
    st.integers() | st.none() | st.text(max_size=2),
    lambda parts: (
        st.lists(parts, max_size=3)
        | st.tuples(parts, parts)
        | st.builds(Pair, parts, parts)
        | _dictionaries(parts)
        | _dictionaries(parts).map(collections.OrderedDict)
        | _dictionaries(parts).map(lambda found: collections.defaultdict(list, found))
        | st.lists(parts, max_size=3).map(lambda found: collections.deque(found, 5))
    ),
    max_leaves=8,
)


@given(TREES)
def test_leaves_come_in_torchs_order_and_go_back(tree: Any) -> None:
    leaves, form = trees.tree_flatten(tree)
    assert leaves == theirs.tree_flatten(tree)[0] == trees.tree_leaves(tree)
    back = trees.tree_unflatten(leaves, form)
    assert back == tree
    assert repr(back) == repr(tree), "of the same types"


@given(TREES)
def test_a_function_is_applied_to_every_leaf(tree: Any) -> None:
    def shown(*leaves: Any) -> str:
        return repr(leaves)

    assert trees.tree_map(shown, tree) == theirs.tree_map(shown, tree)
    assert trees.tree_map(shown, tree, tree) == theirs.tree_map(shown, tree, tree)
    assert trees.tree_map_only(int, shown, tree) == theirs.tree_map_only(int, shown, tree)


def test_a_node_may_be_called_a_leaf() -> None:
    tree = {"a": [1, 2], "b": (3, [4])}

    def is_list(node: Any) -> bool:
        return isinstance(node, list)

    expected = theirs.tree_map(len, tree["b"][1:], is_leaf=is_list)
    assert trees.tree_map(len, tree["b"][1:], is_leaf=is_list) == expected
    assert trees.tree_leaves(tree, is_leaf=is_list) == [[1, 2], 3, [4]]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: trees.tree_unflatten([1], trees.tree_flatten([1, 2])[1]), "1 leaves for a tree"),
        (lambda: trees.tree_map(max, [1, 2], [1]), "trees of different forms"),
    ],
)
def test_what_does_not_fit_is_said(call: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()


def test_a_port_has_them(tmp_path: Path) -> None:
    pytest.importorskip("mindspore")
    source = """
        import torch
        from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

        def doubled(states):
            leaves, form = tree_flatten(states)
            return tree_unflatten([leaf * 2 for leaf in leaves], form)

        def detached(states):
            return tree_map(lambda t: t.detach() if torch.is_tensor(t) else t, states)
    """
    folder, report = converted(tmp_path, {"net.py": source})
    assert not report.findings
    printed = run_port(
        folder,
        """
        import mindspore as ms
        from net import detached, doubled
        print(detached(doubled({"a": [1, (2,)], "b": ms.Tensor(3)})))
        """,
    )
    assert printed.strip() == "{'a': [2, (4,)], 'b': Tensor(shape=[], dtype=Int64, value= 6)}"
