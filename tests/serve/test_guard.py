"""Which requests are answered: only those with the token, to this machine, from its own pages."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import urljoin

import pytest
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from isograd.serve.app import make_app
from isograd.serve.catalogue import Catalogue
from isograd.serve.guard import Request, refusal

TOKEN = "a-token"
GOOD = Request("GET", "/", f"token={TOKEN}", "127.0.0.1:8765", "", "")


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(GOOD, id="token-in-address"),
        pytest.param(replace(GOOD, query="", cookie=f"isograd_token={TOKEN}"), id="cookie"),
        pytest.param(replace(GOOD, host="localhost:9999"), id="through-a-tunnel"),
        pytest.param(replace(GOOD, host="[::1]:8765"), id="ipv6"),
        pytest.param(replace(GOOD, origin="http://127.0.0.1:8765"), id="own-origin"),
        pytest.param(replace(GOOD, method="HEAD"), id="head"),
    ],
)
def test_what_is_answered(request_: Request) -> None:
    assert refusal(request_, TOKEN) is None


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        pytest.param(replace(GOOD, query=""), 401, id="no-token"),
        pytest.param(replace(GOOD, query="token=a-toke"), 401, id="a-part-of-the-token"),
        pytest.param(replace(GOOD, query="token="), 401, id="empty-token"),
        pytest.param(replace(GOOD, query="token=é"), 401, id="not-ascii"),
        pytest.param(replace(GOOD, cookie="isograd_token", query=""), 401, id="broken-cookie"),
        pytest.param(replace(GOOD, host="evil.example:8765"), 421, id="dns-rebinding"),
        pytest.param(replace(GOOD, host="127.0.0.1.evil.example"), 421, id="looks-like-loopback"),
        pytest.param(replace(GOOD, host="192.168.0.7:8765"), 421, id="other-interface"),
        pytest.param(replace(GOOD, host=""), 421, id="no-host"),
        pytest.param(replace(GOOD, host="[::1"), 421, id="broken-host"),
        pytest.param(replace(GOOD, origin="http://evil.example"), 403, id="foreign-origin"),
        pytest.param(replace(GOOD, origin="null"), 403, id="sandboxed-origin"),
        pytest.param(replace(GOOD, origin="http://127.0.0.1:1"), 403, id="other-port"),
        pytest.param(replace(GOOD, method="POST"), 405, id="post"),
        pytest.param(replace(GOOD, path="/" + "a" * 20_000), 414, id="long-address"),
    ],
)
def test_what_is_refused(request_: Request, status: int) -> None:
    refused = refusal(request_, TOKEN)
    assert refused is not None
    assert refused.status == status


def test_a_named_host_is_answered_only_where_it_was_asked_for() -> None:
    request = replace(GOOD, host="cluster-node:8765")
    assert refusal(request, TOKEN) is not None
    assert refusal(request, TOKEN, own_host="cluster-node") is None


def test_every_link_holds_behind_a_proxy_with_a_prefix(migration: Path, events: Path) -> None:
    """As jupyter-server-proxy serves it: the server itself never sees the prefix."""
    prefix = "/user/me/proxy/8765"
    inner = make_app(Catalogue([migration]), TOKEN)

    async def proxy(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # the beginning and end of the server's life
            await inner(scope, receive, send)
            return
        assert scope["path"].startswith(prefix), scope["path"]
        path = scope["path"].removeprefix(prefix)
        raw = scope["raw_path"].removeprefix(prefix.encode())
        await inner({**scope, "path": path, "raw_path": raw}, receive, send)

    with TestClient(proxy, base_url="http://localhost:8888") as browser:
        browser.get(f"{prefix}/", params={"token": TOKEN}).raise_for_status()
        waiting, seen = [f"{prefix}/"], set()
        while waiting:
            address = waiting.pop()
            answer = browser.get(address)
            assert answer.status_code == 200, address
            seen.add(address)
            links = re.findall(r'(?:href|src|action)="([^"#]+)(?:#[^"]*)?"', answer.text)
            for link in links:
                target = urljoin(address, html.unescape(link))
                if not link.startswith("data:") and target not in seen:
                    waiting.append(target)
    kinds = {address.removeprefix(prefix).split("/")[1] for address in seen}
    assert {"run", "verify", "source", "recording", "events", "static", "checkpoint"} <= kinds
