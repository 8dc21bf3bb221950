"""What pipelines do in plain Python and numpy; options are the differences that are planted."""

from __future__ import annotations

from typing import Any

import numpy as np
import sources

PAD, CLS, SEP = 0, 1, 2
WIDTHS = {"short": 24}


def detection(n: int, o: frozenset[str]) -> tuple[np.ndarray, ...]:
    image, boxes, labels = sources.detection(n)
    if "xywh" in o:
        boxes = np.concatenate((boxes[:, :2], boxes[:, 2:] - boxes[:, :2]), axis=1)
    if "centre" in o:
        size = boxes[:, 2:] - boxes[:, :2]
        boxes = np.concatenate((boxes[:, :2] + size / 2, size), axis=1)
    if "yx" in o:
        boxes = boxes[:, [1, 0, 3, 2]]
    if "shares" in o:
        boxes = boxes / np.asarray([52, 40, 52, 40], np.float32)
    if "mirrored" in o:
        boxes = np.stack((52 - boxes[:, 2], boxes[:, 1], 52 - boxes[:, 0], boxes[:, 3]), axis=1)
    if "offset" in o:
        labels = labels - 1
    if "bgr" in o:
        image = image[..., ::-1]
    if "flipped" in o:
        image = image[:, ::-1]
    image = np.ascontiguousarray(image.transpose(2, 0, 1)).astype(np.float32)
    return image if "bytes" in o else image / np.float32(255), boxes.astype(np.float32), labels


def bert(n: int, o: frozenset[str]) -> tuple[np.ndarray, ...]:
    width = 32 if "wide" in o or not o & {"short"} else 24
    width = 28 if "length" in o else width
    pad = 5 if "pad_id" in o else PAD
    ids = sources.text(n)
    room = width if "bare" in o else width - 2
    ids = ids[-room:] if "cut_left" in o else ids[:room]
    if "bare" not in o:
        ids = np.concatenate(([CLS], ids, [SEP]))
    fill = np.full(width - len(ids), pad)
    mask = np.concatenate((np.ones(len(ids), np.int64), np.zeros(len(fill), np.int64)))
    ids = np.concatenate((ids, fill))
    if "left" in o:
        count = int(mask.sum())
        ids, mask = np.roll(ids, width - count), np.roll(mask, width - count)
    if "inverted" in o:
        mask = 1 - mask
    if "all_ones" in o:
        mask = np.ones_like(mask)
    return ids.astype(np.int64), mask


def blocks(n: int, o: frozenset[str]) -> tuple[np.ndarray, ...]:
    corpus = sources.corpus()
    length = 15 if "shorter" in o else 16
    start = n * length + (1 if "later" in o else 0) + (4 if "much_later" in o else 0)
    ids = corpus[start : start + length]
    step = 2 if "twice" in o else 0 if "unshifted" in o else 1
    return ids, corpus[start + step : start + step + length]


def tabular(n: int, o: frozenset[str]) -> tuple[np.ndarray, ...]:
    rows, labels = sources.table()
    x = rows[n] if "no_log" in o else np.log(rows[n])
    mean = np.linspace(-0.2, 0.3, 6).astype(np.float32)
    std = np.linspace(0.7, 1.3, 6).astype(np.float32)
    if "no_log" not in o:
        x = x - (mean[::-1] if "mean" in o else mean)
        x = x / (std**2 if "variance" in o else std)
    else:
        x = np.exp(0) * x
    if "order" in o:
        x = x[[0, 2, 1, 3, 5, 4]]
    if "clip" in o:
        x = np.clip(x, -1, 1)
    if "double" in o:
        x = x.astype(np.float64)
    label = np.asarray(labels[n] + (1 if "offset" in o else 0))
    return np.asarray(x), np.eye(3, dtype=np.float32)[label] if "one_hot" in o else label


def audio(n: int, o: frozenset[str]) -> tuple[np.ndarray, ...]:
    wave = sources.sound(n).astype(np.float32)
    if "raw_scale" not in o:
        wave = wave / np.float32(32768)
    frames = np.lib.stride_tricks.sliding_window_view(wave, 256)[::128]
    spectrum = np.abs(np.fft.rfft(frames * np.hanning(256))).astype(np.float32)
    power = spectrum if "magnitude" in o else spectrum**2
    if "mel" in o:
        power = np.stack([p.mean(axis=1) for p in np.array_split(power, 20, axis=1)], axis=1)
    if "linear" in o:
        found = power
    else:
        power = power + np.float32(1e-3)
        found = np.log10(power) if "log10" in o else np.log(power)
        found = 10 * np.log10(power) if "decibel" in o else found
    return (found.T if "turned" in o else found).astype(np.float32), np.asarray(n % 4)


def record(n: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(900 + n)
    return rng.standard_normal(12).astype(np.float32), np.asarray(n)


def of_family(family: str) -> Any:
    """The function of a family."""
    return {
        "detection": detection,
        "bert": bert,
        "blocks": blocks,
        "tabular": tabular,
        "audio": audio,
    }[family]
