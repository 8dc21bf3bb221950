"""Runs a package's models and writes which torch APIs each of its source lines really called.

    python trace.py torchvision|timm|timm-others|pytorchcv SOURCE_FOLDER OUT.json

Python's profile hook sees every call of a function of torch, in Python or in C, with its caller; a
TorchFunctionMode sees the attributes of tensors; a trace hook sees which lines ran.  An event is
"named" where the call's own text names the API (`F.relu(…)`, `x.view(…)`, an imported name), and
"indirect" where it goes through a variable, an attribute or a partial (`norm_layer(…)`): such a
line does not name an API that anybody could replace there.
"""

from __future__ import annotations

import os

os.environ["PYTORCH_JIT"] = "0"

import ast
import importlib
import json
import random
import sys
import types
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).resolve().parent
#: Defines the operators that the wheel of torchvision would register with a CUDA build of torch.
STUB = HERE.parent / "convert" / "torchvision_stub.py"
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parents[1] / "src"))
from isograd.scan.names import torch_names  # noqa: E402

#: timm's modules to run; the issue's open list.
TIMM = """resnet vision_transformer convnext mobilenetv3 densenet mlp_mixer vgg ghostnet regnet
hrnet res2net swin_transformer deit pit visformer""".split()
#: pytorchcv's models to run, one of each family.
PYTORCHCV = """resnet18 preresnet18 resnext26_32x4d seresnet18 densenet121 mobilenet_w1
mobilenetv2_w1 mobilenetv3_large_w1 efficientnet_b0 shufflenet_g1_w1 shufflenetv2_w1
squeezenet_v1_0 squeezenext_21_w1 mnasnet_b1 ghostnet igcv3_w1 dpn68 peleenet
hrnet_w18_small_v1 vovnet27s hardnet39ds res2net50_w14_s8 dla34 fbnet_cb
proxylessnas_cpu bagnet9 selecsls42b resnesta18 sknet50 airnet50_1x64d_r2
bninception xception diracnet18v2 darknet53 cbam_resnet18 bam_resnet18 ibn_resnet50
espnetv2_wd2 menet108_8x1_g3 condensenet74_c4_g4 wrn16_10_cifar10 fdmobilenet_w1
nasnet_4a1056 polynet pnasnet5large spnasnet inceptionresnetv1""".split()
SIZE = 96
LARGEST_PARAMETERS = 150e6


class Names:
    """From an object that was called to torch's public name of it."""

    def __init__(self) -> None:
        table = torch_names()
        self.by_id: dict[int, str] = {}
        self.by_code: dict[types.CodeType, str] = {}
        self.classes: dict[type, str] = {}
        shared: set[types.CodeType] = set()
        for name, kind in table.kinds.items():
            if kind not in "fMOSc":
                continue
            value = _resolve(name)
            if isinstance(value, type):
                self.classes[value] = name
            elif value is not None:
                self._add(value, name, shared)
        for owner, members in (
            (torch.Tensor, table.tensor),
            (torch.nn.Module, table.module),
            (torch.optim.Optimizer, table.optimizer),
        ):
            prefix = {
                torch.Tensor: "torch.Tensor",
                torch.nn.Module: "torch.nn.Module",
                torch.optim.Optimizer: "torch.optim.Optimizer",
            }[owner]
            for member in members:
                value = getattr(owner, member, None)
                if isinstance(value, types.FunctionType):
                    self._add(value, f"{prefix}.{member}", shared)
        for code in shared:
            self.by_code.pop(code, None)
        self.tensor = set(table.tensor)
        self.properties = {
            name for name in table.tensor if not callable(getattr(torch.Tensor, name, None))
        }

    def _add(self, value: Any, name: str, shared: set[types.CodeType]) -> None:
        self.by_id.setdefault(id(value), name)
        code = getattr(value, "__code__", None)
        if code is None:
            return
        if code in self.by_code and self.by_code[code] != name:
            shared.add(code)
        self.by_code.setdefault(code, name)

    def observable(self) -> set[str]:
        """Names whose calls the hooks can see."""
        seen = set(self.by_code.values()) | {f"torch.Tensor.{name}" for name in self.tensor}
        seen |= {
            name
            for cls, name in self.classes.items()
            if isinstance(cls.__init__, types.FunctionType) or name == "torch.nn.Parameter"
        }
        for name in set(self.by_id.values()):
            value = _resolve(name)
            if isinstance(value, (types.BuiltinFunctionType, types.FunctionType)):
                if isinstance(value, types.BuiltinFunctionType) or value.__code__ in self.by_code:
                    seen.add(name)
        return seen


