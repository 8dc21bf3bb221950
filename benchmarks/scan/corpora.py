"""The real code that the benchmarks of scan read, downloaded once and never installed."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import sys
import zipfile
from pathlib import Path

FOLDER = Path.home() / ".cache" / "isograd-benchmarks" / "scan"
VERSIONS = {
    "torchvision": "0.28.0",
    "timm": "1.0.31",
    "transformers": "5.23.0",
    "pytorchcv": "0.0.74",
}


def source_of(name: str) -> Path:
    """The folder of a package's sources."""
    target = FOLDER / f"src-{name}" / name
    if not target.is_dir():
        FOLDER.mkdir(parents=True, exist_ok=True)
        wheel = next(FOLDER.glob(f"{name}-{VERSIONS[name]}-*.whl"), None)
        if wheel is None:
            package = f"{name}=={VERSIONS[name]}"
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", package]
            subprocess.run(command, cwd=FOLDER, check=True)
            wheel = next(FOLDER.glob(f"{name}-{VERSIONS[name]}-*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(target.parent)
    return target


def describe_machine() -> str:
    """Processor, Python and the versions that were read, in one line."""
    model = platform.processor() or platform.machine()
    cpu_info = Path("/proc/cpuinfo")
    if cpu_info.is_file():
        for line in cpu_info.read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    try:
        torch_version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        torch_version = "none"
    sources = ", ".join(f"{name} {version}" for name, version in VERSIONS.items())
    return (
        f"{model}, {os.cpu_count()} cores; Python {platform.python_version()}, torch "
        f"{torch_version}; sources: {sources}"
    )
