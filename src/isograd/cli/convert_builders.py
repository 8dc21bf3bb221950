"""What `isograd convert` does with builders: `--verify` and `--from-export`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from isograd.cli.inputs import OUTPUT
from isograd.cli.verb import stacked
from isograd.errors import UsageError
from isograd.files import prepare_folder

if TYPE_CHECKING:
    from isograd.convert.graph.report import ExportReport
    from isograd.convert.verifying import BuilderResult, VerifyOptions
    from isograd.convert.verifying.places import Place
    from isograd.progress import Progress


#: The options that concern builders: the fields of a `BuilderRequest`.
builder_options = stacked(
    click.option(
        "--verify",
        "verified",
        multiple=True,
        metavar="BUILDER",
        help="Verify the port's `package.module:function`, or `…:function(width=8)`, against "
        "the reference's; more than once for several.",
    ),
    click.option(
        "--from-export",
        "exported",
        metavar="BUILDER",
        help="Write the builder's network from its graph (torch.export) instead of its source.",
    ),
    click.option(
        "--input",
        "inputs",
        multiple=True,
        metavar="SIZES",
        help="The network's arguments in order: 2x3x64x64, or 2x16:int64<1000. Guessed from "
        "its first layer where it is not given.",
    ),
    click.option(
        "--seed",
        "seeds",
        multiple=True,
        type=click.IntRange(min=0),
        default=(0,),
        show_default=True,
        help="Seeds to verify with; more than once for several.",
    ),
    click.option(
        "--compiled",
        is_flag=True,
        help="Verify the port in MindSpore's static graph as well, and say what does not compile.",
    ),
    click.option(
        "--before",
        "preludes",
        multiple=True,
        type=OUTPUT,
        metavar="FILE.py",
        help="Run this file before the reference is imported.",
    ),
    click.option(
        "--torch-python",
        metavar="PYTHON",
        help="The interpreter that has torch, if it is not this one.",
    ),
)


@dataclass(frozen=True)
class BuilderRequest:
    """What was asked about builders."""

    verified: tuple[str, ...]
    exported: str | None
    inputs: tuple[str, ...]
    seeds: tuple[int, ...]
    compiled: bool
    preludes: tuple[Path, ...]
    torch_python: str | None

    def check(self, path: Path, out: Path | None, writes_nothing: bool) -> None:
        """Raise UsageError for what cannot be meant, before the work begins."""
        from isograd.convert.verifying import parse_builder, parse_input

        for text in (*self.verified, *filter(None, [self.exported])):
            parse_builder(text)
        for text in self.inputs:
            parse_input(text)
        for prelude in self.preludes:
            if not prelude.is_file():
                raise UsageError(f"--before: there is no file {prelude}", "Correct its path.")
        if not self.verified and not self.exported:
            return
        option = "--verify" if self.verified else "--from-export"
        if out is None or writes_nothing:
            raise UsageError(f"{option} needs a port", "Give -o OUT, without --check or --diff.")
        if not path.exists():
            raise UsageError(f"there is no file or folder {path}", "Give the reference's path.")
        if self.verified and self.exported:
            raise UsageError(
                "--verify and --from-export are both given",
                "Give --from-export alone: what it writes is verified.",
            )

    def _original(self, path: Path) -> Place:
        from isograd.convert.verifying.places import Place, place_of

        return place_of(path).beside(Place(preludes=tuple(p.resolve() for p in self.preludes)))

    def _options(self) -> VerifyOptions:
        from isograd.convert.verifying import VerifyOptions, parse_input
        from isograd.convert.verifying.journal import usual_folder

        return VerifyOptions(
            tuple(parse_input(text) for text in self.inputs),
            tuple(dict.fromkeys(self.seeds)),
            journal=usual_folder(),
            reference_python=self.torch_python,
            compiled="auto" if self.compiled else "off",
        )

    def verify(self, path: Path, out: Path, progress: Progress) -> tuple[BuilderResult, ...]:
        """Verify the port's builders; what is finished is remembered."""
        from isograd.convert.verifying import parse_builder, verify_builders
        from isograd.convert.verifying.places import place_of_port

        builders = [parse_builder(text) for text in self.verified]
        places = self._original(path), place_of_port(path, out)
        return tuple(verify_builders(*places, builders, self._options(), progress))

    def export(self, path: Path, out: Path, progress: Progress) -> ExportReport:
        """Write a builder's network from its graph, and verify it."""
        from isograd.convert.graph.report import ExportReport
        from isograd.convert.graph.run import convert_from_export
        from isograd.convert.verifying import parse_builder, verify_builders
        from isograd.convert.verifying.places import place_of

        assert self.exported is not None
        prepare_folder(out)
        builder, original, options = (
            parse_builder(self.exported),
            self._original(path),
            self._options(),
        )
        conversion = convert_from_export(original, builder, out, options.inputs, self.torch_python)
        results: tuple[BuilderResult, ...] = ()
        if conversion.files:
            results = tuple(
                verify_builders(
                    original,
                    place_of(out),
                    [builder],
                    replace(options, inputs=conversion.inputs),
                    progress,
                    port_builders=[conversion.builder],
                )
            )
        return ExportReport(str(path), conversion, results)
