"""What scan announces against what MindSpore's compiler does, module by module.

    python benchmarks/compiled/scan_against_execution.py [--families NAME …] [--count N]
        [--out FILE] [--limit S] [--mindcv FOLDER]

composed: constructs of the table in other places, renamed and nested (`composed.py`); converted:
random networks of benchmarks/verify, ported by `isograd convert`; mindcv: the modules of a package
that others wrote (installed into FOLDER). A module is bad where `jit` or GRAPH_MODE refuses it or
yields another output or gradient than eagerly; it is announced where scan reports its own code or
that of a module inside. A module that fails eagerly, or that refuses for want of a kernel on this
device, says nothing of scan and is left out. A row that --out holds is not executed again.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "verify" / "random_networks"))

from composed import composed
from generate import Generator

from isograd.convert.run import convert_path
from isograd.errors import IsogradError
from isograd.frameworks.base import SideSpec
from isograd.frameworks.capabilities import CompilesModules
from isograd.scan.project import ModuleIndex
from isograd.scan.sources import find_files
from isograd.scan.static_graph import PREFIX, static_graph_hazards
from isograd.static_graph.check.run import environment, verdicts
from isograd.static_graph.find import find_reached_in
from isograd.static_graph.scope import FileScope
from isograd.static_graph.table import consequence
from isograd.tensors import tensor_value
from isograd.verify.case import read_case
from isograd.verify.inputs import source_of
from isograd.worker.protocols import Networks
from isograd.worker.warm import WarmWorkers

_WAYS = ("jit", "graph")
_FRAME = "isograd.static_graph.check.frame"
_BATCH = 10
#: Builders of mindcv whose modules are small; each is called without arguments.
_MINDCV = (
    "resnet18 mobilenet_v2_100 shufflenet_v1_g3_05 squeezenet1_0 densenet121 mnasnet_050 "
    "ghostnet_050 googlenet regnet_x_200mf repvgg_a0 rexnet_09 efficientnet_b0 res2net50 "
    "resnest50 convnext_tiny poolformer_s12 mixnet_s inception_v3 vgg11 alexnet skresnet18 "
    "hrnet_w32 dpn92 xception mobilenet_v3_small_100 sknet34 vit_b_32_224 crossvit_9 "
    "edgenext_xx_small visformer_tiny"
).split()


@dataclasses.dataclass(frozen=True)
class Row:
    """One module: what scan announces, and the verdict of each way."""

    name: str
    family: str
    made_of: str
    announced: tuple[str, ...]
    verdicts: dict[str, str]
    detail: str = ""

    @property
    def is_bad(self) -> bool:
        return any(verdict not in ("same", "unknown") for verdict in self.verdicts.values())

    @property
    def counts(self) -> bool:
        """Whether the module ran eagerly, and its compilation did not end at a missing kernel."""
        fails = any(v in ("eager-fails", "unknown") for v in self.verdicts.values())
        return bool(self.verdicts) and not fails and "no kernel on this device" not in self.detail


def composed_rows(numbers: list[int]) -> Iterator[Row]:
    """Composed modules, executed in batches."""
    for start in range(0, len(numbers), _BATCH):
        batch = [composed(n) for n in numbers[start : start + _BATCH]]
        jobs = [
            {"key": m.name, "number": i, "code": m.text, "ways": ("eager", *_WAYS)}
            for i, m in enumerate(batch)
        ]
        found = _framed(jobs)
        for module in batch:
            answers = found.get(module.name, {})
            codes = _announced_in(module.text)
            yield _row(module.name, "composed", module.made_of, codes, answers)


def _framed(jobs: list[dict[str, Any]]) -> dict[str, dict[str, list[str]]]:
    with tempfile.TemporaryDirectory() as folder:
        jobs_file, out_file = Path(folder, "jobs.json"), Path(folder, "out.jsonl")
        jobs_file.write_text(json.dumps(jobs), encoding="utf-8")
        out_file.touch()
        command = [sys.executable, "-m", _FRAME, str(jobs_file), str(out_file)]
        subprocess.run(command, cwd=folder, env=environment(), capture_output=True, check=False)
        rows = map(json.loads, out_file.read_text(encoding="utf-8").splitlines())
        return {row["key"]: verdicts(row["runs"]) for row in rows}


def _announced_in(text: str) -> tuple[str, ...]:
    """What scan reports of a file, without its header."""
    hazards = static_graph_hazards(FileScope(ast.parse(text)))
    return tuple(sorted({hazard.code.removeprefix(PREFIX) for hazard in hazards}))


def _row(
    name: str, family: str, made_of: str, announced: tuple[str, ...], answers: dict[str, Any]
) -> Row:
    detail = next((a[1] for a in answers.values() if a[1]), "")
    return Row(name, family, made_of, announced, {w: a[0] for w, a in answers.items()}, detail)


def converted_rows(number: int, warm: WarmWorkers) -> Iterator[Row]:
    """The modules of a random network's port."""
    network = Generator(number, native_only=False, most=12).network()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        network.write(folder)
        try:
            report = convert_path(folder / "net.py", folder / "port")
        except IsogradError:
            return
        if report.findings:
            return
        case = read_case(folder / "case.toml")
        inputs = source_of(case, 0, None).inputs(0)
        yield from _modules_of(case.port, inputs, warm, "converted", f"converted-{number:03d}")


