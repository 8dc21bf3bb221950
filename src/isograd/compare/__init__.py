"""Two sets of tensors, two loss curves: which tensor is which, how far apart, where first."""

from isograd.callable_package import make_callable

make_callable(__name__, "isograd.api:compare")
