"""Who may use the server: checks host, origin, token and size of each HTTP request before anything else sees it.

The Unix socket is open to its user alone, by its file mode, and asks for no token. Over TCP every request needs one.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_BYTES = 1024 * 1024
"""The size of the largest request."""
_OPEN = ("/healthz", "/readyz")
ONLY_READS = "only_reads"
"""The name under which the state of a request says that its token may only read."""


@dataclass(frozen=True)
class Refusal:
    """An HTTP status, what was wrong, and what to do."""

    status: int
    text: str
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Access:
    """`token`: for everything; `read_only`: for requests that change nothing; `hosts`: the names by which clients may call the server
    (None: any, on the Unix socket); `writes`: the paths of requests that change something."""

    token: str | None = None
    read_only: str | None = None
    hosts: frozenset[str] | None = None
    writes: frozenset[str] = frozenset()

    def refusal(self, method: str, path: str, headers: Mapping[str, str]) -> Refusal | None:
        """Why a request is refused; None if it is not."""
        if (found := self._of_a_browser(headers)) is not None:
            return found
        if self.token is None or path in _OPEN:
            return None
        given = _given(headers.get("authorization", ""))
        # both comparisons are always made, so that the time tells nothing
        all_allowed, read_allowed = _same(given, self.token), _same(given, self.read_only)
        if not (all_allowed or read_allowed):
            asks = ("www-authenticate", 'Basic realm="lakejoin", charset="UTF-8"')
            return Refusal(401, "The token is missing or wrong. Send `Authorization: Bearer TOKEN`.", (asks,))
        if not all_allowed and (path in self.writes or method == "DELETE"):
            return Refusal(403, "This token may only read. Use the token of `lakejoin serve --token-file`.")
        return None

    def only_reads(self, headers: Mapping[str, str]) -> bool:
        """Whether a request that is not refused came with the token for reading."""
        return self.token is not None and not _same(_given(headers.get("authorization", "")), self.token)

    def _of_a_browser(self, headers: Mapping[str, str]) -> Refusal | None:
        """Refuses names that are not the server's (DNS rebinding), and pages of other servers."""
        host = headers.get("host", "")
        if self.hosts is not None and _name(f"//{host}") not in self.hosts:
            return Refusal(421, f"This server is not called {host!r}. Give the name with `lakejoin serve --host-name NAME`.")
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            return Refusal(403, "A page of another server may not use this one.")
        return None


def _name(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""


def _given(authorization: str) -> str:
    """The token of a header: a bearer token, or the password that a browser asked for."""
    scheme, _, value = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(value, validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return ""
    return ""


def _same(given: str, token: str | None) -> bool:
    return hmac.compare_digest(given.encode(), (token or "").encode()) and bool(token)


@dataclass(frozen=True)
class Guarded:
    """An application behind its checks."""

    application: Application
    access: Access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.application(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self.access.refusal(scope["method"], scope["path"], headers)
        if refusal is None:
            refusal, receive = await _bounded(headers, receive)
        if refusal is not None:
            await refuse(send, refusal)
            return
        state = {**scope.get("state", {}), ONLY_READS: self.access.only_reads(headers)}
        await self.application({**scope, "state": state}, receive, _with_headers(send))


async def _bounded(headers: Mapping[str, str], receive: Receive) -> tuple[Refusal | None, Receive]:
    """The whole body as one message, or a refusal if it is too long."""
    too_long = Refusal(413, f"A request may have {MOST_BYTES >> 20} MB.")
    if headers.get("content-length", "0").isdigit() and int(headers.get("content-length", "0")) > MOST_BYTES:
        return too_long, receive
    body, more = b"", "content-length" in headers or "transfer-encoding" in headers
    while more:
        message = await receive()
        if message["type"] != "http.request":
            return Refusal(400, "The request ended before it was complete."), receive
        body, more = body + message.get("body", b""), message.get("more_body", False)
        if len(body) > MOST_BYTES:
            return too_long, receive
    sent = False

    async def whole() -> dict[str, Any]:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return None, whole


def _with_headers(send: Send) -> Send:
    async def sending(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [
                *message.get("headers", []),
                (b"cache-control", b"no-store"),
                (b"x-content-type-options", b"nosniff"),
                (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"),
                (b"referrer-policy", b"no-referrer"),
            ]
        await send(message)

    return sending


async def refuse(send: Send, refusal: Refusal) -> None:
    """Answer with a refusal."""
    body = json.dumps({"error": refusal.text}).encode()
    headers = [("content-type", "application/json"), ("content-length", str(len(body))), ("connection", "close"), *refusal.headers]
    encoded = [(name.encode(), value.encode()) for name, value in headers]
    await send({"type": "http.response.start", "status": refusal.status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})
