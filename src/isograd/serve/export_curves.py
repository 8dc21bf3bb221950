"""The page of curves as one static file that holds its numbers."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence

from isograd.errors import IsogradError
from isograd.serve.curves import curve_data, curve_of, label_of, names_of
from isograd.serve.model import Item
from isograd.serve.shell import asset, vendored

#: Points in the whole page, some 20 bytes each, and the bounds of a curve's share.
_MOST_POINTS = 1_000_000
_FEWEST_OF_CURVE, _MOST_OF_CURVE = 50, 2_000
#: Scalars of a run, the loss and its like first; statistics of modules are on the run's page.
_MOST_NAMES = 64
_STYLES = ("uplot.min.css", "curves.css")
_SCRIPTS = ("uplot.min.js", "curves.js")


def curves_page(items: Sequence[Item]) -> str:
    """The page of curves of these runs and event files, thinned to about a million points."""
    text = asset("curves.html")
    for name in _STYLES:
        text = _instead(text, f'<link rel="stylesheet" href="static/{name}">', _style(name))
    scripts = {name: _text_of(name) for name in _SCRIPTS}
    for name, script in scripts.items():
        text = _instead(
            text, f'<script src="static/{name}"></script>', f"<script>{script}</script>"
        )
    for served, static in (("./", "index"), ("curves", "curves"), ("lineage", "lineage")):
        text = _instead(text, f'<a href="{served}"', f'<a href="{static}.html"')
    # No text of the data can end the element that holds it.
    data = json.dumps(_stored(items), allow_nan=False, separators=(",", ":")).replace(
        "<", "\\u003c"
    )
    stored = f'<script type="application/json" id="stored">{data}</script>\n<script>'
    text = text.replace("<script>", stored, 1)
    policy = f'<meta http-equiv="Content-Security-Policy" content="{_policy(scripts.values())}">'
    return _instead(text, '<meta charset="utf-8">', f'<meta charset="utf-8">\n{policy}')


def _stored(items: Sequence[Item]) -> dict[str, object]:
    """For each run its scalars, each with the points of its curve."""
    names = {label_of(item): names_of(item)[:_MOST_NAMES] for item in items}
    share = _MOST_POINTS // max(1, sum(map(len, names.values())))
    most = min(_MOST_OF_CURVE, max(_FEWEST_OF_CURVE, share))
    return {
        label_of(item): {
            name: curve for name in names[label_of(item)] for curve in _curve(item, name, most)
        }
        for item in items
    }


def _curve(item: Item, name: str, most: int) -> list[dict[str, object]]:
    try:
        return curve_data([curve_of(item, name, most)])
    except IsogradError:
        return []  # the item's own page says why it cannot be read


def _instead(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, old
    return text.replace(old, new)


def _text_of(name: str) -> str:
    return vendored(name) if name.startswith("uplot") else asset(name)


def _style(name: str) -> str:
    return f"<style>{_text_of(name)}</style>"


def _policy(scripts: Iterable[str]) -> str:
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    hashes = " ".join(f"'sha256-{base64.b64encode(one).decode('ascii')}'" for one in digests)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
