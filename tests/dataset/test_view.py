"""The page to look through samples: what it carries, and that no text of the data escapes."""

from __future__ import annotations

import json
import re

from isograd.data.model import DataReport, Shown, SourceReport, Verdict
from isograd.data.view import render_view


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