def _resolve(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    try:
        return getattr(importlib.import_module(module), attribute, None)
    except Exception:
        return None


class Tracer:
    """Collects events (file, line, api, named) and the lines that ran below one folder."""

    def __init__(self, root: Path, names: Names) -> None:
        self.root = str(root) + "/"
        self.names = names
        self.events: set[tuple[str, int, str, bool]] = set()
        self.lines: set[tuple[str, int]] = set()
        self._calls: dict[str, dict[tuple[int, ...], ast.Call]] = {}
        self._positions: dict[types.CodeType, list[tuple[Any, ...]]] = {}

    def profile(self, frame: types.FrameType, event: str, argument: Any) -> None:
        if event == "c_call":
            if frame.f_code.co_filename.startswith(self.root):
                self._builtin(frame, argument)
        elif event == "call":
            caller = frame.f_back
            if caller is not None and caller.f_code.co_filename.startswith(self.root):
                self._function(frame, caller)

    def _builtin(self, frame: types.FrameType, function: Any) -> None:
        name = self.names.by_id.get(id(function))
        if name is None:
            owner = getattr(function, "__self__", None)
            if isinstance(owner, torch.Tensor) and function.__name__ in self.names.tensor:
                name = f"torch.Tensor.{function.__name__}"
        if name is not None:
            self._note(frame, name)

    def _function(self, frame: types.FrameType, caller: types.FrameType) -> None:
        code = frame.f_code
        if code.co_filename.startswith(self.root):
            return
        name = self.names.by_code.get(code)
        if name is None and code.co_name == "__init__":
            name = self.names.classes.get(type(frame.f_locals.get("self")))
        elif name is None and code.co_name == "__new__" and "parameter" in code.co_filename:
            name = "torch.nn.Parameter"
        elif name is None and code.co_name == "fn" and "_jit_internal" in code.co_filename:
            last = frame.f_locals["if_false"].__name__.lstrip("_").removesuffix("_impl")
            is_unique = last.startswith("unique")
            name = f"torch.{last}" if is_unique else f"torch.nn.functional.{last}"
        if name is not None:
            self._note(caller, name)

    def _note(self, frame: types.FrameType, name: str) -> None:
        file = frame.f_code.co_filename
        node = self._node(frame)
        if node is None:
            self.events.add((file, frame.f_lineno, name, False))
            return
        function, last = node.func, name.rpartition(".")[2]
        if isinstance(function, ast.Attribute):
            line, named = function.end_lineno or node.lineno, function.attr == last
            if not named and isinstance(function.value, ast.Name):
                value = frame.f_globals.get(function.value.id)
                named = isinstance(value, types.ModuleType)
        elif isinstance(function, ast.Name):
            line = node.lineno
            named = function.id in frame.f_globals and function.id not in frame.f_locals
        else:
            line, named = node.lineno, False
        self.events.add((file, line, name, named))

    def _node(self, frame: types.FrameType) -> ast.Call | None:
        """The call expression that is running in the frame."""
        code = frame.f_code
        if code not in self._positions:
            self._positions[code] = list(code.co_positions())
        place = self._positions[code][frame.f_lasti // 2]
        calls = self._calls.get(code.co_filename)
        if calls is None:
            tree = ast.parse(Path(code.co_filename).read_bytes())
            calls = self._calls[code.co_filename] = {}
            for node in ast.walk(tree):
                if isinstance(node, ast.Call):
                    ends = (node.end_lineno, node.end_col_offset)
                    calls[(node.lineno, *ends, node.col_offset)] = node
                    if isinstance(node.func, ast.Attribute):  # 3.11 starts at the method's name
                        start = node.func.end_lineno
                        column = node.func.end_col_offset - len(node.func.attr)
                        calls[(start, *ends, column)] = node
        line, end_line, column, end_column = place
        return calls.get((line, end_line, end_column, column))

    def trace(self, frame: types.FrameType, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(self.root):
            return None
        file = frame.f_code.co_filename
        lines = self.lines

        def local(frame: types.FrameType, event: str, argument: Any) -> Any:
            if event == "line":
                lines.add((file, frame.f_lineno))
            return local

        lines.add((file, frame.f_lineno))
        return local

    def attribute(self, function: Any) -> None:
        """An attribute of a tensor was read."""
        name = getattr(getattr(function, "__self__", None), "__name__", "")
        if getattr(function, "__name__", "") != "__get__" or name not in self.names.tensor:
            return
        frame = sys._getframe(2)
        if frame.f_code.co_filename.startswith(self.root):
            code = frame.f_code
            if code not in self._positions:
                self._positions[code] = list(code.co_positions())
            line = self._positions[code][frame.f_lasti // 2][1] or frame.f_lineno
            self.events.add((code.co_filename, line, f"torch.Tensor.{name}", True))


class Attributes(torch.overrides.TorchFunctionMode):
    """Tells a tracer of attribute reads."""

    def __init__(self, tracer: Tracer) -> None:
        super().__init__()
        self.tracer = tracer

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.tracer.attribute(function)
        return function(*args, **(kwargs or {}))


def _import_torchvision() -> None:
    """Make the sources of torchvision importable, also with a CPU build of torch."""
    from corpora import source_of

    sys.path.insert(0, str(source_of("torchvision").parent))
    sys.path.insert(0, str(STUB.parent))
    importlib.import_module(STUB.stem)


def torchvision_models() -> list[tuple[str, Any]]:
    """Classification and segmentation builders, three of each file."""
    _import_torchvision()
    from torchvision import models

    found = []
    by_module: dict[str, int] = {}
    for name in models.list_models():
        builder = models.get_model_builder(name)
        module = builder.__module__
        if any(part in module for part in ("detection", "video", "optical_flow", "quantization")):
            continue
        by_module[module] = by_module.get(module, 0) + 1
        if by_module[module] > 3:
            continue
        options: dict[str, Any] = {"weights": None}
        if "segmentation" in module:
            options["weights_backbone"] = None
        if "vision_transformer" in module:
            options["image_size"] = 112 if "14" in name else 64
        if "maxvit" in module:
            options["input_size"] = (224, 224)
        if "googlenet" in module or "inception" in module:
            options["init_weights"] = True
        found.append((name, lambda builder=builder, options=options: builder(**options)))
    return found


def timm_models() -> list[tuple[str, Any]]:
    """Three models of each file of the open list, the shortest names first."""
    _import_torchvision()
    import timm

    found = []
    for module in TIMM:
        names = sorted(timm.list_models(module=module), key=lambda name: (len(name), name))
        found += [(name, lambda name=name: _timm(name)) for name in names[:3]]
    return found


def other_timm_models() -> list[tuple[str, Any]]:
    """One model, that of the shortest name, of each file of timm's that the open list leaves."""
    _import_torchvision()
    import timm

    found = []
    for module in sorted(set(timm.list_modules()) - set(TIMM)):
        names = sorted(timm.list_models(module=module), key=lambda name: (len(name), name))
        found += [(name, lambda name=name: _timm(name)) for name in names[:1]]
    return found


def pytorchcv_models() -> list[tuple[str, Any]]:
    """One small model of each of its files that works on images of any size."""
    _import_torchvision()
    from pytorchcv.model_provider import get_model

    return [(name, lambda name=name: get_model(name, pretrained=False)) for name in PYTORCHCV]


def _timm(name: str) -> torch.nn.Module:
    import timm

    try:
        return timm.create_model(name, pretrained=False, img_size=SIZE)
    except (TypeError, AssertionError):
        return timm.create_model(name, pretrained=False)


def run(name: str, build: Any, tracer: Tracer) -> str:
    """Build one model and call it in both modes; returns what went wrong."""
    try:
        with Attributes(tracer):
            model = build()
        if sum(p.numel() for p in model.parameters()) > LARGEST_PARAMETERS:
            return "too large"
        size = getattr(model, "image_size", None) or SIZE
        if isinstance(getattr(model, "in_size", None), tuple):
            size = model.in_size[0]
        if "maxvit" in name:
            size = 224
        if "inception" in name:
            size = 160
        if size is not None and hasattr(model, "patch_embed"):
            wanted = getattr(model.patch_embed, "img_size", None)
            size = wanted[0] if wanted else size
        with torch.no_grad(), Attributes(tracer):
            model.train()
            model(torch.randn(2, 3, size, size))
            model.eval()
            model(torch.randn(1, 3, size, size))
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:200]
    return ""


def main() -> None:
    which, folder, out = sys.argv[1:4]
    sys.path.insert(0, folder)
    torch.manual_seed(0)
    random.seed(0)
    torch.set_num_threads(1)
    builders = {
        "torchvision": torchvision_models,
        "timm": timm_models,
        "timm-others": other_timm_models,
        "pytorchcv": pytorchcv_models,
    }
    models = builders[which]()
    names = Names()
    tracer = Tracer(Path(folder).resolve() / which.partition("-")[0], names)
    failed = {}
    for name, build in models:
        sys.setprofile(tracer.profile)
        sys.settrace(tracer.trace)
        problem = run(name, build, tracer)
        sys.settrace(None)
        sys.setprofile(None)
        if problem:
            failed[name] = problem
        print(name, problem or "ok", file=sys.stderr, flush=True)
    strip = len(tracer.root)
    Path(out).write_text(
        json.dumps(
            {
                "models": len(models),
                "failed": failed,
                "observable": sorted(names.observable()),
                "events": sorted(
                    (f[strip:], line, api, named) for f, line, api, named in tracer.events
                ),
                "lines": sorted((f[strip:], line) for f, line in tracer.lines),
            }
        )
    )


if __name__ == "__main__":
    main()
