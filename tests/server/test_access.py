"""Who may use the server over TCP: tokens, names of hosts, pages of other servers, sizes."""

from __future__ import annotations

import asyncio
import base64
import os
from pathlib import Path
from typing import Any

import pytest

from lake.errors import ConfigError
from lake.server.access import MOST_BYTES, Access, Guarded
from lake.server.environment import differing, digests
from lake.server.listening import Address, token_of
from lake.server.socket_folder import Description, place_of, private, runtime_folder

ALL, READ = "a" * 32, "r" * 32
ACCESS = Access(ALL, READ, frozenset({"127.0.0.1", "lake.example"}), frozenset({"/v1/refresh"}))


def status(method: str, path: str, host: str = "127.0.0.1:8471", **headers: str) -> int:
    found = ACCESS.refusal(method, path, {"host": host, **headers})
    return 200 if found is None else found.status


def basic(password: str) -> str:
    return "Basic " + base64.b64encode(f"anyone:{password}".encode()).decode()


@pytest.mark.parametrize(
    "authorization",
    [
        "",
        f"Bearer {ALL}x",
        f"Bearer {ALL[1:]}",
        "Bearer",
        "Bearer ",
        f"Token {ALL}",
        "Basic !",
        basic(""),
        basic("x"),
        f"bearer: {ALL}",
    ],
)
def test_a_missing_or_wrong_token_is_refused(authorization: str) -> None:
    assert status("GET", "/", authorization=authorization) == 401
    assert status("POST", "/v1/refresh", authorization=authorization) == 401


@pytest.mark.parametrize("scheme", ["Bearer {}", "bearer {}"])
def test_tokens_allow_what_they_are_for(scheme: str) -> None:
    everything, reading = scheme.format(ALL), scheme.format(READ)
    assert status("POST", "/v1/refresh", authorization=everything) == 200
    assert status("DELETE", "/v1/requests/1", authorization=everything) == 200
    assert status("POST", "/v1/show", authorization=reading) == 200
    assert status("POST", "/v1/refresh", authorization=reading) == 403
    assert status("DELETE", "/v1/requests/1", authorization=reading) == 403


def test_a_browser_gives_the_token_as_a_password() -> None:
    assert status("GET", "/", authorization=basic(ALL)) == 200
    assert status("GET", "/", authorization=basic(READ)) == 200


def test_probes_need_no_token_and_nothing_else_does_without() -> None:
    assert [status("GET", path) for path in ("/healthz", "/readyz")] == [200, 200]
    assert [status("GET", path) for path in ("/metrics", "/openapi.json", "/docs", "/v1/server")] == [401] * 4


def test_without_a_token_for_reading_none_reads() -> None:
    access = Access(ALL, None, None)
    assert access.refusal("GET", "/", {"host": "x", "authorization": "Bearer "}) is not None
    assert access.refusal("GET", "/", {"host": "x", "authorization": f"Bearer {READ}"}) is not None


@pytest.mark.parametrize(("host", "found"), [("lake.example", 200), ("LAKE.example:80", 200), ("evil.example", 421), ("", 421), ("[", 421)])
def test_only_its_own_names_are_answered(host: str, found: int) -> None:
    assert status("GET", "/healthz", host=host) == found


def test_pages_of_other_servers_are_refused() -> None:
    assert status("POST", "/v1/refresh", authorization=f"Bearer {ALL}", origin="https://evil.example") == 403
    assert status("POST", "/v1/refresh", authorization=f"Bearer {ALL}", origin="null") == 403
    assert status("POST", "/v1/refresh", authorization=f"Bearer {ALL}", origin="http://[") == 403
    assert status("POST", "/v1/refresh", authorization=f"Bearer {ALL}", origin="http://127.0.0.1:8471") == 200


