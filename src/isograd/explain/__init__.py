"""What a cause id means: the hypotheses and rules behind it, in their own words."""

from isograd.callable_package import make_callable

make_callable(__name__, "isograd.explain.run:explain")
