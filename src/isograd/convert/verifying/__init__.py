"""Is what a conversion left the same network as the reference? `verify_builders` asks `verify`.

Original and port may be packages of one name: each is found by its own path, in its own process.
"""

from isograd.convert.verifying.builders import Builder, parse_builder, parse_input
from isograd.convert.verifying.results import BuilderResult, Outcome, SeedResult
from isograd.convert.verifying.run import VerifyOptions, verify_builders

__all__ = [
    "Builder",
    "BuilderResult",
    "Outcome",
    "SeedResult",
    "VerifyOptions",
    "parse_builder",
    "parse_input",
    "verify_builders",
]
