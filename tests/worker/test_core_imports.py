"""The core never imports a framework, and a worker's modules need nothing but numpy."""

from __future__ import annotations

import subprocess
import sys

import pytest

CORE = """
    isograd isograd.cli isograd.cli.verify isograd.verify isograd.verify.ladder isograd.recording
    isograd.recording.reader isograd.recording.recorder isograd.report.render_html
    isograd.verify.document isograd.report.render_text isograd.noise.envelope
    isograd.pairing.parameters
    isograd.frameworks.registry isograd.frameworks.base isograd.worker.host
    isograd.convert.verifying isograd.convert.graph.run isograd.convert.document
""".split()


@pytest.mark.parametrize("modules", [CORE], ids=["core"])
def test_no_framework_is_imported(modules: list[str]) -> None:
    program = (
        f"import importlib, sys\nfor name in {modules}: importlib.import_module(name)\n"
        "print([n for n in ('torch', 'mindspore') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.strip() == "[]"


def test_a_worker_needs_only_numpy() -> None:
    program = (
        "import sys\nimport isograd.worker.service\nimport isograd.frameworks.fake.adapter\n"
        "names = 'torch mindspore click rich jinja2 safetensors'.split()\n"
        "print([n for n in names if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.strip() == "[]"
