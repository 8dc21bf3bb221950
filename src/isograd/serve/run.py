"""The entry of `isograd serve`: listen on this machine, print one address."""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from isograd.errors import UsageError
from isograd.files import require_path
from isograd.progress import Progress
from isograd.serve.catalogue import Catalogue

#: The port that is tried first; the next free one is taken.
FIRST_PORT = 8765
_MOST_TRIES = 20
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def catalogue_of(folders: Sequence[Path]) -> Catalogue:
    """The catalogue of some folders; UsageError where one is none."""
    advice = "Name the folders that hold runs and reports."
    for folder in folders:
        require_path(folder, advice)
        if not folder.is_dir():
            raise UsageError(f"{folder} is no folder", advice)
    return Catalogue([folder.resolve() for folder in folders])


def export_pages(folders: Sequence[Path], target: Path, progress: Progress) -> int:
    """Write all pages as static files; how many."""
    from isograd.serve.export import export

    return export(catalogue_of(folders), target, progress)


def serve(folders: Sequence[Path], port: int | None, host: str, say: Callable[[str], None]) -> None:
    """Serve until the process is interrupted.

    say: called with the address and with warnings.  Raises UsageError where the port is taken.
    """
    try:
        import uvicorn

        from isograd.serve.app import make_app
        from isograd.serve.overview import overview
    except ImportError as error:
        raise UsageError(
            "starlette and uvicorn are not installed",
            "Install the extra: pip install 'isograd[serve]'.",
        ) from error
    catalogue = catalogue_of(folders)
    token = secrets.token_urlsafe(24)
    listening = _listen(host, port)
    bound = int(listening.getsockname()[1])
    shown = f"[{host}]" if ":" in host else host
    if host not in _LOOPBACK:
        say(
            f"Listening on {host}: everyone who reaches this machine and has the token can read "
            "what lies below these folders."
        )
    say(f"http://{shown}:{bound}/?token={token}")
    # The first page is read while a person opens the address.
    threading.Thread(target=overview, args=(catalogue,), daemon=True).start()
    app = make_app(catalogue, token, "" if host in _LOOPBACK else host)
    settings = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, lifespan="off",
        h11_max_incomplete_event_size=65_536, limit_concurrency=200, timeout_graceful_shutdown=1,
    )  # fmt: skip
    with listening:
        uvicorn.Server(settings).run(sockets=[listening])


def _listen(host: str, port: int | None) -> socket.socket:
    """A socket that listens on the port, or on the first free one from 8765 on."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    wanted = [port] if port is not None else [*range(FIRST_PORT, FIRST_PORT + _MOST_TRIES), 0]
    problem: OSError | None = None
    for one in wanted:
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, one))
            listening.listen(64)
        except OSError as error:
            listening.close()
            problem = error
            continue
        return listening
    raise UsageError(
        f"{host}:{port if port is not None else FIRST_PORT}: cannot be listened on ({problem})",
        "Give another --port, or leave it out.",
    )
