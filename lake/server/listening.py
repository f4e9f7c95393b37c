"""Where a server listens: its Unix socket, and on demand an address, which then wants a token."""

from __future__ import annotations

import os
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path

from lake.errors import ConfigError
from lake.server.access import Access

SHORTEST_TOKEN = 16
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclass(frozen=True)
class Tls:
    """Files in PEM format: the certificate with its chain, and its key."""

    certificate: Path
    key: Path

    def check(self) -> None:
        """Raise ConfigError if they can't be used."""
        try:
            ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"--tls-certificate {self.certificate} and --tls-key {self.key} can't be used: {error}.") from error


@dataclass(frozen=True)
class Address:
    """Where to listen besides the socket. `port`: 0 for a free one; `names`: what clients may call the server, besides `host`."""

    host: str
    port: int
    token: str
    read_only: str | None = None
    names: tuple[str, ...] = ()
    tls: Tls | None = None

    @staticmethod
    def parsed(text: str, token: str | None, read_only: str | None, names: tuple[str, ...], tls: Tls | None) -> Address:
        """From HOST:PORT. Raises ConfigError if it is not that, or a token is missing or too short."""
        host, _, port = text.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65535:
            raise ConfigError(f"--listen is HOST:PORT, such as 127.0.0.1:8471, not {text!r}.")
        if token is None:
            raise ConfigError(
                "--listen needs a token: whoever reaches the address could change the views. Set the environment variable LAKEJOIN_TOKEN, "
                "or name a file with --token-file."
            )
        for given in filter(None, (token, read_only)):
            if not (given.isascii() and given.isprintable()):
                raise ConfigError("A token has characters that can't be sent over HTTP. `openssl rand -hex 32` makes one that can.")
            if len(given) < SHORTEST_TOKEN:
                raise ConfigError(f"A token must have at least {SHORTEST_TOKEN} characters. `openssl rand -hex 32` makes one.")
        if token == read_only:
            raise ConfigError("The two tokens are the same: whoever may read could also change the views. Use another one for reading.")
        if tls is not None:
            tls.check()
        return Address(host.strip("[]"), int(port), token, read_only, names, tls)

    @property
    def exposed(self) -> bool:
        """Whether tokens travel to other machines unencrypted."""
        return self.tls is None and self.host not in _LOOPBACK

    def access(self, writes: frozenset[str]) -> Access:
        own = _LOOPBACK if self.host in _LOOPBACK else {self.host, socket.gethostname(), socket.getfqdn()}
        return Access(self.token, self.read_only, frozenset(name.lower() for name in (*own, *self.names)), writes)

    def open(self) -> socket.socket:
        """A listening socket. Raises ConfigError if the address is not free, or not this machine's."""
        try:
            return socket.create_server(
                (self.host, self.port), family=socket.AF_INET6 if ":" in self.host else socket.AF_INET, backlog=1024
            )
        except (OSError, UnicodeError) as error:
            raise ConfigError(f"--listen {self.host}:{self.port}: {error}. Nothing was started. Choose another port, or 0.") from error

    def url(self, opened: socket.socket) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls is not None else 'http'}://{host}:{opened.getsockname()[1]}"


def open_socket(path: Path) -> socket.socket:
    """The listening Unix socket, which only this user can open."""
    path.unlink(missing_ok=True)
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        found.bind(str(path))
    finally:
        os.umask(before)
    found.listen(1024)
    return found


def token_of(file: Path | None, variable: str) -> str | None:
    """A token from a file, or from an environment variable; None if neither is given. Raises ConfigError."""
    if file is None:
        return os.environ.get(variable, "").strip() or None
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The token file {file} can't be read ({getattr(error, 'strerror', None) or 'it is not UTF-8'}).") from error
