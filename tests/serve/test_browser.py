"""The pages in a real browser: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import gzip
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.serve.conftest import HOSTILE

from isograd.progress import SilentProgress
from isograd.runs.information import RunState, describe_run
from isograd.runs.writer import RunWriter
from isograd.serve.catalogue import Catalogue
from isograd.serve.export import export

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
#: Chromium as root in a container, without the connections that it makes by itself.
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]


@pytest.fixture
def address(served: Path) -> Iterator[str]:
    """The address that a server process prints."""
    command = [sys.executable, "-m", "isograd", "serve", str(served), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


@pytest.fixture
def page(address: str) -> Iterator[Any]:
    """A page of a browser in which nothing may go wrong on the console."""
    api = pytest.importorskip("playwright.sync_api")
    problems: list[str] = []
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        made = browser.new_page()
        made.on("pageerror", lambda error: problems.append(str(error)))
        made.on(
            "console", lambda said: problems.append(said.text) if said.type == "error" else None
        )
        made.on("dialog", lambda dialog: problems.append(f"dialog: {dialog.message}"))
        made.goto(address)
        yield made
        browser.close()
    assert problems == []


def test_from_the_first_page_to_a_finding_and_back(page: Any) -> None:
    assert "token" not in page.url
    page.get_by_role("link", name="report.json").click()
    assert page.get_by_text("net_mindspore.py:41").first.is_visible()
    page.get_by_role("link", name="Overview").click()
    assert page.get_by_role("link", name="runs/first").is_visible()


def test_a_run_leads_to_its_curves(page: Any) -> None:
    page.get_by_role("link", name="runs/first").click()
    page.get_by_role("link", name="Its curves").click()
    page.wait_for_selector("#charts canvas")
    assert page.get_by_role("checkbox", name="runs/first").is_checked()
    page.get_by_role("checkbox", name="learning_rate").check()
    page.locator("#charts canvas").nth(1).wait_for()
    page.get_by_role("checkbox", name="logarithmic").check()
    assert "log=1" in page.url


@pytest.fixture
def long_run(served: Path) -> None:
    """A run of more steps than a chart has columns."""
    writer = RunWriter(served / "runs/long", describe_run("a test", "watch", "torch", "cpu"))
    for step in range(9_000):
        writer.scalars(step, {"loss": 1 / (1 + step)})
    writer.close(RunState.COMPLETE)


@pytest.mark.usefixtures("long_run")
def test_a_part_that_is_looked_at_closer_gets_all_its_points(page: Any) -> None:
    page.goto(page.url.partition("?")[0] + "curves?run=runs/long&name=loss")
    over = page.locator("#charts .u-over")
    over.wait_for()
    box = over.bounding_box()
    with page.expect_response("**/points?*from=*") as answered:
        page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 60)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.55, box["y"] + 70, steps=5)
        page.mouse.up()
    (curve,) = answered.value.json()
    steps = curve["steps"]
    assert curve["thinned_from"] == len(steps)
    assert steps == list(range(steps[0], steps[-1] + 1))
    assert 4_300 < steps[0] < 4_700


def test_curves_of_an_export_are_drawn_from_the_file(
    served: Path, page: Any, tmp_path: Path
) -> None:
    export(Catalogue([served]), tmp_path / "site", SilentProgress())
    page.goto((tmp_path / "site/index.html").as_uri())
    page.get_by_role("link", name="runs/first").click()
    page.get_by_role("link", name="Its curves").click()
    page.wait_for_selector("#charts canvas")
    assert page.get_by_role("checkbox", name="runs/first").is_checked()
    page.get_by_role("checkbox", name="learning_rate").check()
    page.locator("#charts canvas").nth(1).wait_for()
    page.get_by_role("checkbox", name=HOSTILE).check()
    assert page.locator("#charts .u-series").count() == 2 * 3, "an axis and two runs each"
    page.get_by_role("link", name="Hyper-parameters").click()
    assert page.get_by_role("link", name="Curves").is_visible()


@pytest.fixture
def seeds(served: Path) -> None:
    """Losses of 1.0 and 1.2; the port's leaves them at step 15 of 20."""
    for name, late in (("seed0", 1.0), ("seed1", 1.2), ("port", 2.0)):
        writer = RunWriter(served / f"runs/{name}", describe_run("a test", "watch", "torch", "cpu"))
        early = 1.1 if name == "port" else late
        for step in range(20):
            writer.scalars(step, {"loss": early if step < 15 else late})
        writer.close(RunState.COMPLETE)


