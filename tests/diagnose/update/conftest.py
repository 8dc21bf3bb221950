"""Both frameworks in this process, a small network, and two optimizers to compare."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.diagnose.local_worker import LocalWorker  # noqa: E402

from isograd.model import Finding  # noqa: E402
from isograd.progress import SilentProgress  # noqa: E402
from isograd.verify import session as session_module  # noqa: E402
from isograd.verify.case import read_case  # noqa: E402
from isograd.verify.confirm import PROOF_BATCH  # noqa: E402
from isograd.verify.probe import probe_state  # noqa: E402
from isograd.verify.session import Session  # noqa: E402
from isograd.verify.training import StepsResult, replay_updates, resynchronised_steps  # noqa: E402
from isograd.verify.update_causes import explain_updates  # noqa: E402
from isograd.worker.protocols import Networks  # noqa: E402

REFERENCE = """
    import torch
    from torch import nn
    from torch.optim.lr_scheduler import *

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(2, 5, 3)
            self.bn = nn.BatchNorm2d(5)
            self.head = nn.Linear(20, 3)

        def forward(self, x):
            x = torch.relu(self.bn(self.conv(x)))
            return self.head(x.flatten(1))

    def build():
        return Net()

    def loss(output, target):
        return nn.functional.mse_loss(output, target)

    def optimizer(model):
        parameters = list(model.parameters())
        matrices = [p for p in parameters if p.ndim > 1]
        vectors = [p for p in parameters if p.ndim <= 1]
"""
PORT = """
    import mindspore as ms
    from mindspore import nn, ops
    from mindspore.experimental import optim

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(2, 5, 3, pad_mode="valid", has_bias=True)
            self.bn = nn.BatchNorm2d(5, momentum=0.9)
            self.head = nn.Dense(20, 3)

        def construct(self, x):
            x = ops.relu(self.bn(self.conv(x)))
            return self.head(x.reshape(x.shape[0], -1))

    class Before:
        '''Something is done to the gradients before the optimizer sees them.'''

        def __init__(self, inner, change):
            self.inner, self.change = inner, change
            self.parameters = inner.parameters

        def __call__(self, gradients):
            return self.inner(tuple(self.change(gradients)))

    def by_norm(limit):
        def change(gradients):
            norm = ops.sqrt(sum(ops.square(g).sum() for g in gradients))
            return [g * ops.minimum(limit / (norm + 1e-6), 1.0) for g in gradients]
        return change

    def build():
        return Net()

    def loss(output, target):
        return ops.mse_loss(output, target)

    def optimizer(model):
        parameters = model.trainable_params()
        matrices = [p for p in parameters if p.ndim > 1]
        vectors = [p for p in parameters if p.ndim <= 1]
"""
CASE = """
[reference]
framework = "torch"
model = "net_reference.py:build"
loss = "net_reference.py:loss"
optimizer = "net_reference.py:optimizer"
[port]
framework = "mindspore"
model = "net_port.py:build"
loss = "net_port.py:loss"
optimizer = "net_port.py:optimizer"
[[inputs]]
shape = [6, 2, 4, 4]
[[targets]]
shape = [6, 3]
dtype = "float32"
[verify]
steps = STEPS
compiled = "off"
"""


@dataclasses.dataclass
class Outcome:
    """What the stages update and training say."""

    findings: list[Finding]
    result: StepsResult
    training: StepsResult
    unexplained: set[str]

    @property
    def causes(self) -> list[str]:
        return sorted(f.cause.id if f.cause else "unknown" for f in self.findings)

    def explain(self) -> str:
        return "\n".join(f"{f.message}\n  {f.cause}\n  {f.fix}" for f in self.findings)


@pytest.fixture
def compare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """Compare two optimizers, written as the last lines of the callables."""
    monkeypatch.setattr(session_module, "floors_of", lambda *_: {})
    before = torch.get_num_threads()
    torch.set_num_threads(1)

    def run(
        reference: str, port: str, steps: int = 6, port_net: tuple[str, str] | None = None
    ) -> Outcome:
        def source(start: str, end: str) -> str:
            return textwrap.dedent(start) + textwrap.indent(textwrap.dedent(end), "    ") + "\n"

        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        (folder / "net_reference.py").write_text(source(REFERENCE, reference))
        written = PORT.replace(*port_net) if port_net else PORT
        (folder / "net_port.py").write_text(source(written, port))
        (folder / "case.toml").write_text(CASE.replace("STEPS", str(steps)))
        case = read_case(folder / "case.toml")
        with Session(case, 0, SilentProgress(), start=LocalWorker) as session:
            session.build()
            state, _ = probe_state(
                session.reference_state, session.reference_structure.parameters, 0
            )
            session.reference.ask(Networks.load_state, state)
            session.port.ask(Networks.load_state, session.transfer(state))
            result, _, left_out, record = replay_updates(session)
            explained = explain_updates(
                session,
                record,
                result,
                left_out,
                lambda: set(replay_updates(session, PROOF_BATCH)[0].first),
            )
            # Fewer steps: what is granted has to hold from the first on.
            session.case = dataclasses.replace(session.case, steps=3)
            training, _ = resynchronised_steps(session, explained.granted)
            return Outcome(explained.findings, result, training, explained.unexplained)

    yield run
    torch.set_num_threads(before)
