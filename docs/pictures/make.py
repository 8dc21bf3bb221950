"""Makes the pictures of docs/serve.md: a whole migration as `isograd serve` shows it.

    python docs/pictures/make.py

Runs the commands of docs/guide.md on a copy of examples/guide, serves what they leave, and
photographs its pages in Debian's Chromium.  Takes a few minutes; every picture is new.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
EXAMPLE = HERE.parents[1] / "examples" / "guide"
SIZE = {"width": 1000, "height": 620}
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
#: The migration, as docs/guide.md has it; what differs makes the exit status 1.
STEPS = (
    "scan net_torch.py --json reports/scan.json",
    "init net_torch.py net_mindspore.py",
    "verify case.toml --keep recordings --json reports/verify.json",
    "watch --out runs/torch --json reports/watch.json net_torch.py",
    "weights net.pth -o net.ckpt --json reports/weights.json",
    "watch --out runs/mindspore net_mindspore.py",
)


def migrate(folder: Path) -> None:
    """Run every command of the migration; RuntimeError where one could not do its work."""
    (folder / "reports").mkdir()
    for step in STEPS:
        print(f"isograd {step}", file=sys.stderr)
        command = [sys.executable, "-m", "isograd", *step.split()]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            raise RuntimeError(f"isograd {step}: {done.stderr}")


def overview(page: Any) -> None:
    """The first page."""
    page.get_by_role("link", name="runs/torch").wait_for()


def finding(page: Any) -> None:
    """Where verify's finding leads: to its module, of both sides."""
    page.get_by_role("link", name="reports/verify.json").click()
    page.get_by_role("link", name="module in the network").first.click()
    page.locator(".graph .target").first.wait_for()
    page.get_by_role("heading", name="Network").scroll_into_view_if_needed()
    page.evaluate("document.querySelector('#network').scrollIntoView()")


def line(page: Any) -> None:
    """The line to change."""
    page.get_by_role("link", name="net_mindspore.py:").first.click()
    page.locator("li:target").wait_for()


def curves(page: Any) -> None:
    """The losses of both trainings."""
    page.get_by_role("link", name="Curves").first.click()
    page.locator("#charts canvas").first.wait_for()
    page.evaluate("document.querySelector('#charts').scrollIntoView({ block: 'end' })")


def photograph(page: Any, name: str) -> None:
    """Write what the window shows, in few colours."""
    page.wait_for_timeout(500)
    image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    target = HERE / f"serve-{name}.png"
    image.quantize(64, dither=Image.Dither.NONE).save(target, optimize=True)
    print(f"{target.name}: {target.stat().st_size / 1000:.0f} kB")


def main() -> None:
    """Make all pictures."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "migration"
        shutil.copytree(EXAMPLE, folder)
        migrate(folder)
        command = [sys.executable, "-m", "isograd", "serve", str(folder), "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                take(server.stdout.readline().strip())
            finally:
                server.terminate()


def take(address: str) -> None:
    """One picture after the other, as a person clicks."""
    steps: tuple[Callable[[Any], None], ...] = (overview, finding, line, curves)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page(viewport=SIZE)
        page.goto(address)
        for step in steps:
            step(page)
            photograph(page, step.__name__)
        browser.close()


if __name__ == "__main__":
    main()
