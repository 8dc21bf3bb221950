"""Names the cause of a divergence by experiment: hypotheses, matched filter, proof."""

from isograd.callable_package import make_callable

make_callable(__name__, "isograd.api:diagnose")
