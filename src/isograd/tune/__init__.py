"""Searching hyper-parameters: `isograd.tune("study.toml")`."""

from isograd.callable_package import make_callable

make_callable(__name__, "isograd.tune.run:tune")
