"""Who may speak with the studio, and what its page may do: checked for every request, before anything else happens.

The promise: nobody without the token of the start link, or the cookie it was exchanged for, is told anything or can
have anything done; and no page of another origin can, in the operator's own browser, whatever it knows.

- **Host**: only names of this machine are answered. A foreign name that was bound anew to 127.0.0.1 (DNS rebinding)
  is a foreign name still. Where the studio was told to listen beyond this machine any address in figures is a name.
- **Origin**: what a browser says to come from elsewhere is refused, by `Origin` and by `Sec-Fetch-Site`; what changes
  anything must be JSON from this very origin.
- **Token**: 256 random bits, in the start link, good once. The cookie that takes its place cannot be read by scripts
  and is sent to this origin alone.
- **Content security policy**: scripts, styles and workers are the studio's files, nothing is inline, and no other host
  is spoken to, except for the tiles of a map where the operator named where they are.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import os
import secrets
import sys
import traceback
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

MOST_BYTES = 4 << 20
"""The largest body of a request: a long list of cells, and never a file."""

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_SAFE = frozenset({"GET", "HEAD"})
_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
    "permissions-policy": "camera=(), microphone=(), geolocation=(), usb=()",
}

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Refused(Exception):
    """A request that is not answered: the status, and why, in words for whoever sees it."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


class Keys:
    """The token of the start link, good once, and the cookie that it is exchanged for."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(32)
        self._cookie = secrets.token_urlsafe(32)
        self._used = False

    def taken(self, token: str) -> str | None:
        """The cookie, for the token, the first time it is shown."""
        if self._used or not hmac.compare_digest(token.encode(), self.token.encode()):
            return None
        self._used = True
        return self._cookie

    def known(self, cookie: str) -> bool:
        """Whether this is the cookie."""
        return hmac.compare_digest(cookie.encode(), self._cookie.encode())


class Guard:
    """Lets through to the studio what may pass, and sets the headers of whatever it says."""

    def __init__(self, app: App, *, keys: Keys, host: str, port: int, tiles: str | None = None) -> None:
        self._app, self._keys, self._port = app, keys, port
        self._wide = host not in _LOOPBACK
        self._host = host
        self._cookie = f"sfumato_studio_{port}"  # cookies are not kept apart by port: two studios need two names
        self._policy = content_policy(tiles)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or have it answered."""
        if scope["type"] != "http":
            return
        cookie: str | None = None
        try:
            headers = _headers(scope)
            self._require_host(headers)
            self._require_origin(scope, headers)
            cookie = self._require_key(scope, headers)
            body = await _whole(receive, headers) if scope["method"] not in _SAFE else b""
        except Refused as refused:
            await _say(self._dressed(send, None), refused.status, refused.why, json_wanted=_wants_json(scope))
            return
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await dressed(message)

        dressed = self._dressed(send, cookie)
        try:
            await self._app(scope, _again(body), watched)
        except Exception as error:  # noqa: BLE001 - its message may quote a record
            on_terminal(error)
            if not started:
                await _say(dressed, 500, unexpected(error), json_wanted=True, kind=type(error).__name__)

    def _require_host(self, headers: dict[str, str]) -> None:
        name, port = _split(headers.get("host", ""))
        if port != self._port or not (name in _LOOPBACK or (self._wide and (name == self._host or _is_address(name)))):
            raise Refused(421, "This host name is not the studio's. Open the link that it printed when it started.")

    def _require_origin(self, scope: Scope, headers: dict[str, str]) -> None:
        own = f"http://{headers['host']}"
        origin = headers.get("origin")
        if origin is not None and origin != own:
            raise Refused(403, "The studio answers its own page alone, and this request comes from another.")
        site = headers.get("sec-fetch-site", "same-origin")
        entering = _token(scope) is not None and headers.get("sec-fetch-mode", "navigate") == "navigate"
        if site not in ("same-origin", "none") and not entering:
            raise Refused(403, "The studio answers its own page alone, and this request comes from another.")
        if scope["method"] in _SAFE:
            return
        if scope["method"] != "POST":
            raise Refused(405, "The studio knows GET and POST.")
        if origin is None:
            raise Refused(403, "A request that asks for something to be done has to say its origin.")
        if headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
            raise Refused(415, "The studio reads JSON.")

    def _require_key(self, scope: Scope, headers: dict[str, str]) -> str | None:
        """Refuse who has neither cookie nor token; gives the cookie to set, for the token."""
        if self._keys.known(_cookie(headers.get("cookie", ""), self._cookie)):
            return None
        token = _token(scope)
        given = None if token is None else self._keys.taken(token)
        if given is None:
            raise Refused(
                403,
                "This link was used before, or is not whole. Go on in the browser in which it was opened first, or "
                "start the studio again: every start prints a new link.",
            )
        return f"{self._cookie}={given}; Path=/; HttpOnly; SameSite=Strict"

    def _dressed(self, send: Send, cookie: str | None) -> Send:
        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                extra = {**_HEADERS, "content-security-policy": self._policy}
                if cookie is not None:
                    extra["set-cookie"] = cookie
                kept = [pair for pair in message.get("headers", []) if pair[0].decode("latin-1").lower() not in extra]
                message["headers"] = [*kept, *((k.encode(), v.encode("latin-1")) for k, v in extra.items())]
            await send(message)

        return dressed


