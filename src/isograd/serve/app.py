"""The server: a few addresses that show what the catalogue has, behind the guard.

Every page is made on demand from the files; nothing is written, and nothing is kept but a small
cache of pages and listings.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request as HttpRequest
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from isograd.errors import IsogradError
from isograd.serve.catalogue import Catalogue
from isograd.serve.changes import changed_at
from isograd.serve.curves import (
    Axis,
    common_names,
    curve_data,
    curve_of,
    curves_link,
    has_curves,
    label_of,
)
from isograd.serve.guard import COOKIE, Request, refusal
from isograd.serve.lineage import lineage_document
from isograd.serve.model import Item, Kind
from isograd.serve.overview import overview
from isograd.serve.pages import page_of
from isograd.serve.shell import asset, in_shell, samples_link, vendored

#: Points of a curve that a browser gets, and what it may ask for at most.
POINTS, MOST_POINTS = 2_000, 20_000
MOST_CURVES = 64
#: Seconds between two looks for changes, and for how long one listener is answered.
_INTERVAL_S, _LISTEN_S = 1.0, 3_600.0
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
    "img-src 'self' data: blob:; base-uri 'none'; form-action 'self'; frame-ancestors 'self'"
)
_STATIC = {
    "curves.js": "text/javascript",
    "curves.css": "text/css",
    "uplot.min.js": "text/javascript",
    "uplot.min.css": "text/css",
}


def make_app(catalogue: Catalogue, token: str, own_host: str = "") -> ASGIApp:
    """The ASGI application; every request must have the token and name this machine."""
    site = _Site(catalogue)
    routes = [
        Route("/", site.first),
        Route("/curves", site.curves),
        Route("/lineage", site.lineage),
        Route("/runs", site.runs),
        Route("/names", site.names),
        Route("/points", site.points),
        Route("/changes", site.changes),
        Route("/samples", site.samples),
        Route("/static/{name}", site.static),
        Route("/{kind}/{name:path}", site.page),
    ]
    return _Guarded(Starlette(routes=routes), token, own_host)


class _Guarded:
    """Answers what the guard refuses, gives the cookie, and adds the headers of safety."""

    def __init__(self, app: ASGIApp, token: str, own_host: str) -> None:
        self._app = app
        self._token = token
        self._own_host = own_host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        http = HttpRequest(scope)
        asked = Request(
            http.method,
            scope["path"],
            scope["query_string"].decode("latin-1"),
            http.headers.get("host", ""),
            http.headers.get("origin", ""),
            http.headers.get("cookie", ""),
        )
        refused = refusal(asked, self._token, self._own_host)
        if refused is not None:
            answer: ASGIApp = PlainTextResponse(f"{refused.text}\n", refused.status)
        elif "token" in http.query_params:
            answer = self._with_cookie(http)
        else:
            answer = self._app

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                known = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(
                        (name.lower().encode(), value.encode())
                        for name, value in _HEADERS.items()
                        if name.lower().encode() not in known
                    ),
                ]
            await send(message)

        await answer(scope, receive, send_with_headers)

    def _with_cookie(self, http: HttpRequest) -> Response:
        """The same address without the token, which would stay in the browser's history."""
        rest = http.url.remove_query_params("token")
        # Relative, so that it holds behind a tunnel or a proxy with a prefix.
        last = http.scope["raw_path"].decode("latin-1").rsplit("/", 1)[-1]
        answer = RedirectResponse(f"./{last}" + (f"?{rest.query}" if rest.query else ""), 303)
        answer.set_cookie(COOKIE, self._token, httponly=True, samesite="strict")
        return answer


