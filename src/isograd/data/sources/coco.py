"""The layout of COCO: images in a folder, boxes and classes in a JSON file of annotations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from isograd.data.limits import MAX_RECORD_BYTES
from isograd.data.sources.base import Item, Labels, Problem, Sample, SampleSource, inside, refuse


class Coco(SampleSource):
    """A sample per image: `image`, `boxes` (N, 4) as x, y, width, height, and `label` (N,)."""

    format = "COCO"

    def __init__(self, annotations: Path, address: str) -> None:
        super().__init__(address)
        self._root = annotations.parent.parent.resolve()
        self._folders = [
            folder
            for folder in (annotations.parent, annotations.parent.parent)
            for folder in (folder, *sorted(p for p in folder.iterdir() if p.is_dir()))
        ]
        try:
            if annotations.stat().st_size > MAX_RECORD_BYTES:
                raise ValueError("it is larger than 1 GiB")
            found = json.loads(annotations.read_text("utf-8"))
            self._images = [(int(e["id"]), str(e["file_name"])) for e in found["images"]]
            self._boxes = _by_image(found.get("annotations", []))
            categories = found.get("categories", [])
            self._known = {int(e["id"]): str(e.get("name", e["id"])) for e in categories}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise refuse(annotations, f"is no COCO file ({error})", "Export it again.") from error
        names = tuple(self._known[key] for key in sorted(self._known))
        self.labels = Labels("label", (max(self._known) + 1) if self._known else None, names)

    def count(self) -> int | None:
        return len(self._images)

    def samples(self) -> Iterator[Item]:
        for identity, name in self._images:
            path = self._found(name)
            if path is None:
                yield Problem(name, "is annotated and does not lie in the folder")
                continue
            try:
                content = path.read_bytes()
            except OSError as error:
                yield Problem(name, f"cannot be read ({error.strerror})")
                continue
            boxes, labels = self._boxes.get(identity, ([], []))
            yield Sample(
                name,
                {
                    "image": content,
                    "boxes": np.asarray(boxes, np.float64).reshape(-1, 4),
                    "label": np.asarray(labels, np.int64),
                },
            )

    def _found(self, name: str) -> Path | None:
        for folder in self._folders:
            path = folder / name
            if path.is_file() and inside(path, self._root):
                return path
        return None


def _by_image(annotations: list[Any]) -> dict[int, tuple[list[list[float]], list[int]]]:
    found: dict[int, tuple[list[list[float]], list[int]]] = {}
    for entry in annotations:
        box = [float(number) for number in entry.get("bbox", [])]
        if len(box) != 4:
            continue
        boxes, labels = found.setdefault(int(entry["image_id"]), ([], []))
        boxes.append(box)
        labels.append(int(entry["category_id"]))
    return found


def coco_file(path: Path) -> Path | None:
    """The file of annotations of a folder in COCO's layout, or the file itself."""
    if path.is_file():
        return path if path.suffix == ".json" and _looks_so(path) else None
    for folder in (path / "annotations", path):
        if folder.is_dir():
            for file in sorted(folder.glob("*.json")):
                if _looks_so(file):
                    return file
    return None


def _looks_so(path: Path) -> bool:
    """Whether the beginning and the end of a JSON file name what COCO's files hold."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(1 << 16)
            file.seek(max(0, size - (1 << 16)))
            text = head + file.read()
    except OSError:
        return False
    return b'"images"' in text and (b'"annotations"' in text or b'"categories"' in text)
