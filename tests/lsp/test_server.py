"""`isograd lsp` as an editor sees it: over standard streams, from typing to shutdown."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

pytest.importorskip("pygls")
from lsprotocol import types

sys.path.insert(0, str(Path(__file__).parent))
from support import Editor

_NUMBERS = count()
HEAD = "import torch\nimport torch.nn as nn\nfrom torch import Tensor\n"


@pytest.fixture(scope="module")
def editor() -> Iterator[Editor]:
    editor = Editor()
    yield editor
    assert editor.stop() == 0
    assert editor.logged == []


@pytest.fixture
def uri() -> str:
    return f"file:///nowhere/of/any/workspace/net_{next(_NUMBERS)}.py"


def _by_code(found: list[types.Diagnostic]) -> dict[object, types.Diagnostic]:
    return {item.code: item for item in found}


def test_diagnostics_with_their_places(editor: Editor, uri: str) -> None:
    editor.open(
        uri,
        HEAD + "def f(x: Tensor, y):\n"
        "    x.add_(1)\n"
        "    z = torch.hash_tensor(x)\n"
        "    if x.sum() > 0:  # a comment\n"
        "        return torch.no_such_name(x)\n"
        "    return torch.abs(x)\n",
    )
    found = _by_code(editor.diagnostics(uri))
    missing = found["torch.hash_tensor"]
    assert missing.severity == types.DiagnosticSeverity.Error
    assert missing.source == "isograd"
    assert missing.message.startswith("torch.hash_tensor is missing in MindSpore.")
    assert (missing.range.start, missing.range.end) == (
        types.Position(5, 8),
        types.Position(5, 25),
    )
    in_place = found["torch.Tensor.add_"]
    assert in_place.severity == types.DiagnosticSeverity.Warning
    assert (in_place.range.start, in_place.range.end) == (
        types.Position(4, 6),
        types.Position(4, 10),
    )
    assert found["torch.no_such_name"].severity == types.DiagnosticSeverity.Hint
    branch = found["data-dependent-branch"]
    assert branch.severity == types.DiagnosticSeverity.Warning
    assert (branch.range.start, branch.range.end) == (types.Position(6, 4), types.Position(6, 19))
    assert "torch.abs" not in found


def test_a_hazard_names_the_use_at_its_place(editor: Editor, uri: str) -> None:
    editor.open(uri, HEAD + "def f(x: Tensor):\n    x.add_(1)\n    return x\n")
    hazard = _by_code(editor.diagnostics(uri))["in-place-reused"]
    assert hazard.range.start == types.Position(4, 6)
    assert hazard.related_information is not None
    assert "torch.Tensor.add_ differs" in hazard.related_information[0].message


def test_a_hazard_of_one_device_is_information(editor: Editor, uri: str) -> None:
    editor.open(uri, HEAD + "layer = nn.Conv2d(3, 16, 3)\n")
    found = _by_code(editor.diagnostics(uri))
    assert found["ascend-float16"].severity == types.DiagnosticSeverity.Information


def test_places_count_utf16_units(editor: Editor, uri: str) -> None:
    line = 's, t = "😀é字𝔸", torch.hash_tensor(x)  # 😀\n'
    editor.open(uri, f"import torch\nx = torch.ones(2)\n{line}")
    (found,) = [item for item in editor.diagnostics(uri) if item.code == "torch.hash_tensor"]
    start = len(line[: line.index("torch")].encode("utf-16-le")) // 2
    assert found.range == types.Range(
        types.Position(2, start), types.Position(2, start + len("torch.hash_tensor"))
    )
    assert "torch.hash_tensor" in editor.hover(uri, "hash_tensor")
    assert editor.hover(uri, '", torch') == ""


def test_places_behind_letters_that_only_str_takes_for_line_ends(editor: Editor, uri: str) -> None:
    editor.open(uri, 'import torch\ns = "é\u2028\x0c\x1c"\ny = "é", torch.hash_tensor(1)\n')
    (found,) = [item for item in editor.diagnostics(uri) if item.code == "torch.hash_tensor"]
    assert found.range == types.Range(types.Position(2, 9), types.Position(2, 26))


def test_other_line_ends(editor: Editor, uri: str) -> None:
    editor.open(uri, "import torch\r\n\r\nx = torch.ones(2)\r\ny = torch.abs(x)\r\n")
    (action,) = editor.actions(uri, "torch.abs")
    assert editor.applied(uri, action) == (
        "import torch\r\nfrom mindspore import ops\r\n\r\nx = torch.ones(2)\r\ny = ops.abs(x)\r\n"
    )


def test_typing_gives_diagnostics_of_the_newest_text_alone(editor: Editor, uri: str) -> None:
    editor.open(uri, "import torch\n")
    assert editor.diagnostics(uri) == []
    for end in range(1, 12):
        editor.type(uri, "import torch\ntorch.hash_tensor"[: 13 + end] + "\n")
    editor.type(uri, "import torch\ntorch.hash_tensor\n")
    assert [item.code for item in editor.diagnostics(uri)] == ["torch.hash_tensor"]
    assert len(editor.published[uri]) <= 6  # of thirteen texts


def test_a_syntax_error_keeps_what_was_shown(editor: Editor, uri: str) -> None:
    editor.open(uri, "import torch\ny = torch.hash_tensor(1)\n")
    assert len(editor.diagnostics(uri)) == 1
    editor.type(uri, "import torch\ny = torch.hash_tensor(1\n")
    assert editor.hover(uri, "hash_tensor") == ""
    assert editor.actions(uri, "hash_tensor") == []
    editor.type(uri, "import torch\ny = torch.abs(1)\n")
    assert editor.diagnostics(uri) == []
    assert [params.version for params in editor.published[uri]] == [1, 3]


def test_closing_clears(editor: Editor, uri: str) -> None:
    editor.open(uri, "import torch\ny = torch.hash_tensor(1)\n")
    editor.diagnostics(uri)
    editor.close(uri)
    editor.open(f"{uri}.py", "")
    editor.diagnostics(f"{uri}.py")
    assert not editor.published[uri][-1].diagnostics


def test_hover_tells_the_difference_and_the_evidence(editor: Editor, uri: str) -> None:
    editor.open(uri, HEAD + "a = nn.Conv2d(3, 8, 3)\nb = torch.cat([a], 0)\nc = 5\n")
    text = editor.hover(uri, "Conv2d")
    assert text.startswith("**`torch.nn.Conv2d`** → `mindspore.nn.Conv2d`: differs")
    assert "has no bias unless told" in text
    assert "Executed on torch 2." in text
    assert "CPU: forward agrees, gradient agrees, in the static graph same." in text
    assert "Hazard `ascend-float16`" in text
    assert "`mindspore.ops.cat`: supported" in editor.hover(uri, "cat([a]")
    assert editor.hover(uri, "c = 5") == ""


def test_hover_of_a_missing_api_has_the_way_out(editor: Editor, uri: str) -> None:
    editor.open(uri, HEAD + "h = torch.autograd.gradgradcheck(abs, 1)\n")
    text = editor.hover(uri, "gradgradcheck")
    assert "missing" in text
    assert "Way out: " in text
    assert "```python\n" in text


def test_a_safe_rewrite_with_its_import(editor: Editor, uri: str) -> None:
    editor.open(
        uri,
        '"""A net."""\n\nimport torch\n\n\ndef f(x, y):\n'
        "    return torch.cat([x,  y], dim=1) + torch.abs( x )\n",
    )
    (action,) = editor.actions(uri, "torch.cat")
    assert action.kind == types.CodeActionKind.QuickFix
    assert action.is_preferred
    assert action.title == "Rewrite torch.cat as ops.cat([x, y], 1)"
    once = editor.applied(uri, action)
    assert once == (
        '"""A net."""\n\nimport torch\nfrom mindspore import ops\n\n\ndef f(x, y):\n'
        "    return ops.cat([x,  y], 1) + torch.abs( x )\n"
    )
    editor.type(uri, once)
    (action,) = editor.actions(uri, "torch.abs")
    assert editor.applied(uri, action) == once.replace("torch.abs( x )", "ops.abs(x)")


def test_a_name_that_is_taken_is_written_in_full(editor: Editor, uri: str) -> None:
    editor.open(uri, "from torch import nn, cat as ops\nlayer = nn.ReLU()\n")
    (action,) = editor.actions(uri, "nn.ReLU")
    assert editor.applied(uri, action) == (
        "from torch import nn, cat as ops\nimport mindspore.nn\nlayer = mindspore.nn.ReLU()\n"
    )


def test_an_import_that_is_there_is_used(editor: Editor, uri: str) -> None:
    editor.open(uri, "import mindspore as ms\nimport torch\nx = torch.abs(torch.ones(2))\n")
    (action,) = editor.actions(uri, "torch.abs")
    assert editor.applied(uri, action).endswith("torch\nx = ms.ops.abs(torch.ones(2))\n")


def test_a_rewrite_that_needs_a_look(editor: Editor, uri: str) -> None:
    editor.open(uri, HEAD + "def f(x: Tensor):\n    x.add_(x)\n    return x\n")
    (action,) = editor.actions(uri, "add_")
    assert action.kind == types.CodeActionKind.RefactorRewrite
    assert not action.is_preferred
    assert action.title.endswith("(needs a look)")
    assert "\n    x = x + x\n" in editor.applied(uri, action)
    assert editor.actions(uri, "add_", only=["quickfix"]) == []


def test_no_rewrite_where_a_person_has_to_write(editor: Editor, uri: str) -> None:
    editor.open(uri, "import torch\na = torch.hash_tensor(1)\nb = torch.abs(1, **a)\n")
    assert editor.actions(uri, "torch.hash_tensor") == []
    assert editor.actions(uri, "torch.abs") == []


def test_no_rewrite_drops_a_comment(editor: Editor, uri: str) -> None:
    editor.open(uri, "import torch\na = torch.cat(\n    [b, c],  # why\n    dim=1,\n)\n")
    assert editor.actions(uri, "torch.cat") == []


def test_all_safe_rewrites_compose(editor: Editor, uri: str) -> None:
    editor.open(uri, "import torch\n\ny = torch.abs(torch.cat([torch.exp(x), x], dim=1))\n")
    (action,) = editor.actions(uri, "import", only=["source.fixAll"])
    assert editor.applied(uri, action) == (
        "import torch\nfrom mindspore import ops\n\ny = ops.abs(ops.cat([ops.exp(x), x], 1))\n"
    )


def test_completion_of_mindspore_names(editor: Editor, uri: str) -> None:
    editor.open(uri, "import mindspore as ms\nfrom mindspore import ops as P\n1 +\n")
    for typed, label in (
        ("mindspore.ops.ca", "cat"),
        ("ms.nn.", "Conv2d"),
        ("P.c", "cat"),
        ("mint.", "cat"),
        ("mindspore.", "ops"),
    ):
        editor.type(uri, f"import mindspore as ms\nfrom mindspore import ops as P\ny = {typed}\n")
        items = editor.completions(uri, typed)
        assert label in items, typed
        edit = items[label].text_edit
        assert isinstance(edit, types.TextEdit)
        assert editor.after(uri, [edit]).endswith(f"y = {typed.rpartition('.')[0]}.{label}\n")


def test_completion_offers_mindspore_behind_a_name_of_torch(editor: Editor, uri: str) -> None:
    editor.open(uri, "import torch\n\ny = torch.abs\n")
    item = editor.completions(uri, "torch.abs")["ops.abs"]
    assert item.filter_text == "torch.abs"
    assert "MindSpore for torch.abs: supported" in (item.detail or "")
    assert isinstance(item.text_edit, types.TextEdit)
    edits = [item.text_edit, *(item.additional_text_edits or [])]
    assert editor.after(uri, edits) == "import torch\nfrom mindspore import ops\n\ny = ops.abs\n"


def test_completion_waits_for_the_first_analysis(editor: Editor, uri: str) -> None:
    editor.open(uri, "import torch\n\ny = torch.abs\n" + "z = torch.relu(torch.ones(3))\n" * 4000)
    assert "ops.abs" in editor.completions(uri, "torch.abs")


def test_no_completion_elsewhere(editor: Editor, uri: str) -> None:
    editor.open(uri, "import numpy\ny = numpy.ab\nz = 1.\n")
    assert editor.completions(uri, "numpy.ab") == {}
    assert editor.completions(uri, "1.") == {}
    editor.type(uri, "import torch.nn as nn\ny = nn.Conv\n")
    assert "mindspore.nn.Conv2d" not in editor.completions(uri, "import torch")


@pytest.mark.parametrize(
    "text",
    [
        "\x00",
        "\ufeffimport torch\n",
        "x = " + "(" * 5000,
        "x = " + "-" * 30_000 + "1",
        "\r",
        "😀",
        "",
    ],
    ids=["null", "mark", "brackets", "deep", "return", "letter", "empty"],
)
def test_a_bad_document_harms_nothing(editor: Editor, uri: str, text: str) -> None:
    editor.open(uri, text)
    editor.tell(
        editor.client.text_document_did_save,
        types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri)),
    )
    params = types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(99, 99))
    assert editor.run(editor.client.text_document_hover_async(params)) is None
    editor.open(f"{uri}.py", "import torch\ntorch.hash_tensor\n")
    assert len(editor.diagnostics(f"{uri}.py")) == 1


def test_a_document_that_was_never_saved(editor: Editor) -> None:
    uri = "untitled:Untitled-1"
    editor.open(uri, "import torch\ntorch.hash_tensor\n")
    assert len(editor.diagnostics(uri)) == 1


def test_names_come_from_the_folders_that_are_open(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "other.py").write_text("import torch\n", encoding="utf-8")
    (tmp_path / "one" / "common.py").write_text(
        "from torch import hash_tensor as f\n", encoding="utf-8"
    )
    (tmp_path / "two" / "common.py").write_text("from torch import cat as f\n", encoding="utf-8")
    editor = Editor([tmp_path / "one", tmp_path / "two"])
    try:
        text = "from common import f\ny = f(1)\n"
        one, two, none = (
            (tmp_path / folder / "main.py").as_uri() for folder in ("one", "two", "three")
        )
        for uri in (one, two):
            (tmp_path / uri.split("/")[-2] / "main.py").write_text(text, encoding="utf-8")
        for uri in (one, two, none):
            editor.open(uri, text)
        assert [item.code for item in editor.diagnostics(one)] == ["torch.hash_tensor"]
        assert editor.diagnostics(two) == []
        assert editor.diagnostics(none) == []
        # What another open document says counts before it is saved.
        common = (tmp_path / "two" / "common.py").as_uri()
        editor.open(common, "from torch import hash_tensor as f\n")
        editor.type(two, f"{text}\n")
        assert [item.code for item in editor.diagnostics(two)] == ["torch.hash_tensor"]
    finally:
        assert editor.stop() == 0


def test_a_file_that_comes_beside_a_document(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("", encoding="utf-8")
    editor = Editor([tmp_path])
    try:
        uri = (tmp_path / "main.py").as_uri()
        editor.open(uri, "from common import f\ny = f(1)\n")
        assert editor.diagnostics(uri) == []
        common = tmp_path / "common.py"
        common.write_text("from torch import hash_tensor as f\n", encoding="utf-8")
        event = types.FileEvent(common.as_uri(), types.FileChangeType.Created)
        editor.tell(
            editor.client.workspace_did_change_watched_files,
            types.DidChangeWatchedFilesParams([event]),
        )
        assert [item.code for item in editor.next_diagnostics(uri)] == ["torch.hash_tensor"]
        assert editor.registered == ["workspace/didChangeWatchedFiles"]
    finally:
        assert editor.stop() == 0


def test_another_position_encoding() -> None:
    editor = Editor(encodings=["utf-8", "utf-16"])
    try:
        assert editor.server.capabilities.position_encoding == "utf-8"
        uri = "file:///nowhere/net.py"
        editor.open(uri, 'import torch\ny = "😀é", torch.hash_tensor(1)\n')
        (found,) = editor.diagnostics(uri)
        assert (found.range.start.character, found.range.end.character) == (14, 31)
    finally:
        assert editor.stop() == 0


def test_the_end_of_the_input_ends_the_server() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "isograd", "lsp"],
        input=b"",
        capture_output=True,
        timeout=15,
        check=False,
    )
    assert (result.returncode, result.stdout) == (1, b"")


def test_without_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from isograd.cli import lsp, main

    monkeypatch.setattr(lsp, "_NEEDED", ("no_such_library",))
    assert main(["lsp"]) == 2
    assert capsys.readouterr().err == (
        "isograd: isograd lsp needs no_such_library, which is not installed. "
        "Install it: pip install 'isograd[lsp]'.\n"
    )


def test_knowledge_that_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from isograd.cli import main

    monkeypatch.setenv("ISOGRAD_KNOWLEDGE", str(tmp_path / "none.json"))
    assert main(["lsp"]) == 2
    assert "ISOGRAD_KNOWLEDGE names cannot be read" in capsys.readouterr().err
