"""The worker process: one framework, one network, requests from a pipe.

Started as ``python child.py ISOGRAD_PACKAGE_FOLDER SERVICE FRAMEWORK IN_DESCRIPTOR OUT_DESCRIPTOR``
in the interpreter that the case names; SERVICE is the class that answers, ``module:name``.
With ``warm CONTROL_DESCRIPTOR`` in place of the two it splits off such processes, see `forks`.
isograd is imported from its own folder without adding the folder's neighbours to the path, so the
other interpreter's packages are never mixed up with ours.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from pathlib import Path
from typing import Any


def _import_isograd(folder: str) -> None:
    location = Path(folder) / "__init__.py"
    spec = importlib.util.spec_from_file_location(
        "isograd", location, submodule_search_locations=[folder]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["isograd"] = module
    spec.loader.exec_module(module)


def _service(address: str, framework: str) -> Any:
    """What answers: a class of isograd's, made with the framework's name."""
    module, _, name = address.partition(":")
    return getattr(importlib.import_module(module), name)(framework)


def main() -> None:
    """Answer requests until the pipe closes, or split off workers that do."""
    folder, address, framework, *descriptors = sys.argv[1:]
    sys.path[0:1] = []
    _import_isograd(folder)
    if descriptors[0] == "warm":
        _split_off(address, framework, int(descriptors[1]))
        return
    _answer(address, framework, *map(int, descriptors))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _split_off(address: str, framework: str, control: int) -> None:
    import socket

    from isograd.frameworks.registry import import_adapters
    from isograd.worker.forks import serve

    importlib.import_module(address.partition(":")[0])
    import_adapters(framework)
    with socket.socket(fileno=control) as connection:
        serve(connection, lambda name, *pipe: _answer(address, name, *pipe))


def _answer(address: str, framework: str, reading: int, writing: int) -> None:
    from isograd.errors import IsogradError
    from isograd.worker.wire import read_message, write_message

    source = os.fdopen(reading, "rb", buffering=0)
    sink = os.fdopen(writing, "wb")
    service: Any = None
    while True:
        try:
            method, arguments = read_message(source)
        except EOFError:
            break
        try:
            if service is None:
                service = _service(address, framework)
            answer = ("ok", service.call(method, arguments))
        except IsogradError as error:
            details = getattr(error, "trace", "")
            answer = ("error", [type(error).__name__, error.what, error.advice, details])
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            answer = ("failed", [text, traceback.format_exc()])
        write_message(sink, answer)


if __name__ == "__main__":
    main()