@pytest.mark.usefixtures("seeds")
def test_runs_of_the_reference_bound_what_a_port_may_do(page: Any) -> None:
    chosen = "&".join(f"run=runs/{name}" for name in ("seed0", "seed1", "port"))
    page.goto(page.url.partition("?")[0] + f"curves?{chosen}&name=loss")
    page.wait_for_selector("#charts canvas")
    page.get_by_label("reference").select_option(["runs/seed0", "runs/seed1"])
    said = page.get_by_text("outside of the reference's band")
    said.wait_for()
    assert said.inner_text().startswith("runs/port: 25 % of its points lie outside")
    assert "first at step 15" in said.inner_text()
    assert page.url.count("reference=") == 2
    page.reload()
    said.wait_for()


def test_search_and_keyboard(page: Any) -> None:
    page.get_by_role("searchbox", name="search all pages").fill("net.npz")
    page.keyboard.press("Enter")
    page.wait_for_url("**?q=net.npz")
    assert page.get_by_role("link", name="net.npz").is_visible()
    assert page.get_by_role("link", name="runs/first").count() == 0


def test_a_page_shows_what_was_written_since(page: Any, served: Path) -> None:
    page.get_by_role("link", name="report.json").click()
    page.wait_for_timeout(1500)
    report = served / "report.json"
    report.write_text(report.read_text().replace("layer1.0.bn1", "layer9.new"))
    page.get_by_text("layer9.new").first.wait_for(timeout=10_000)
    assert page.get_by_text("layer1.0.bn1").count() == 0


def test_a_finding_leads_to_its_module_in_the_graph_and_to_its_line(
    migration: Path, page: Any
) -> None:
    page.get_by_role("link", name="report.json").click()
    page.get_by_role("link", name="module in the network").first.click()
    boxes = page.locator('.graph g[data-path="layer1.0.bn1"]')
    boxes.first.wait_for()
    assert boxes.count() == 2, "the reference and the port, side by side"
    assert "target" in (boxes.first.get_attribute("class") or "")
    assert boxes.first.locator("rect.level-6").count() == 1, "959 times the noise"
    page.get_by_role("button", name="close layer1", exact=True).click()
    assert page.locator('.graph g[data-path="layer1.0.bn1"]').count() == 0
    closed = page.get_by_role("button", name="open layer1").first
    closed.focus()
    page.keyboard.press("Enter")
    page.locator('.graph g[data-path="layer1.0"]').first.wait_for()
    page.get_by_role("link", name="net_mindspore.py:41").first.click()
    line = page.locator("#line-41")
    assert "line_41 = 41" in line.inner_text()
    assert page.evaluate("document.querySelector('#line-41').matches(':target')")


def test_a_recordings_graph_is_coloured_by_the_chosen_report(migration: Path, page: Any) -> None:
    page.get_by_role("link", name="kept/reference").click()
    page.get_by_role("button", name="open layer1").first.click()
    page.get_by_label("coloured by").select_option("profile profile.json")
    box = page.locator('.graph g[data-path="layer1.0"]').first
    assert box.locator("rect.level-8").count() == 1, "all of the time"


def test_histograms_and_images_are_drawn(events: Path, page: Any) -> None:
    page.get_by_role("link", name="tb/events").click()
    page.locator("figure.chart canvas").nth(1).wait_for()
    images = page.locator("figure.picture img")
    assert images.count() == 5
    assert page.evaluate("[...document.images].every((one) => one.naturalWidth === 8)")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_accessible(migration: Path, events: Path, page: Any, scheme: str) -> None:
    """axe-core finds nothing on any kind of page: labels, roles, contrast."""
    packed = Path(__file__).parent / "vendor" / "axe.min.js.gz"
    axe = gzip.decompress(packed.read_bytes()).decode()
    page.emulate_media(color_scheme=scheme)
    home = page.url
    addresses = page.evaluate("[...document.querySelectorAll('td a')].map((one) => one.href)")
    for address in [home, f"{home}curves", f"{home}lineage", *addresses]:
        page.goto(address)
        page.wait_for_timeout(200)
        page.evaluate(axe)
        found = page.evaluate("axe.run().then((answer) => answer.violations)")
        said = [
            (one["id"], node["target"], node["failureSummary"])
            for one in found
            for node in one["nodes"]
        ]
        assert said == [], address


def test_everything_on_a_page_is_reached_by_keyboard(migration: Path, page: Any) -> None:
    page.get_by_role("link", name="report.json").click()
    page.locator(".graph svg").first.wait_for()
    wanted = page.evaluate(
        "[...document.querySelectorAll('a, button, summary, select, input, [tabindex=\"0\"]')]"
        ".filter((one) => one.getClientRects().length).length"
    )
    seen = set()
    for _ in range(wanted):
        page.keyboard.press("Tab")
        seen.add(
            page.evaluate("[...document.querySelectorAll('*')].indexOf(document.activeElement)")
        )
    assert len(seen) >= wanted - 1, "some element takes no focus"
