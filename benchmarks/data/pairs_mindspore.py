"""The ports: pipelines of mindspore.dataset, by the name FAMILY__OPTION__OPTION."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore.dataset import transforms as C
from mindspore.dataset import vision as V

sys.path.insert(0, str(Path(__file__).resolve().parent))
import python_steps
import sources

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def _batched(data: Any, o: frozenset[str]) -> Any:
    return data.batch(5 if "batch5" in o else 4, drop_remainder="drop" in o)


def _folder(o: frozenset[str], shuffle: bool = False) -> Any:
    return ds.ImageFolderDataset(
        os.environ["ISOGRAD_BENCH_IMAGES"], shuffle=shuffle or "shuffle" in o
    )


def _mapped(data: Any, steps: list[Any], column: str = "image") -> Any:
    return data.map(steps, [column], num_parallel_workers=1)


def swap_channels(image: Any) -> np.ndarray:
    return np.ascontiguousarray(np.asarray(image)[..., ::-1])


def _statistics(o: frozenset[str]) -> tuple[list[float], list[float]]:
    mean, std = MEAN, STD
    if "mean_bgr" in o:
        mean = MEAN[::-1]
    if "std_bgr" in o:
        std = STD[::-1]
    if "half" in o:
        mean, std = [0.5] * 3, [0.5] * 3
    if "mean255" in o:
        mean, std = [255 * m for m in MEAN], [255 * s for s in STD]
    return mean, std


def make_imagenet_eval(o: frozenset[str]) -> Any:
    if "cpp" in o:
        mean, std = ([255 * v for v in values] for values in (MEAN, STD))
        steps: list[Any] = [
            V.Decode(),
            V.Resize(48),
            V.CenterCrop(40),
            V.Normalize(mean, std),
            V.HWC2CHW(),
        ]
        return _batched(_mapped(_folder(o), steps), o)
    mode = V.Inter.LINEAR
    for name in ("bicubic", "nearest"):
        mode = getattr(V.Inter, name.upper()) if name in o or f"{name}_b" in o else mode
    size: Any = (48, 44) if "exact" in o or "exact_b" in o else 52 if "larger" in o else 48
    resize, crop = V.Resize(size, mode), V.CenterCrop(36 if "smaller_crop" in o else 40)
    steps = [V.Decode(to_pil=True), resize]
    if "no_crop" not in o:
        steps.append(crop)
    if "crop_first" in o:
        steps = [steps[0], crop, resize]
    if "bgr" in o:
        steps.append(swap_channels)
    if "gray" in o:
        steps.append(V.Grayscale(3))
    if "flip" in o:
        steps.append(V.RandomHorizontalFlip(1.0))
    mean, std = _statistics(o)
    normalize = V.Normalize(mean, std, is_hwc=False)
    if "no_rescale" in o:
        steps += [np.asarray, V.HWC2CHW(), C.TypeCast(ms.float32), normalize]
    else:
        steps.append(V.ToTensor())
        if "no_normalize" not in o and "plain" not in o:
            steps.append(normalize)
    if "double" in o:
        steps.append(C.TypeCast(ms.float64))
    if "hwc" in o:
        steps.append(lambda x: x.transpose(1, 2, 0))
    return _batched(_mapped(_folder(o), steps), o)


def make_imagenet_train(o: frozenset[str]) -> Any:
    scale = (0.5, 1.0) if "scale" in o or "scale_b" in o else (0.08, 1.0)
    ratio = (1.0, 1.0) if "square" in o or "square_b" in o else (3 / 4, 4 / 3)
    steps: list[Any] = [V.Decode(to_pil=True)]
    if "center" in o:
        steps += [V.Resize(48), V.CenterCrop(40)]
    else:
        steps.append(V.RandomResizedCrop(36 if "smaller" in o else 40, scale, ratio))
    if "no_flip" not in o:
        rarely = 0.8 if "often" in o else 0.2 if "rarely" in o else 0.5
        steps.append(
            V.RandomVerticalFlip(rarely) if "wrong_axis" in o else V.RandomHorizontalFlip(rarely)
        )
    if "jitter" in o and "no_jitter" not in o:
        strength = 0.1 if "weak" in o else 0.4
        steps.append(
            V.RandomColorAdjust((1 - strength, 1 + strength), (1 - strength, 1 + strength))
        )
    if "vertical" in o:
        steps.append(V.RandomVerticalFlip())
    if "gray" in o:
        steps.append(V.RandomGrayscale(0.3))
    mean, std = _statistics(o)
    steps += [V.ToTensor(), V.Normalize(mean, std, is_hwc=False)]
    if "seeded" in o:
        ds.config.set_seed(3)
    return _batched(_mapped(_folder(o, "fixed" not in o and "unshuffled" not in o), steps), o)


def make_cifar(o: frozenset[str]) -> Any:
    images, labels = sources.cifar()
    data = ds.NumpySlicesDataset({"image": images, "label": labels}, shuffle=False)
    steps: list[Any] = [V.ToPIL()]
    if "still" not in o:
        fill = 128 if "fill" in o else 0
        width = 2 if "narrow" in o or "narrow_b" in o else 4
        steps += [V.RandomCrop(32, width, fill_value=fill)]
        if "no_flip" not in o:
            steps.append(V.RandomHorizontalFlip())
    std = [0.25, 0.2, 0.2] if "std" in o else [0.2, 0.2, 0.2]
    steps += [V.ToTensor(), V.Normalize([0.49, 0.48, 0.45], std, is_hwc=False)]
    data = _mapped(data, steps)
    if "offset" in o:
        data = _mapped(data, [lambda y: y + 1], "label")
    if "permuted" in o:
        order = np.asarray([2, 0, 1, 3, 5, 4, 9, 7, 8, 6])
        data = _mapped(data, [lambda y: order[y]], "label")
    if "one_hot" in o:
        data = _mapped(data, [C.OneHot(10)], "label")
    return _batched(data, o)


def make_segmentation(o: frozenset[str]) -> Any:
    images, masks = sources.segmentation()
    data = ds.NumpySlicesDataset({"image": images, "mask": masks}, shuffle=False)
    steps: list[Any] = [V.ToPIL(), V.Resize((32, 40))]
    if "bgr" in o:
        steps.append(swap_channels)
    steps += [np.asarray, lambda x: x.astype(np.float32)] if "bytes" in o else [V.ToTensor()]
    if "bytes" in o:
        steps.append(V.HWC2CHW())
    if "hwc" in o:
        steps.append(lambda x: x.transpose(1, 2, 0))
    mode = V.Inter.LINEAR if "smooth_mask" in o else V.Inter.NEAREST
    mask: list[Any] = [V.ToPIL(), V.Resize((32, 40), mode), np.asarray]
    if "ignored" in o:
        mask.append(lambda m: np.where(m == 255, 0, m))
    if "mirrored" in o:
        mask.append(lambda m: np.ascontiguousarray(m[:, ::-1]))
    if "shifted" in o:
        mask.append(lambda m: np.pad(m, ((0, 0), (1, 0)))[:, :-1])
    return _batched(_mapped(_mapped(data, steps), mask, "mask"), o)


def _python(family: str, columns: list[str]) -> Any:
    def make(o: frozenset[str]) -> Any:
        function = python_steps.of_family(family)

        def rows() -> Any:
            for n in range(sources.COUNT):
                yield function(n, o)

        return _batched(ds.GeneratorDataset(rows, columns, shuffle=False), o)

    return make


make_detection = _python("detection", ["image", "boxes", "label"])
make_bert = _python("bert", ["ids", "mask"])
make_blocks = _python("blocks", ["ids", "target"])
make_tabular = _python("tabular", ["x", "label"])
make_audio = _python("audio", ["spectrum", "label"])


def make_sharded(o: frozenset[str]) -> Any:
    rows = [python_steps.record(n) for n in range(sources.COUNT)]
    if "reversed" in o:
        rows = rows[::-1]
    if "skip" in o:
        rows = rows[1:]
    shuffle = "shuffle" in o or "shuffle_b" in o
    if "seeded" in o:
        ds.config.set_seed(4)
    data = {"x": np.stack([r[0] for r in rows]), "n": np.asarray([int(r[1]) for r in rows])}
    shards: dict[str, Any] = {}
    if "whole" not in o:
        shards = {
            "num_shards": 4 if "quarter" in o else 2,
            "shard_id": 1 if "other_rank" in o else 0,
        }
    found = ds.NumpySlicesDataset(data, shuffle=shuffle, **shards)
    if "repeat" in o:
        found = found.repeat(2)
    return _batched(found, o)


def __getattr__(name: str) -> Any:
    family, *options = name.split("__")
    function = globals().get(f"make_{family}")
    if function is None:
        raise AttributeError(name)

    def build() -> Any:
        ds.config.set_seed(5489)  # MindSpore's own default: every shuffle is another
        return function(frozenset(options))

    return build
