"""The page to look through samples: what it carries, and that no text of the data escapes."""

from __future__ import annotations

import io
import json
import re

import numpy as np
import pytest
from PIL import Image

from isograd.data.inventory.look import Gallery
from isograd.data.model import DataReport, Shown, SourceReport, Verdict
from isograd.data.sources.base import Sample
from isograd.data.view import render_view

#: A grey image, (64, 80, 3).
GREY = np.full((64, 80, 3), 128, np.uint8)


def _page(*shown: Shown) -> str:
    source = SourceReport("<b>x</b>", "npz", len(shown), (), (), shown=shown)
    return render_view(DataReport(Verdict.SOUND, (source,))).decode()


def test_a_sample_is_carried_with_its_label_and_findings() -> None:
    one = Shown("a", "train", "3 cat", {"image": b"\x89PNG"}, {}, {"ids": "[1, 2]"}, ("data.leak",))
    found = re.search(r'id="data">(.*?)</script>', _page(one), re.DOTALL)
    assert found is not None
    (entry,) = json.loads(found[1])
    assert (entry["key"], entry["label"], entry["codes"]) == ("a", "3 cat", ["data.leak"])
    assert entry["pictures"] == [["image", "data:image/png;base64,iVBORw=="]]


def test_hostile_names_and_texts_cannot_end_the_element_they_stand_in() -> None:
    evil = "</script><script>alert(1)</script>"
    page = _page(Shown(evil, evil, evil, {}, {}, {evil: evil}))
    assert "<script>alert" not in page
    assert "<b>x</b>" not in page
    assert page.count("</script>") == 2


def _shown(fields: dict[str, np.ndarray]) -> Shown:
    gallery = Gallery(1, 0)
    gallery.offer(Sample("a", fields), {}, None)
    return gallery.shown()[0]


def _half(dtype: str) -> np.ndarray:
    mask = np.zeros((64, 80), dtype)
    mask[:, 40:] = 3
    return mask


@pytest.mark.parametrize(
    ("image", "mask"),
    [
        pytest.param(GREY, _half("uint8"), id="channels last"),
        pytest.param(GREY.transpose(2, 0, 1), _half("int64"), id="channels first"),
        pytest.param(GREY, _half("int32")[..., None], id="a mask of one channel"),
    ],
)
def test_a_mask_colours_the_image_and_has_a_legend(image: np.ndarray, mask: np.ndarray) -> None:
    one = _shown({"image": image, "mask": mask})
    drawn = np.asarray(Image.open(io.BytesIO(one.pictures["mask"])))
    assert drawn[10, 10].tolist() == [128, 128, 128]
    assert len(set(drawn[10, 70].tolist())) > 1, "not coloured"
    (none, first), (colour, second) = one.legends["mask"]
    assert (none, first, second) == ("", "0: 50.0%", "3: 50.0%")
    entry = re.search(r'id="data">(.*?)</script>', _page(one), re.DOTALL)
    assert entry is not None
    assert json.loads(entry[1])[0]["legends"]["mask"][1] == [colour, "3: 50.0%"]


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(np.zeros((64, 79), np.uint8), id="another width"),
        pytest.param(np.zeros((64, 80), np.float32), id="floats"),
        pytest.param(np.arange(64 * 80).reshape(64, 80), id="as many values as a picture"),
    ],
)
def test_other_maps_are_no_masks(values: np.ndarray) -> None:
    one = _shown({"image": GREY, "map": values})
    assert one.legends == {}
    assert "map" in one.pictures


def test_boxes_of_a_large_image_are_where_they_belong() -> None:
    image = np.zeros((2048, 2048, 3), np.uint8)
    one = _shown({"image": image, "boxes": np.asarray([[1024.0, 1024.0, 900.0, 900.0]])})
    drawn = np.asarray(Image.open(io.BytesIO(one.pictures["image"])))
    ys, xs = np.nonzero(drawn[..., 0] > 40)
    assert (ys.min(), xs.min()) == (64, 64)
    assert max(ys.max(), xs.max()) < 124
