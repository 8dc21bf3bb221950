"""Where the modules of a side come from: a file, a package's folder, or a folder of modules."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from isograd.errors import UsageError
from isograd.scan.project import layout_of


@dataclass(frozen=True)
class Place:
    """Folders to search, and packages that are found by their own folder.

    beside: further places that this one imports from.  preludes: Python files that are run before
    anything is imported.
    """

    search: tuple[Path, ...] = ()
    packages: tuple[tuple[str, Path], ...] = ()
    preludes: tuple[Path, ...] = ()

    def beside(self, *others: Place) -> Place:
        """This place, and others that are searched after it."""
        search, packages, preludes = self.search, self.packages, self.preludes
        for other in others:
            search += other.search
            packages += other.packages
            preludes += other.preludes
        return Place(search, packages, preludes)

    @property
    def roots(self) -> tuple[Path, ...]:
        """Everything below which its files lie."""
        return (*self.search, *(folder for _, folder in self.packages))


def place_of(path: Path, package: str | None = None) -> Place:
    """The place of a file or a folder; raises UsageError where there is none.

    package: the name under which a package's folder is imported, where it is not the folder's own.
    """
    target = path.resolve()
    if target.is_file():
        return Place((target.parent,))
    if not target.is_dir():
        raise UsageError(
            f"there is neither a file nor a folder {path}", "Give the path of Python sources."
        )
    if (target / "__init__.py").is_file():
        return Place(packages=((package or target.name, target),))
    layout = layout_of(target)
    is_namespace = layout.is_package(target)
    packages = ((package or target.name, target),) if is_namespace or package else ()
    return Place(layout.search_path, packages)


def place_of_port(original: Path, port: Path) -> Place:
    """The place of a port, which mirrors the reference under another path.

    The port of a package may be the folder itself or hold a folder of the package's name.
    """
    source = original.resolve()
    if not source.is_dir():
        return place_of(port)
    if (source / "__init__.py").is_file():
        inside = port / source.name
        folder = inside if (inside / "__init__.py").is_file() else port
        return place_of(folder, source.name)
    return place_of(port, source.name if layout_of(source).is_package(source) else None)