class _Site:
    """The pages; each method answers one address."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    async def first(self, http: HttpRequest) -> Response:
        """Every run and report."""
        query = http.query_params.get("q", "")[:200]
        document = await run_in_threadpool(overview, self._catalogue, query)
        return _html(in_shell(document, depth=0, is_live=True))

    async def lineage(self, http: HttpRequest) -> Response:
        """What every run and trial was made with."""
        document = await run_in_threadpool(lineage_document, self._catalogue)
        return _html(in_shell(document, depth=0, is_live=True))

    async def page(self, http: HttpRequest) -> Response:
        """One item."""
        item = await run_in_threadpool(self._item, http.path_params["kind"], _name(http))
        if item is None:
            return PlainTextResponse("There is no such run, report or file here.\n", 404)
        document = await run_in_threadpool(page_of, item, self._catalogue)
        links = (*curves_link(item, "curves"), *samples_link(item))
        # The name is one part of the address, with its slashes escaped.
        return _html(in_shell(document, depth=1, is_live=True, links=links))

    async def curves(self, http: HttpRequest) -> Response:
        """Curves of several runs over each other."""
        return Response(
            asset("curves.html"),
            media_type="text/html",
            headers={"Content-Security-Policy": _POLICY},
        )

    async def runs(self, http: HttpRequest) -> Response:
        """The labels of everything that has curves."""
        items = await run_in_threadpool(self._catalogue.items)
        return _json([label_of(one) for one in items if has_curves(one)])

    async def names(self, http: HttpRequest) -> Response:
        """The scalars of the chosen runs."""
        items = await run_in_threadpool(self._chosen, http)
        return _json(await run_in_threadpool(common_names, items))

    async def points(self, http: HttpRequest) -> Response:
        """One scalar of the chosen runs, thinned."""
        name = http.query_params.get("name", "")
        most = _number(http, "most", POINTS, MOST_POINTS)
        span = _span(http)
        is_over_time = http.query_params.get("axis") == Axis.TIMES.value
        axis = Axis.TIMES if is_over_time else Axis.STEPS
        items = await run_in_threadpool(self._chosen, http)

        def read() -> list[dict[str, object]]:
            curves = (curve_of(item, name, most, span, axis) for item in items)
            return curve_data(curves, axis)

        try:
            return _json(await run_in_threadpool(read))
        except IsogradError as error:
            return PlainTextResponse(f"{error}\n", 422)

    async def samples(self, http: HttpRequest) -> Response:
        """Samples of a data set, a page at a time."""
        from isograd.serve.samples import policy, samples_page

        item = await run_in_threadpool(self._item, "dataset", http.query_params.get("of", ""))
        if item is None:
            return PlainTextResponse("There is no such data set here.\n", 404)
        start = _place(http, "start")
        try:
            page = await run_in_threadpool(samples_page, item, start)
        except IsogradError as error:
            return PlainTextResponse(f"{error}\n", 422)
        headers = {"Content-Security-Policy": policy()}
        return Response(page, media_type="text/html", headers=headers)

    async def changes(self, http: HttpRequest) -> Response:
        """Server-sent events: one each time the page's item has changed."""
        parts = [part for part in http.query_params.get("page", "").split("/") if part]
        return StreamingResponse(
            _changes(self._stamp, parts, http.is_disconnected), media_type="text/event-stream"
        )

    async def static(self, http: HttpRequest) -> Response:
        """The scripts and styles of the curves' page."""
        name = http.path_params["name"]
        if name not in _STATIC:
            return PlainTextResponse("There is no such file.\n", 404)
        text = vendored(name) if name.startswith("uplot") else asset(name)
        return Response(text, media_type=_STATIC[name])

    def _item(self, kind: str, name: str) -> Item | None:
        try:
            return self._catalogue.find(Kind(kind), name)
        except ValueError:
            return None

    def _chosen(self, http: HttpRequest) -> list[Item]:
        wanted = http.query_params.getlist("run")[:MOST_CURVES]
        known = {label_of(one): one for one in self._catalogue.items() if has_curves(one)}
        return [known[label] for label in wanted if label in known]

    def _stamp(self, parts: list[str]) -> float:
        """Grows when the item of a page, or anything for the first page, has changed."""
        if len(parts) < 2:
            return max((changed_at(one) for one in self._catalogue.items()), default=0.0)
        item = self._item(parts[-2], unquote(parts[-1]))
        return 0.0 if item is None else changed_at(item)


async def _changes(
    stamp: Callable[[list[str]], float],
    parts: list[str],
    is_gone: Callable[[], Awaitable[bool]],
) -> AsyncIterator[bytes]:
    last = await run_in_threadpool(stamp, parts)
    yield b": listening\n\n"
    for _ in range(int(_LISTEN_S / _INTERVAL_S)):
        await asyncio.sleep(_INTERVAL_S)
        if await is_gone():
            return
        now = await run_in_threadpool(stamp, parts)
        if now != last:
            last = now
            yield b"event: changed\ndata: {}\n\n"


def _name(http: HttpRequest) -> str:
    return str(http.path_params["name"])


def _number(http: HttpRequest, name: str, default: int, most: int) -> int:
    try:
        return max(2, min(most, int(http.query_params.get(name, default))))
    except ValueError:
        return default


def _place(http: HttpRequest, name: str) -> int | None:
    """A number from 0 on; None where none is given."""
    text = http.query_params.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else None


def _span(http: HttpRequest) -> tuple[float, float] | None:
    try:
        return float(http.query_params["from"]), float(http.query_params["to"])
    except (KeyError, ValueError):
        return None


def _html(page: str) -> Response:
    return Response(page, media_type="text/html")


def _json(value: Any) -> Response:
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return Response(text, media_type="application/json")
