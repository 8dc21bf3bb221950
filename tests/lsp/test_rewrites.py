"""Edits on texts: what is replaced, what is kept, and what is left to a person."""

from __future__ import annotations

import ast

import pytest

pytest.importorskip("lsprotocol")
from isograd.knowledge import load_knowledge
from isograd.knowledge.entry import Applicability
from isograd.knowledge.port import NoPortError, port_of
from isograd.lsp.analysis import Analysis
from isograd.lsp.project import Projects
from isograd.lsp.rewrites import Rewriter, apply
from isograd.scan import sources
from isograd.scan.names import torch_names

PROJECTS = Projects()
HEAD = "import torch\nfrom torch import Tensor\n"
#: Everything that a template may name, so that no rewrite adds an import.
IMPORTS = """import einops.layers.torch
import mindspore as ms
from mindspore import nn, ops, mint, amp
from mindspore.experimental import optim
import mindspore.dataset as ds
from mindspore.dataset import transforms, vision
import numpy as np
from isograd import runtime as composites
import torch
import torchvision
"""


def analyse(text: str) -> Analysis:
    source = sources.parse_text(text, "net.py", [])
    assert source is not None
    tree = source.tree
    return Analysis(text, tree, PROJECTS.scan(source, None, (), {}))


def rewritten(text: str, api: str) -> str | None:
    """The text with the first use of an API rewritten; None where no rewrite is offered."""
    analysis = analyse(text)
    rewriter = Rewriter(analysis, PROJECTS.knowledge)
    found = next(item for item in analysis.uses if item.use.answer.api == api)
    made = rewriter.replacement(found)
    edits = rewriter.edits([made]) if made is not None else None
    return None if edits is None else apply(text, edits)


def in_function(line: str) -> str:
    return f"{HEAD}from mindspore import ops\n\n\ndef f(x: Tensor, y: Tensor):\n    {line}\n"


@pytest.mark.parametrize(
    ("line", "api", "expected"),
    [
        ("z = -x.add(y)", "torch.Tensor.add", "z = -(x + y)"),
        ("z = x.add(y)", "torch.Tensor.add", "z = x + y"),
        ("z = (x + y).exp()", "torch.Tensor.exp", "z = ops.exp(x + y)"),
        ("z = torch.exp(x\n      + y)", "torch.exp", "z = ops.exp(x\n      + y)"),
        ("x.add_(y)", "torch.Tensor.add_", "x = x + y"),
        ("x[0].add_(y)", "torch.Tensor.add_", "x[0] = x[0] + y"),
        ("z = x.add_(y)", "torch.Tensor.add_", None),
        ("torch.nn.functional.relu(x, inplace=True)", "torch.nn.functional.relu", None),
        ("z = torch.abs(x, out=y)", "torch.abs", None),
        ("z = torch.cat(*x)", "torch.cat", None),
    ],
)
def test_one_use(line: str, api: str, expected: str | None) -> None:
    found = rewritten(in_function(line), api)
    assert found == (None if expected is None else in_function(expected))


def test_an_in_place_argument_asks_for_a_look() -> None:
    analysis = analyse(in_function("z = torch.nn.functional.relu(x, inplace=True)"))
    (found,) = [item for item in analysis.uses if item.use.answer.api.endswith("relu")]
    made = Rewriter(analysis, PROJECTS.knowledge).replacement(found)
    assert made is not None
    assert made.applicability is Applicability.LOOK


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("", "import torch\nfrom mindspore import ops\n"),
        ("#!/usr/bin/env python\n# words\n", "import torch\nfrom mindspore import ops\n"),
        ('"""Words."""\n', "import torch\nfrom mindspore import ops\n"),
        ("from __future__ import annotations\n", "import torch\nfrom mindspore import ops\n"),
        ("import mindspore.ops as P\n", "import torch\n"),
        ("ops = 3\n", "import mindspore.ops\nops = 3\nimport torch\n"),
    ],
)
def test_the_import_that_is_needed(head: str, expected: str) -> None:
    found = rewritten(f"{head}import torch\n\ny = torch.abs(x)\n", "torch.abs")
    name = "P" if " as P" in head else "mindspore.ops" if "ops = 3" in head else "ops"
    head = "" if "ops = 3" in head else head
    assert found == f"{head}{expected}\ny = {name}.abs(x)\n"


def test_no_rewrite_where_every_name_is_taken() -> None:
    text = "import torch\nops = mindspore = 1\ny = torch.abs(x)\n"
    assert rewritten(text, "torch.abs") is None


def test_rewriting_twice_is_rewriting_once() -> None:
    text = "import torch\n\ny = torch.abs(torch.cat([torch.exp(x), x], dim=1))\n"
    rewriter = Rewriter(analyse(text), PROJECTS.knowledge)
    edits = rewriter.all_safe()
    assert edits is not None
    again = Rewriter(analyse(apply(text, edits)), PROJECTS.knowledge)
    assert again.all_safe() is None


def test_edits_agree_with_what_was_executed() -> None:
    """Every safe example of the knowledge is written as the code that its check executes."""
    compared = 0
    for entry in load_knowledge(with_examples=True).entries:
        # Methods need an annotation, and what works in place is not safe here.
        if entry.applicability is not Applicability.SAFE or ".Tensor." in entry.api:
            continue
        if PROJECTS.knowledge.canonical(torch_names().canonical(entry.api)) != entry.api:
            continue  # the scan finds it under another name
        for example in entry.examples:
            if example.port or "return" in example.code or "inplace=True" in example.code:
                continue
            try:
                port = port_of(example.code, PROJECTS.knowledge)
            except NoPortError:
                continue
            names = ", ".join(f"{name}: torch.Tensor" for name, _ in example.inputs)
            text = f"{IMPORTS}def f({names}):\n    return {example.code}\n"
            edits = Rewriter(analyse(text), PROJECTS.knowledge).all_safe()
            found = ast.parse(apply(text, edits or ())).body[-1]
            assert isinstance(found, ast.FunctionDef)
            made = ast.unparse(found.body[0])
            assert made == f"return {ast.unparse(ast.parse(port))}"
            compared += 1
    assert compared > 1000
