"""What a data set or pipeline yields, and whether two yield the same: `isograd.data("A", "B")`."""

from isograd.callable_package import make_callable

make_callable(__name__, "isograd.data.run:data")
