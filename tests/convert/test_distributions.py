"""torch.distributions in a port, as policies and variational networks use them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.convert.support import converted, port_of, run_port

pytest.importorskip("torch")
pytest.importorskip("mindspore")

CODE = """
import torch
import torch.nn.functional as F
from torch.autograd import Variable
from torch.distributions import Bernoulli, Categorical, Independent, Normal, kl_divergence


def policy(mean, width, logits, action):
    mean = Variable(mean).contiguous(memory_format=torch.contiguous_format)
    dist = Normal(mean, F.softplus(width))
    prior = Normal(torch.zeros_like(dist.loc), torch.ones_like(dist.scale))
    chosen = Categorical(logits=logits)
    best = chosen.probs.argmax(dim=1)
    return [
        dist.log_prob(action).sum(dim=-1, keepdim=True),
        kl_divergence(dist, prior).mean(dim=0),
        Independent(dist, 1).log_prob(action).unsqueeze(1),
        chosen.log_prob(best),
        chosen.entropy().unsqueeze(0),
        Bernoulli(logits=logits).log_prob((logits > 0).float()).sum(),
    ]


def draw(mean):
    return Normal(mean, 1e-9).rsample((2,)).mean(dim=0)
"""
CHILD = """
import json
import numpy as np
import {framework} as framework
from net import draw, policy
draws = np.random.default_rng(0)
mean, width, action = (framework.{make}(draws.standard_normal((5, 3)).astype("f4"))
                       for _ in range(3))
logits = framework.{make}(draws.standard_normal((5, 4)).astype("f4"))
found = [*policy(mean, width, logits, action), draw(mean)]
print(json.dumps([value.{array}.tolist() for value in found]))
"""


def test_a_policy_computes_the_same(tmp_path: Path) -> None:
    folder, report = converted(tmp_path, {"net.py": CODE})
    assert report.findings == ()
    ours = json.loads(
        run_port(folder, CHILD.format(framework="mindspore", make="Tensor", array="asnumpy()"))
    )
    import torch

    space: dict[str, object] = {}
    exec(CODE, space)
    draws = np.random.default_rng(0)
    mean, width, action = (
        torch.from_numpy(draws.standard_normal((5, 3)).astype("f4")) for _ in range(3)
    )
    logits = torch.from_numpy(draws.standard_normal((5, 4)).astype("f4"))
    theirs = [*space["policy"](mean, width, logits, action), space["draw"](mean)]
    assert len(ours) == len(theirs)
    for mine, its in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, its.numpy(), rtol=2e-5, atol=2e-6)


def test_a_constraint_without_counterpart_is_told() -> None:
    _, findings = port_of("import torch\n\nc = torch.distributions.constraints.is_dependent(1)\n")
    assert [finding.api for finding in findings] == ["torch.distributions.constraints.is_dependent"]


def test_a_layer_that_is_called_like_a_method_is_left_alone() -> None:
    text, findings = port_of("import torch\n\ndef f(self, x):\n    return self.relu(x)\n")
    assert not findings
    assert "return self.relu(x)" in text