def mindcv_rows(builder: str, folder: Path, warm: WarmWorkers) -> Iterator[Row]:
    """The modules of a network of mindcv, each class once."""
    import numpy as np

    drawn = np.random.default_rng(0).standard_normal((2, 3, 64, 64)).astype(np.float32)
    with tempfile.TemporaryDirectory() as place:
        text = (
            f"import sys\nsys.path.insert(0, {str(folder)!r})\nimport mindcv.models as models\n"
            f"def build():\n    return models.{builder}(num_classes=10)\n"
        )
        Path(place, "net.py").write_text(text, encoding="utf-8")
        spec = SideSpec("mindspore", "net.py:build", place)
        yield from _modules_of(spec, {"0": tensor_value(drawn)}, warm, "mindcv", builder)


def _modules_of(
    spec: SideSpec, inputs: dict[str, Any], warm: WarmWorkers, family: str, name: str
) -> Iterator[Row]:
    """Every class of a network, alone under each way, on the inputs of its first call."""
    worker = warm.worker("mindspore-compiled", "port")
    try:
        alone = dataclasses.replace(spec, loss=None, optimizer=None)
        structure = worker.ask(Networks.build, alone, 0)
        calls = worker.ask(CompilesModules.record, "train", inputs, [])
        codes = {m.name: worker.ask(CompilesModules.code_of, m.name) for m in structure.modules}
        kinds = {module: (code.get("file"), code.get("class")) for module, code in codes.items()}
        seen: set[Any] = set()
        for position, call in enumerate(calls):
            kind = kinds.get(call.module, (None, None))
            if kind[0] is None or kind in seen:
                continue
            seen.add(kind)
            inside = {
                kinds[m] for m in kinds if _is_inside(m, call.module) and kinds[m][0] is not None
            }
            announced = tuple(sorted({c for file, cls in inside for c in _reached(file, cls)}))
            answers = {
                way: _answer(worker.ask(CompilesModules.alone, position, way, True))
                for way in _WAYS
            }
            yield _row(f"{name}:{kind[1]}", family, call.module, announced, answers)
    except IsogradError as error:
        yield Row(f"{name}:failed", family, "", (), {}, error.what[:200])
    finally:
        worker.close()


def _is_inside(module: str, outer: str) -> bool:
    return not outer or module == outer or module.startswith(f"{outer}.")


def _answer(found: dict[str, Any]) -> list[str]:
    return [found["verdict"], str(found.get("refused", ""))]


