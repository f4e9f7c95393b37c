"""Finds the running server of a configuration and sends it a command; only Python's standard library, so that it costs no time to load."""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lake import __version__
from lake.errors import ConfigError, EngineError
from lake.server.environment import digests
from lake.server.socket_folder import Description, Place, private

_SECONDS = 60.0
"""How long the server may say nothing; it says something every few seconds."""


_NOT_HERE = (400, 404, 405, 409, 413, 503)
"""The statuses of what the command can do without the server. 400 and 413: it has read the options, and only the server has limits."""


class NotUsableError(Exception):
    """There is a server, and it can't answer this command as the command itself would. The message says why."""


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("lakejoin", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


@dataclass
class Client:
    """A server at a socket, or (`url`) elsewhere. `token`: for a server over TCP; `salt`: of the digests of environment variables."""

    socket: Path | None
    url: str = ""
    token: str | None = None
    salt: str | None = None

    def call(
        self, verb: str, options: Mapping[str, Any], client: Mapping[str, Any], run: str | None, name: str
    ) -> Iterator[dict[str, Any]]:
        """Send a command under a name of its own; yields its events to the last.

        Raises NotUsableError if the server refuses a command that works without it, and EngineError if it ends meanwhile.
        """
        told = {**client, **({"environment": digests(os.environ, self.salt)} if self.salt is not None else {})}
        body = json.dumps({**options, "client": told, **({"run": run} if run is not None else {})}, default=str)
        headers = {"Content-Type": "application/json", "Accept": "application/x-ndjson", "Lakejoin-Request": name}
        connection = self.connection()
        try:
            yield from self._events(self._sent(connection, f"/v1/{verb}", body, headers))
        finally:
            connection.close()

    def cancel(self, name: str) -> None:
        """Cancel a request. Raises EngineError if the server is gone."""
        try:
            self.ask("DELETE", f"/v1/requests/{name}")
        except OSError as error:
            raise self._lost() from error

    def get(self, path: str) -> Any:
        """The JSON at a path. Raises OSError if there is no server, EngineError for another status than 200."""
        status, found = self.ask("GET", path)
        if status != 200:
            raise EngineError(f"The server at {self.name} answered {status}: {found.get('error', '')}")
        return found

    def ask(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> tuple[int, Any]:
        """The status and the JSON of an answer. Raises OSError if there is no server, or it answers no HTTP."""
        connection = self.connection()
        try:
            text = json.dumps(body).encode() if body is not None else None
            connection.request(method, path, text, self._headers({"Content-Type": "application/json", **(headers or {})}))
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        except (http.client.HTTPException, ValueError) as error:
            raise ConnectionError(f"{self.name}: {_reason(error)}") from error
        finally:
            connection.close()

    def connection(self, timeout: float = _SECONDS) -> http.client.HTTPConnection:
        if self.socket is not None:
            return _UnixConnection(self.socket, timeout)
        parts = urlsplit(self.url)
        if parts.scheme == "https":
            return http.client.HTTPSConnection(parts.netloc, timeout=timeout, context=ssl.create_default_context())
        return http.client.HTTPConnection(parts.netloc, timeout=timeout)

    def _sent(self, connection: http.client.HTTPConnection, path: str, body: str, headers: Mapping[str, str]) -> http.client.HTTPResponse:
        try:
            connection.request("POST", path, body.encode(), self._headers(headers))
            answer = connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            if self.url:  # who names a server does not mean this machine
                text = f"The server at {self.url} does not answer ({_reason(error)}). Check the address of --server (LAKEJOIN_SERVER)."
                raise EngineError(text) from error
            raise NotUsableError(f"the server at {self.name} does not answer ({_reason(error)})") from error
        if answer.status == 200:
            return answer
        text = _said(answer.read()) or f"it answered {answer.status}"
        if answer.status in _NOT_HERE and not self.url:
            raise NotUsableError(text)
        raise ConfigError(f"The server at {self.name}: {text}")

    def _events(self, answer: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
        try:
            for line in answer:
                event = json.loads(line)
                yield event
                if "exit_code" in event:
                    return
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise self._lost() from error
        raise self._lost()

    def _lost(self) -> EngineError:
        return EngineError(
            f"The server at {self.name} ended before it answered. What it had published stays, and nothing is half written. Run it again."
        )

    def _headers(self, more: Mapping[str, str]) -> dict[str, str]:
        return {**more, **({"Authorization": f"Bearer {self.token}"} if self.token else {})}

    @property
    def name(self) -> str:
        """The server, for people."""
        return self.url or str(self.socket)


def local(place: Place) -> Client | None:
    """The running server of a configuration on this machine; None if there is none.

    Raises NotUsableError if it is of another version of Lakejoin or another Python environment.
    """
    if not private(place.folder):
        return None
    found = place.described()
    if found is None or not place.socket.exists() or not _answers(place):
        return None
    if (found.version, _installation(found.python)) != (__version__, _installation(sys.executable)):
        raise NotUsableError(_other(found))
    return Client(place.socket, salt=found.salt)


def remote(url: str, token: str | None) -> Client:
    """The server at an address. Raises ConfigError if it is no address, or the token is missing or can't be sent."""
    try:
        parts = urlsplit(url)
        wrong = (
            parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0 or "@" in parts.netloc or parts.path.strip("/")
        )
    except ValueError:
        wrong = True
    if wrong:
        raise ConfigError(f"--server is auto, off, or an address such as https://host:8443, not {url!r}.")
    token = (token or "").strip()
    if not token:
        raise ConfigError(f"The server at {url} wants a token. Set the environment variable LAKEJOIN_TOKEN.")
    if not (token.isascii() and token.isprintable()):  # it must not be in the message of the HTTP client
        raise ConfigError("The token has characters that can't be sent over HTTP. `openssl rand -hex 32` makes one that can.")
    return Client(None, url.rstrip("/"), token)


def _answers(place: Place) -> bool:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as tried:
            tried.connect(str(place.socket))
    except OSError:
        return False
    return True


def _installation(python: str) -> tuple[str, str]:
    """One environment has its interpreter under several names: `lakejoin` runs python3, `python -m lake.cli` runs python."""
    return os.path.dirname(python), os.path.realpath(python)


def _other(found: Description) -> str:
    return (
        f"the server of this configuration (process {found.pid}) is lakejoin {found.version} of {found.python}, and this is "
        f"lakejoin {__version__} of {sys.executable}"
    )


def _said(text: bytes) -> str:
    try:
        return str(json.loads(text)["error"])
    except (ValueError, LookupError, TypeError):
        return ""


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