def send(chunks: list[bytes | None], headers: dict[str, str]) -> tuple[int, bytes]:
    """The status and what the application was given of a request over the Unix socket; None: the client goes away."""
    got, sent = b"", list[dict[str, Any]]()
    parts = [{"type": "http.request", "body": chunk, "more_body": i < len(chunks) - 1} for i, chunk in enumerate(chunks)]
    waiting = [part if part["body"] is not None else {"type": "http.disconnect"} for part in parts]

    async def application(scope: Any, receive: Any, send: Any) -> None:
        nonlocal got
        got = (await receive())["body"]
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def receive() -> Any:
        return waiting.pop(0)

    async def collect(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/v1/show", "headers": [(k.encode(), v.encode()) for k, v in headers.items()]}
    asyncio.run(Guarded(application, Access())(scope, receive, collect))
    return sent[0]["status"], got


def test_long_requests_are_refused_whether_they_say_so_or_not() -> None:
    half = b"x" * (MOST_BYTES // 2)
    assert send([b"x"], {"content-length": str(MOST_BYTES + 1)})[0] == 413
    assert send([half, half, b"x"], {"transfer-encoding": "chunked"})[0] == 413
    assert send([half, half], {"transfer-encoding": "chunked"}) == (200, half + half)


def test_a_request_whose_client_goes_away_in_the_middle_is_refused() -> None:
    assert send([b'{"views": ["v"]}', None], {"content-length": "100"}) == (400, b"")


@pytest.mark.parametrize(
    ("text", "token", "read_only", "what"),
    [
        ("8471", ALL, None, "HOST:PORT"),
        ("127.0.0.1:", ALL, None, "HOST:PORT"),
        ("127.0.0.1:99999", ALL, None, "HOST:PORT"),
        ("127.0.0.1:0", None, None, "needs a token"),
        ("127.0.0.1:0", "short", None, "16 characters"),
        ("127.0.0.1:0", ALL, "short", "16 characters"),
        ("127.0.0.1:0", ALL, ALL, "the same"),
        ("127.0.0.1:²", ALL, None, "HOST:PORT"),
        ("127.0.0.1:0", "a" * 20 + "é", None, "can't be sent"),
    ],
)
def test_an_address_without_what_it_needs_is_refused(text: str, token: str | None, read_only: str | None, what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        Address.parsed(text, token, read_only, (), None)


def test_a_used_port_is_an_error_and_a_free_one_is_told() -> None:
    address = Address.parsed("127.0.0.1:0", ALL, None, (), None)
    with address.open() as opened:
        port = opened.getsockname()[1]
        assert address.url(opened) == f"http://127.0.0.1:{port}"
        with pytest.raises(ConfigError, match="Choose another port"):
            Address.parsed(f"127.0.0.1:{port}", ALL, None, (), None).open()


def test_a_token_comes_from_a_file_or_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text(f"{ALL}\n")
    monkeypatch.setenv("LAKEJOIN_TOKEN", f"{READ}\n")
    assert token_of(tmp_path / "token", "LAKEJOIN_TOKEN") == ALL
    assert token_of(None, "LAKEJOIN_TOKEN") == READ
    with pytest.raises(ConfigError, match="can't be read"):
        token_of(tmp_path / "none", "LAKEJOIN_TOKEN")


def test_links_to_one_file_have_one_server_and_environments_have_their_own(tmp_path: Path) -> None:
    (tmp_path / "lakejoin.yml").write_text("")
    (tmp_path / "link.yml").symlink_to(tmp_path / "lakejoin.yml")
    asked = (("lakejoin.yml", None), ("link.yml", None), ("lakejoin.yml", "prod"), ("x", None))
    one, link, prod, other = (place_of(tmp_path / name, env, {}) for name, env in asked)
    assert one == link
    assert len({one.name, prod.name, other.name}) == 3


def test_the_runtime_folder_must_be_the_users_alone(tmp_path: Path) -> None:
    place = place_of(tmp_path / "lakejoin.yml", None, {"LAKEJOIN_RUNTIME_DIR": str(tmp_path / "run")})
    place.make()
    assert private(place.folder)
    place.folder.chmod(0o750)
    with pytest.raises(ConfigError, match="only this user"):
        place.make()
    long = place_of(tmp_path / "lakejoin.yml", None, {"LAKEJOIN_RUNTIME_DIR": str(tmp_path / ("x" * 100))})
    with pytest.raises(ConfigError, match="too long"):
        long.make()
    assert runtime_folder({"XDG_RUNTIME_DIR": str(tmp_path)}) == tmp_path / "lakejoin"
    assert runtime_folder({"XDG_RUNTIME_DIR": str(tmp_path / "none")}).name.startswith("lakejoin-")


def test_a_place_is_locked_by_one_and_described(tmp_path: Path) -> None:
    place = place_of(tmp_path / "lakejoin.yml", None, {"LAKEJOIN_RUNTIME_DIR": str(tmp_path / "run")})
    place.make()
    assert place.described() is None
    description = Description(1, "0", "python", "lakejoin.yml", None, "salt", 0.0)
    place.describe(description)
    assert place.described() == description
    lock = place.locked()
    assert lock is not None
    assert place.locked() is None
    files = [place.folder / f"{place.name}.{ending}" for ending in ("lock", "json")]
    for file in files:
        os.utime(file, (0, 0))
    place.keep()
    assert all(file.stat().st_mtime for file in files)
    lock.close()
    again = place.locked()
    assert again is not None
    again.close()
    place.clear()
    assert place.described() is None


def test_environments_differ_by_variables_that_matter() -> None:
    own = digests({"AWS_REGION": "a", "SHLVL": "1", "VIRTUAL_ENV": "/a", "DB": "x", "TZ": "UTC"}, "salt")
    client = digests({"AWS_REGION": "b", "SHLVL": "2", "DB": "y", "SPARK_HOME": "s", "TZ": "UTC"}, "salt")
    assert differing(own, client, ()) == ["AWS_REGION", "SPARK_HOME"]
    assert differing(own, client, {"DB"}) == ["AWS_REGION", "DB", "SPARK_HOME"]
    assert differing(own, own, {"DB", "none"}) == []
    assert "a" not in own.values()
    assert digests({"A": "same"}, "1") != digests({"A": "same"}, "2")
