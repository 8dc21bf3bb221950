"""The mindspore adapter keeps the guarantees that isograd relies on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from isograd.frameworks.base import Framework, SideSpec
from isograd.frameworks.registry import open_framework
from isograd.testing import FrameworkConformance, side_of

DATA = Path(__file__).resolve().parent.parent / "data"


class TestMindSpore(FrameworkConformance):
    """All guarantees of a framework that only plays the port."""

    has_arithmetics = False
    bookkeeping = frozenset(
        """_lazy_forward_pre_hook _lazy_forward_hook _lazy_backward_pre_hook _lazy_backward_hook
        _func_graph_flags _is_check_and_refresh _init_flag""".split()
    )

    def open(self) -> Framework:
        pytest.importorskip("mindspore")
        return open_framework("mindspore")

    def side(self) -> SideSpec:
        return side_of("mindspore", DATA / "conformance_mindspore.py")

    def modules(self, framework: Any) -> dict[str, Any]:
        return dict(framework._cells)
