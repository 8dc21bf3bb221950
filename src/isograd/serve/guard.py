"""What a request must have before anything is answered: the token, and a host that is this one.

A page of another site can make a browser send requests here, and by DNS rebinding it can read the
answers.  So the Host header must name this machine, an Origin header must be this server's own, and
every request carries the token, in a cookie that no other site's request is given.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from urllib.parse import parse_qs, urlsplit

COOKIE = "isograd_token"
#: Bytes of an address with its query.
MOST_ADDRESS_BYTES = 16_384


@dataclass(frozen=True)
class Request:
    """What the guard looks at."""

    method: str
    path: str
    query: str
    host: str
    origin: str
    cookie: str


@dataclass(frozen=True)
class Refusal:
    """status: the answer's HTTP status; text: one sentence for a person."""

    status: int
    text: str


def refusal(request: Request, token: str, own_host: str = "") -> Refusal | None:
    """Why a request is not answered, or None.

    own_host: the name that the server listens on by `--host`, allowed beside loopback names.
    """
    if request.method not in ("GET", "HEAD"):
        return Refusal(405, "This server only shows.")
    if len(request.path) + len(request.query) > MOST_ADDRESS_BYTES:
        return Refusal(414, "The address is too long.")
    if not _is_own(request.host, own_host):
        return Refusal(421, "The Host header names another machine.")
    if request.origin and not _is_own_origin(request.origin, request.host):
        return Refusal(403, "The request comes from another site.")
    if not has_token(request, token):
        return Refusal(401, "Open the address that isograd serve printed; it carries the token.")
    return None


def has_token(request: Request, token: str) -> bool:
    """Whether the request's query or cookie has the token; compared in constant time."""
    given = [*parse_qs(request.query, max_num_fields=100).get("token", []), _of_cookie(request)]
    return any(hmac.compare_digest(one.encode(), token.encode()) for one in given)


def _of_cookie(request: Request) -> str:
    try:
        found = SimpleCookie(request.cookie).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _is_own(host: str, own_host: str) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    if name == "localhost" or (own_host and name == own_host.lower()):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def _is_own_origin(origin: str, host: str) -> bool:
    try:
        found = urlsplit(origin)
    except ValueError:
        return False
    return found.scheme in ("http", "https") and found.netloc == host
