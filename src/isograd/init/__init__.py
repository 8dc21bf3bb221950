"""A first case for `verify`: what two files tell, what they do not, and whether it runs."""

from isograd.callable_package import make_callable

make_callable(__name__, "isograd.init.run:init")
