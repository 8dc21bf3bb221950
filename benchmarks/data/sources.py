"""The raw samples of the benchmark's pairs, drawn by seed: both sides read the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

COUNT = 22
VOCABULARY = 900


def photo(seed: int, height: int, width: int) -> np.ndarray:
    """A picture with coarse and fine detail, (H, W, 3) uint8."""
    rng = np.random.default_rng(seed)
    coarse = Image.fromarray(rng.integers(0, 256, (height // 9, width // 9, 3)).astype(np.uint8))
    smooth = np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC)).astype(int)
    return np.clip(smooth + rng.integers(-40, 41, smooth.shape), 0, 255).astype(np.uint8)


def write_images(folder: Path) -> Path:
    """Class folders of JPEG files of different sizes."""
    for n in range(COUNT):
        path = folder / "abc"[n * 3 // COUNT] / f"{n:03d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(photo(n, 61 + 3 * (n % 5), 75 + 4 * (n % 3))).save(path, quality=92)
    return folder


def cifar() -> tuple[np.ndarray, np.ndarray]:
    """(N, 32, 32, 3) uint8 and labels of ten classes."""
    images = np.stack([photo(100 + n, 32, 32) for n in range(COUNT)])
    return images, (np.arange(COUNT) * 7 % 10).astype(np.int64)


def segmentation() -> tuple[np.ndarray, np.ndarray]:
    """Pictures (N, 48, 60, 3) and masks (N, 48, 60) of classes 0 to 4 and 255."""
    images = np.stack([photo(200 + n, 48, 60) for n in range(COUNT)])
    masks = []
    for n in range(COUNT):
        coarse = np.random.default_rng(300 + n).integers(0, 6, (6, 10)).astype(np.uint8)
        masks.append(np.kron(np.where(coarse == 5, 255, coarse), np.ones((8, 6), np.uint8)))
    return images, np.stack(masks).astype(np.uint8)


def detection(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A picture (40, 52, 3), five boxes x0 y0 x1 y1 in pixels, and their classes."""
    rng = np.random.default_rng(400 + n)
    corner = rng.uniform(0, 18, (5, 2))
    boxes = np.concatenate((corner, corner + rng.uniform(4, 20, (5, 2))), axis=1)
    return photo(500 + n, 40, 52), boxes.astype(np.float32), rng.integers(1, 9, 5)


def text(n: int) -> np.ndarray:
    """Token ids of a text, 12 to 45 of them, from 10 on."""
    rng = np.random.default_rng(600 + n)
    return rng.integers(10, VOCABULARY, 12 + (n * 7) % 34)


def corpus() -> np.ndarray:
    """One long sequence of token ids."""
    return np.random.default_rng(7).integers(10, VOCABULARY, 17 * (COUNT + 4))


def table() -> tuple[np.ndarray, np.ndarray]:
    """(N, 6) positive float32, and a class."""
    rng = np.random.default_rng(8)
    return (rng.lognormal(0, 1, (COUNT, 6)) + 0.1).astype(np.float32), np.arange(COUNT) % 3


def sound(n: int) -> np.ndarray:
    """2048 samples of int16."""
    rng = np.random.default_rng(700 + n)
    time = np.arange(2048) / 8000
    tones = sum(np.sin(2 * np.pi * f * time) for f in rng.uniform(200, 3500, 4))
    return ((tones + rng.normal(0, 0.1, 2048)) * 5000).astype(np.int16)
