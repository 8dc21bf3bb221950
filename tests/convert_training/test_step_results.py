"""What a compiled step returns beside the loss: the norm of the gradients, names like its own."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.running import LAYERS, assert_follows, convert

LOOP = """
net = make(0)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in X:
    NAME = net(x)
    loss = (NAME ** 2).mean()
    opt.zero_grad()
    loss.backward()
    CLIP
    opt.step()
    print(loss.item())
    print(NAME.sum().item())
    print(SHOWN)
"""
CLIP = "torch.nn.utils.clip_grad_norm_(net.parameters(), 0.1)"
#: The name of the network's output, the statement that clips, and what is printed of it.
RESULTS = {
    "norm": ("norm", CLIP, "1.0"),
    "gradients": ("gradients", CLIP, "1.0"),
    "gradient_fn": ("gradient_fn", CLIP, "1.0"),
    "kept": ("out", f"total = {CLIP}", "total.item()"),
    "kept beside its name": ("norm", f"total = {CLIP}", "total.item()"),
    "kept as a number": ("out", f"total = float({CLIP})", "f'{total:.5f}'"),
    "kept as an item": ("out", f"total = {CLIP}.item() * 2", "round(total, 4)"),
}
PROXIMAL = """
def update(net, data):
    start = [p.clone().detach() for p in net.parameters()]
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in data:
        opt.zero_grad()
        loss = (net(x) ** 2).mean()
        near = 0.0
        for p, q in zip(net.parameters(), start):
            near += ((p - q) ** 2).sum()
        loss = loss + 0.5 * near
        loss.backward()
        opt.step()
        print(loss.item())


update(make(0), X)
"""
#: Loops that read the norm, or what it is bound to, where a step has not made it yet.
EARLIER = {
    "the norm before it is made": "print(total)\n    total = CLIP",
    "two names": "total = other = CLIP",
    "values": "total = torch.nn.utils.clip_grad_value_(net.parameters(), 0.1)",
}


def _loop(name: str, clip: str, shown: str) -> str:
    return LOOP.replace("NAME", name).replace("CLIP", clip).replace("SHOWN", shown)


def test_results_of_steps_keep_their_names(tmp_path: Path) -> None:
    loops = [_loop(*one) for one in RESULTS.values()]
    text = assert_follows("\n".join([LAYERS, *loops, PROXIMAL]), tmp_path).text
    assert text.count("@ms.jit") == len(RESULTS) + 1


@pytest.mark.parametrize("clip", EARLIER.values(), ids=EARLIER)
def test_norm_that_the_step_cannot_return_keeps_a_loop_eager(clip: str, tmp_path: Path) -> None:
    loop = _loop("out", clip.replace("CLIP", CLIP), "1.0")
    text = convert(f"{LAYERS}\ntotal = 0.0\n{loop}", tmp_path).text
    assert "ms.jit" not in text


INNER = """
net, other = make(0), make(1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
opt_of_other = torch.optim.SGD(other.parameters(), lr=0.1)
for x in X:
    for _ in range(2):
        opt_of_other.zero_grad()
        with torch.no_grad():
            made = net(x)
        apart = (other(made) ** 2).mean()
        apart.backward()
        opt_of_other.step()
    opt.zero_grad()
    loss = (other(net(x)) - 1.0).abs().mean()
    loss.backward()
    opt.step()
    print(apart.item())
    print(loss.item())
"""


def test_loop_in_a_loop_has_a_step_of_its_own(tmp_path: Path) -> None:
    assert assert_follows(LAYERS + INNER, tmp_path).text.count("@ms.jit") == 2