def content_policy(tiles: str | None) -> str:
    """What the page may load and speak to: itself, and the host of the tiles where one was named."""
    there = ""
    if tiles is not None:
        parts = urlsplit(tiles)
        there = f" {parts.scheme}://{parts.netloc}"
    return "; ".join(
        [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            f"img-src 'self' data: blob:{there}",
            f"connect-src 'self'{there}",
            "worker-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ]
    )


def unexpected(error: Exception) -> str:
    """What is said of a bug: its class alone, since its message may quote a record."""
    return (
        f"an unexpected {type(error).__name__} stopped this. Its message may quote a record and is not shown; start "
        "the studio with SFUMATO_DEBUG=1 to see it on the terminal. Please report it."
    )


def on_terminal(error: Exception) -> None:
    """The traceback of a bug, on the terminal, where somebody asked for it."""
    if os.environ.get("SFUMATO_DEBUG"):
        traceback.print_exception(error, file=sys.stderr)


def _headers(scope: Scope) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1").lower()
        if key in found and key in ("host", "origin", "content-length", "content-type"):
            raise Refused(400, "A header stands twice that may stand once.")
        found[key] = f"{found[key]}; {value.decode('latin-1')}" if key in found else value.decode("latin-1")
    return found


def _split(host: str) -> tuple[str, int | None]:
    """The name and the port of a Host header; (\"\", None) where it is none."""
    try:
        parts = urlsplit(f"//{host}")
        return (parts.hostname or "", parts.port or 80) if parts.netloc == host and not parts.username else ("", None)
    except ValueError:
        return "", None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _token(scope: Scope) -> str | None:
    if scope["path"] != "/" or scope["method"] != "GET":
        return None
    return parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [None])[0]


def _cookie(header: str, name: str) -> str:
    try:
        found = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _wants_json(scope: Scope) -> bool:
    return bool(scope["path"].startswith("/api/"))


async def _whole(receive: Receive, headers: dict[str, str]) -> bytes:
    """The body, unless it is larger than anything that the page sends."""
    refusal = Refused(413, f"A request holds at most {MOST_BYTES >> 20} MB. Nothing was done.")
    length = headers.get("content-length", "0")
    if not length.isdecimal() or len(length) > 12 or int(length) > MOST_BYTES:
        raise refusal
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refused(400, "The request ended early. Nothing was done.")
        body += message.get("body", b"")
        if len(body) > MOST_BYTES:
            raise refusal
        if not message.get("more_body", False):
            return bytes(body)


def _again(body: bytes) -> Receive:
    """The body once more, for whoever answers."""
    given = False

    async def receive() -> Message:
        nonlocal given
        if given:
            return {"type": "http.disconnect"}
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


async def _say(send: Send, status: int, why: str, *, json_wanted: bool, kind: str = "Refused") -> None:
    if json_wanted:
        content, what = (
            json.dumps({"error": {"kind": kind, "message": why, "field": None}}).encode(),
            "application/json",
        )
    else:
        content, what = why.encode(), "text/plain; charset=utf-8"
    headers = [(b"content-type", what.encode()), (b"content-length", str(len(content)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
