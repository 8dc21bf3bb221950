"""What the tests of scan share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from isograd.knowledge.store import Knowledge
from isograd.scan.model import ScanReport
from isograd.scan.run import scan_path


@dataclass
class Scanner:
    """Writes files into a project and scans it."""

    folder: Path
    knowledge: Knowledge

    def write(self, **files: str) -> None:
        """Files by name: `a__b="…"` is a/b.py."""
        for name, text in files.items():
            path = self.folder / (name.replace("__", "/") + ".py")
            if name.endswith("_init"):
                path = self.folder / name.removesuffix("_init").replace("__", "/") / "__init__.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def scan(self) -> ScanReport:
        return scan_path(self.folder, knowledge=self.knowledge)

    def apis(self, file: str = "main.py", *, unsure: bool = False) -> set[str]:
        """Names that are used in a file, without the prefix `torch.`."""
        return {
            use.answer.api.removeprefix("torch.")
            for scan in self.scan().files
            if scan.file == file
            for use in scan.uses
            if unsure or use.how != "unsure"
        }
