"""The conformance tests that every framework adapter passes; needs pytest.

A subclass names one small network that exercises what real networks trip an adapter with, and
the adapter; see `FrameworkConformance`.
"""

from __future__ import annotations

from isograd.testing.diagnosis import DiagnosisGuarantees, PortGuarantees
from isograd.testing.network import side_of
from isograd.testing.passes import PassGuarantees
from isograd.testing.replay import ReplayGuarantees
from isograd.testing.state import StateGuarantees
from isograd.testing.training import TrainingGuarantees

__all__ = ["FrameworkConformance", "side_of"]


class FrameworkConformance(
    StateGuarantees,
    PassGuarantees,
    ReplayGuarantees,
    TrainingGuarantees,
    DiagnosisGuarantees,
    PortGuarantees,
):
    """What isograd relies on, for every framework.

    A subclass gives `open` and `side`.  The network of `side` takes `x` of shape (6, 4), whole
    numbers `tokens` below 7 of shape (6,), and `scale` of shape (4,) by keyword, and returns a
    dictionary of `logits` (6, 4) and a scalar `mean`.  Its parts are named

    - ``first``: a linear layer without bias; ``tied``: another with the same weight,
    - ``embed``: a table of 7 rows, for the tokens,
    - ``norm``: a batch normalisation with running statistics,
    - ``act``: a ReLU, in place where the framework has that,
    - ``twice``: a linear layer that is called twice,
    - ``drop``: a dropout of one half,
    - ``gate``: a user's module with a keyword argument, that returns a tuple; it holds
      ``gate.linear``.

    Its keyword `fail` makes it raise ValueError("on purpose"): "build" in the model callable,
    "forward" in ``gate``, "loss" in the loss, "optimizer" in the optimizer.

    Guarantees: state is copied in and out, and refused where it does not fit; a pass leaves no
    trace in the network, also when it raises, and two passes are bit-identical; recorded calls
    nest; a replay of any call with its children's results given yields what was recorded, and
    gradients of the same function; training works on its own state; errors of the user's code
    name its line.  What declares `Diagnosable` shows its functions by torch's names and computes
    them otherwise until that is taken back; a `Port` is built otherwise for one replay.
    """
