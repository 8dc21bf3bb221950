"""Source to findings: what a PyTorch project uses, without importing or running it."""

from isograd.callable_package import make_callable

make_callable(__name__, "isograd.api:scan")
