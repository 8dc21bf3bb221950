"""Checkpoints: what is in them, whether they are sound, and one written as another."""

from isograd.callable_package import make_callable

make_callable(__name__, "isograd.api:weights")