@functools.cache
def _reached(file: str, cls: str) -> tuple[str, ...]:
    """What scan reports of what a class's construct reaches in its file."""
    path = Path(file)
    index = _project(_root_of(path))
    scope = index.scope_of(path)
    assert scope is not None
    found = {o.code: o.verdict or consequence(o.code) for o in find_reached_in(scope, cls)}
    return tuple(code for code, ends in found.items() if ends != "same")


@functools.cache
def _project(root: Path) -> ModuleIndex:
    """The files of a project, as scan reads them."""
    return ModuleIndex(root, [*find_files(root, [])])


def _root_of(path: Path) -> Path:
    """The folder of a file, or that of the package around it."""
    folder = path.parent
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    return folder if folder == path.parent else folder / path.relative_to(folder).parts[0]


def summary(rows: list[Row]) -> list[str]:
    """Recall and precision by family, and where scan is wrong."""
    counted = [row for row in rows if row.counts]
    lines = [
        "| family | modules | bad when compiled | announced | recall | precision |",
        "|---|---|---|---|---|---|",
    ]
    families = [*dict.fromkeys(row.family for row in counted), "all"]
    for family in families:
        own = [row for row in counted if family in (row.family, "all")]
        bad = [row for row in own if row.is_bad]
        announced = [row for row in own if row.announced]
        right = sum(1 for row in bad if row.announced)
        recall, precision = (right / max(1, len(of)) for of in (bad, announced))
        shares = f"{recall:.1%} | {precision:.1%}"
        lines.append(f"| {family} | {len(own)} | {len(bad)} | {len(announced)} | {shares} |")
    lines += [
        "",
        f"Left out, because they fail eagerly or lack a kernel: {len(rows) - len(counted)}.",
    ]
    for row in counted:
        if row.is_bad is not bool(row.announced):
            what = "missed" if row.is_bad else "announced in vain"
            words = f"{row.announced or ''} {row.verdicts} {row.detail[:120]}"
            lines.append(f"- {what}: {row.name} ({row.made_of}): {words}")
    return lines


def main() -> int:
    """Execute what is wanted, keep rows as they come, print the figures."""
    given = _arguments()
    rows = _kept(given.out)
    done = {row.name.partition(":")[0] for row in rows}
    until = time.monotonic() + given.limit

    def keep(found: Iterator[Row]) -> None:
        for row in found:
            rows.append(row)
            if given.out:
                with given.out.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(dataclasses.asdict(row)) + "\n")

    if "composed" in given.families:
        numbers = [n for n in range(given.count) if f"composed-{n:03d}" not in done]
        for start in range(0, len(numbers), _BATCH):
            if time.monotonic() < until:
                keep(composed_rows(numbers[start : start + _BATCH]))
    with WarmWorkers() as warm:
        for number in range(given.count) if "converted" in given.families else ():
            if time.monotonic() < until and f"converted-{number:03d}" not in done:
                keep(converted_rows(number, warm))
        for builder in _MINDCV if given.mindcv and "mindcv" in given.families else ():
            if time.monotonic() < until and builder not in done:
                keep(mindcv_rows(builder, given.mindcv, warm))
    print("\n".join(summary(rows)))
    return 0


def _kept(file: Path | None) -> list[Row]:
    """Rows of a file, with what scan announces of a composed module by now."""
    if file is None or not file.exists():
        return []
    found = []
    for line in file.read_text(encoding="utf-8").splitlines():
        row = Row(**json.loads(line))
        if row.family == "composed":
            now = _announced_in(composed(int(row.name.rpartition("-")[2])).text)
            row = dataclasses.replace(row, announced=now)
        found.append(row)
    return found


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    families = ("composed", "converted", "mindcv")
    parser.add_argument("--families", nargs="+", choices=families, default=families)
    parser.add_argument("--count", type=int, default=150, help="composed and converted ones each")
    parser.add_argument("--out", type=Path, help="rows as JSON lines; those in it are kept")
    parser.add_argument("--limit", type=float, default=1e9, help="begin nothing after SECONDS")
    parser.add_argument("--mindcv", type=Path, help="the folder that mindcv is installed in")
    return parser.parse_args()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
