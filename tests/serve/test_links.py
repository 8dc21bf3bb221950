"""From a finding to its source line, its module in the network, and its curves."""

from __future__ import annotations

from pathlib import Path

from starlette.testclient import TestClient

from isograd.progress import SilentProgress
from isograd.report.document import Graph, Tree
from isograd.serve.catalogue import Catalogue
from isograd.serve.data_flow import flow_of
from isograd.serve.export import export
from isograd.serve.model import Kind
from isograd.serve.pages import page_of


def test_a_finding_leads_to_its_line_its_module_and_its_curves(
    migration: Path, client: TestClient
) -> None:
    page = client.get("/verify/report.json").text
    assert 'href="../source/net_mindspore.py#line-41"' in page
    assert '<li id="line-41">' in client.get("/source/net_mindspore.py").text
    assert 'href="#module-layer1.0.bn1"' in page
    assert 'id="module-layer1.0.bn1"' in page
    assert "name=gradient%2Flayer1.0.bn1.weight%2Fnorm" in page
    assert (migration / "net_mindspore.py").read_text().splitlines()[40] == "line_41 = 41"
    asked = {"run": "runs/watched", "name": "gradient/layer1.0.bn1.weight/norm"}
    assert client.get("/points", params=asked).json()[0]["values"] == [1.5]


def test_the_graph_shows_who_feeds_whom(recordings: Path) -> None:
    side = flow_of(recordings / "reference", "reference")
    names = [node.path for node in side.nodes]
    edges = {(names[a], names[b]) for a, b in side.edges}
    add = next(name for name in names if name.startswith("layer1.0.") and "add" in name)
    assert ("input", "layer1.0.linear") in edges
    assert ("layer1.0.linear", "layer1.0.bn1") in edges
    assert {("layer1.0.bn1", add), ("input", add)} <= edges, "the residual connection"
    assert not any(a == b for a, b in edges)


def test_both_sides_are_coloured_by_every_report_that_names_their_modules(migration: Path) -> None:
    catalogue = Catalogue([migration])
    item = catalogue.find(Kind.RECORDING, "kept/reference")
    assert item is not None
    sections = page_of(item, catalogue).sections
    (graph,) = [one for one in sections if isinstance(one, Graph)]
    assert [side.title for side in graph.sides] == ["reference", "port"]
    assert list(graph.colourings) == ["verify report.json", "profile profile.json"]
    for side in graph.sides:
        levels = {node.path: node.levels for node in side.nodes}
        assert levels["layer1.0.bn1"][0] == 6
        assert levels["layer1.0.linear"][0] == 0
        assert levels["layer1.1.bn1"] == (None, None)
    assert any(isinstance(one, Tree) for one in sections)


def test_links_lead_on_among_static_files(migration: Path, tmp_path: Path) -> None:
    export(Catalogue([migration]), tmp_path / "site", SilentProgress())
    page = (tmp_path / "site/verify/report.json.html").read_text()
    assert 'href="../source/net_mindspore.py.html#line-41"' in page
    assert (tmp_path / "site/source/net_mindspore.py.html").is_file()
    assert "curves?" not in page, "a report has none"
