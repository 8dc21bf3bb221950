"""What a name's answer holds where the knowledge has an entry, another spelling, or none."""

from __future__ import annotations

import pytest

from isograd.knowledge.entry import Entry, Status
from isograd.knowledge.store import Knowledge
from isograd.scan.answers import Answers
from isograd.scan.names import torch_names


@pytest.mark.parametrize(
    ("api", "status", "target"),
    [
        ("torch.amp.GradScaler", "differs", "mindspore.amp"),
        ("torch.cuda.amp.GradScaler", "differs", "mindspore.amp"),
        ("torchvision.transforms.v2.Resize", "supported", "mindspore.dataset"),
        ("torch.Tensor", "supported", "mindspore.Tensor"),
        ("torch.digamma", "unknown", ""),
        ("torch.no_such_name", "unknown", ""),
        ("torch.ops.aten.add", "missing", ""),
        ("torch._C._get_tracing_state", "missing", ""),
    ],
)
def test_answers(api: str, status: str, target: str) -> None:
    knowledge = Knowledge(
        (
            Entry("torch.amp.GradScaler", Status.DIFFERS, "mindspore.amp"),
            Entry("torchvision.transforms.Resize", Status.SUPPORTED, "mindspore.dataset"),
        )
    )
    answer = Answers(knowledge, torch_names()).of(api)
    assert (answer.status, answer.target) == (status, target)
    assert answer.status == "supported" or answer.note or answer.target


def test_names_of_torch_are_canonical() -> None:
    names = torch_names()
    for spelled, canonical in {
        "torch.nn.modules.conv.Conv2d": "torch.nn.Conv2d",
        "torch.nn.parameter.Parameter": "torch.nn.Parameter",
        "torch.optim.sgd.SGD": "torch.optim.SGD",
        "torch.amp.autocast": "torch.autocast",
        "torch.nn.functional.pad": "torch.nn.functional.pad",
    }.items():
        assert names.canonical(spelled) == canonical
