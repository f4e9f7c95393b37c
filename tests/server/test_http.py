"""The server's HTTP interface, over a queue that runs a function of the test."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from lake.cli.served_commands import parsed, verbs
from lake.core.results import SourceStatus
from lake.errors import SourceError
from lake.server.access import Access, Guarded
from lake.server.engine import OtherSettingsError
from lake.server.http import COMMAND, Service, application
from lake.server.lags import Lags
from lake.server.metrics import ServerMetrics
from lake.server.page import Page
from lake.server.queue import Limits, Queue
from lake.server.request import Request
from tests.lakes import until


@dataclass
class Lake:
    """A server whose requests do what the test says."""

    run: Callable[[Request], int] = lambda request: 0
    refuse: Callable[[Any], None] = lambda environment: None
    views: list[str] = field(default_factory=lambda: ["q20", "<script>alert(1)</script>"])
    status: list[SourceStatus] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.go_on = threading.Event()
        self.queue = Queue(lambda request: self.run(request), lambda _: self.go_on.set(), Limits(1, 1))
        page = Page(self.queue, lambda: self.views, Lags(lambda: self.status, lambda: True), "lakejoin.yml")
        about = lambda: {"ready": self.queue.ready}  # noqa: E731
        service = Service(verbs(), parsed, self.queue, page, about, lambda e: self.refuse(e), lambda: b"x 1\n")
        self._application: Any = application(service)
        self.queue.open()

    def guard(self, access: Access) -> None:
        self._application = Guarded(self._application, access)

    def ask(self, method: str, path: str, **request: Any) -> httpx.Response:
        async def asked() -> httpx.Response:
            async with httpx.AsyncClient(transport=httpx.ASGITransport(self._application), base_url="http://lakejoin") as client:
                return await client.request(method, path, **request)

        return asyncio.run(asked())

    def get(self, path: str) -> httpx.Response:
        return self.ask("GET", path)

    def answer(self, verb: str, body: dict[str, Any], **headers: str) -> Any:
        return self.ask("POST", f"/v1/{verb}", json=body, headers={name.replace("_", "-"): text for name, text in headers.items()})

    def waits(self, request: Request) -> int:
        assert self.go_on.wait(10)
        return 1 if request.cancelled else 0


@pytest.fixture
def lake() -> Iterator[Lake]:
    found = Lake()
    yield found
    found.go_on.set()
    found.queue.drain(10)


def prints(request: Request) -> int:
    request.emit({"status": "refreshing"})
    request.emit({"err": "a message\n"})
    request.emit({"out": json.dumps({"asked": {k: str(v) for k, v in request.call.options.items()}, "run": request.call.run})})
    return 0


def test_a_verb_takes_the_options_of_its_command(lake: Lake) -> None:
    lake.run = prints
    answer = lake.answer("refresh", {"views": ["q20"], "until": ["bid=7"], "run": "r1"}).json()
    assert (answer["exit_code"], answer["messages"], answer["view"], answer["result"]["run"]) == (0, ["a message"], "q20", "r1")
    asked = answer["result"]["asked"]
    assert (asked["views"], asked["until"], asked["all_views"], asked["as_json"]) == ("['q20']", "['bid=7']", "False", "True")


def test_every_verb_of_the_public_contract_is_there() -> None:
    writes = {"refresh", "rebuild", "backfill", "check", "snooze", "maintain", "apply", "adopt", "drop"}
    assert {verb.name for verb in verbs() if verb.writes} == writes
    assert {verb.name for verb in verbs() if not verb.writes} == {"show", "explain", "verify", "status", "history", "report", "plan"}


def test_a_plan_is_sent_and_no_file_of_the_server_is_named(lake: Lake) -> None:
    schemas = lake.get("/openapi.json").json()["components"]["schemas"]
    own = {"run", "timeout", "abandon_after", "client"}
    assert schemas["PlanRequest"]["properties"].keys() - own == {"full", "sample", "markdown", "as_json"}
    assert schemas["ApplyRequest"]["properties"].keys() - own == {"views", "plan", "as_json"}
    assert {kind["type"] for kind in schemas["ApplyRequest"]["properties"]["plan"]["anyOf"]} == {"object", "null"}
    lake.run = lambda request: request.emit({"out": repr(sorted(request.call.options.items()))}) or 0
    answer = lake.answer("apply", {"views": ["v"], "plan": {"views": []}}).json()
    assert "('plan', {'views': []})" in answer["result"]
    assert (answer["view"], answer["options"]) == ("v", {"views": ["v"], "as_json": True, "plan": "(JSON)"})
    assert "--plan (JSON)" in lake.get("/").text
    assert "('as_json', False)" in lake.answer("plan", {"markdown": True}).json()["result"]
    assert "'out'" not in lake.answer("command", {"words": ["plan", "--full"]}).json()["result"]


def test_a_token_for_reading_plans_and_does_not_apply(lake: Lake) -> None:
    lake.guard(Access("a" * 32, "r" * 32, None, frozenset({COMMAND, *(f"/v1/{verb.name}" for verb in verbs() if verb.writes)})))
    found = [lake.answer(verb, {}, authorization=f"Bearer {token * 32}").status_code for token in "ra" for verb in ("plan", "apply")]
    assert found == [200, 403, 200, 200]


@pytest.mark.parametrize(
    ("verb", "body", "what"),
    [
        ("refresh", {"view": "q20"}, "view: Extra inputs"),
        ("refresh", {"views": "q20"}, "views: Input should be a valid list"),
        ("rebuild", {}, "view: Field required"),
        ("show", {"view": "v", "limit": -1}, "limit: Input should be greater than or equal to 0"),
        ("show", {"view": "v", "limit": "many"}, "limit: Input should be a valid integer"),
        ("backfill", {"view": "v", "mode": "sideways"}, "mode: Input should be 'replay', 'catch-up' or 'rebuild'"),
        ("refresh", {"run": "x" * 241}, "run: String should have at most 240"),
    ],
)
def test_options_that_are_not_valid_are_named(lake: Lake, verb: str, body: dict[str, Any], what: str) -> None:
    answer = lake.answer(verb, body)
    assert answer.status_code == 400
    assert what in answer.json()["error"]
    assert lake.queue.requests() == []


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'"x"', b"\xff", b"{" * 10_000])
def test_what_is_no_request_is_refused(lake: Lake, body: bytes) -> None:
    assert lake.ask("POST", "/v1/show", content=body, headers={"content-type": "application/json"}).status_code == 400


@pytest.mark.parametrize("path", ["/v1/nothing", "/v1/../etc/passwd", "/static/../../setup.cfg", "/requests/../../x", "/v1/requests/none"])
def test_what_is_not_there_is_not_found(lake: Lake, path: str) -> None:
    assert lake.get(path).status_code == 404


def test_a_request_can_be_written_as_a_command(lake: Lake) -> None:
    lake.run = prints
    answer = lake.answer("command", {"words": ["refresh", "q20", "--until", "bid=7", "--check"], "run": "r1"}).json()
    assert (answer["verb"], answer["view"], answer["result"]["run"]) == ("refresh", "q20", "r1")
    asked = answer["result"]["asked"]
    assert (asked["views"], asked["until"], asked["check"], asked["as_json"]) == ("['q20']", "['bid=7']", "True", "True")


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["realtime", "--all"], "does not run 'realtime'"),
        (["--config", "/etc/passwd", "refresh"], "does not run '--config'"),
        (["serve"], "does not run 'serve'"),
        (["refresh", "--nothing"], "--nothing"),
        (["rebuild"], "Missing argument"),
        (["backfill", "v", "--mode", "sideways"], "sideways"),
        (["show", "v", "--limit", "many"], "--limit"),
        (["refresh", "--help"], "asks for nothing"),
        (["plan", "--out", "plan.json"], "The server writes no file: leave --out out"),
        (["apply", "--plan", "/etc/passwd"], "the server reads no file"),
        ([], "at least 1 item"),
    ],
)
def test_words_that_are_no_request_are_refused(lake: Lake, words: list[str], what: str) -> None:
    answer = lake.answer("command", {"words": words})
    assert (answer.status_code, what in answer.json()["error"]) == (400, True), answer.json()
    assert lake.queue.requests() == []


def test_events_come_as_lines_the_last_with_the_exit_code(lake: Lake) -> None:
    lake.run = prints
    answer = lake.answer("show", {"view": "v"}, accept="application/x-ndjson", lakejoin_request="mine")
    events = [json.loads(line) for line in answer.text.splitlines()]
    assert events[:2] == [{"state": "waiting"}, {"state": "running"}]
    assert events[-1] == {"exit_code": 0}
    assert answer.headers["lakejoin-request"] == "mine"
    again = lake.get("/v1/requests/mine/events")
    assert again.text == answer.text
    assert lake.answer("show", {"view": "v"}, lakejoin_request="mine").json()["id"] == "mine"
    assert len(lake.queue.requests()) == 1


def test_a_request_can_be_asked_for_later_and_cancelled(lake: Lake) -> None:
    lake.run = lake.waits
    taken = lake.answer("refresh", {"views": ["v"]}, prefer="respond-async")
    assert (taken.status_code, taken.json()["state"]) == (202, "running")
    name = taken.json()["id"]
    assert [request["id"] for request in lake.get("/v1/requests").json()] == [name]
    (request,) = lake.queue.requests()
    before = request._left
    assert lake.get(f"/v1/requests/{name}").json()["state"] == "running"
    assert request._left > before  # it has been asked for
    assert lake.ask("DELETE", f"/v1/requests/{name}").status_code == 200
    assert lake.answer("refresh", {"views": ["v"]}, lakejoin_request=name).json()["exit_code"] == 130
    assert lake.ask("DELETE", "/v1/requests/none").status_code == 404


def test_too_many_requests_are_refused_and_an_ending_server_takes_none(lake: Lake) -> None:
    lake.run = lake.waits
    for view in "ab":
        lake.answer("refresh", {"views": [view]}, prefer="respond-async")
    refused = lake.answer("refresh", {"views": ["c"]})
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "5")
    assert "--queue" in refused.json()["error"]
    lake.go_on.set()
    lake.queue.drain(10)
    assert lake.answer("refresh", {"views": ["d"]}).status_code == 503
    assert lake.get("/readyz").status_code == 503
    assert lake.get("/healthz").status_code == 200


def test_a_client_of_another_environment_is_told(lake: Lake) -> None:
    def refuse(environment: Any) -> None:
        raise OtherSettingsError(f"other values of {', '.join(environment)}")

    lake.refuse = refuse
    assert lake.answer("show", {"view": "v", "client": {"environment": {"A": "1"}}}).status_code == 409
    assert lake.answer("show", {"view": "v"}).status_code == 200


def test_a_text_that_is_no_unicode_breaks_no_answer(lake: Lake) -> None:
    def says(request: Request) -> int:
        request.emit({"err": f"no view {request.call.options['view']}\n"})
        return 2

    lake.run = says
    body = {"content": b'{"view": "\\ud800"}', "headers": {"content-type": "application/json", "lakejoin-request": "odd"}}
    assert lake.ask("POST", "/v1/show", **body).json()["messages"] == ["no view \ud800"]
    for path in ("/", "/requests/odd", "/v1/requests", "/v1/requests/odd", "/v1/requests/odd/events"):
        assert lake.get(path).status_code == 200


def test_numbers_that_json_does_not_have_are_text(lake: Lake) -> None:
    lake.run = lambda request: request.emit({"out": "[NaN, -Infinity, 1.5]"}) or 0
    assert lake.answer("check", {"view": "v"}).json()["result"] == ["NaN", "-Infinity", 1.5]


def test_a_token_for_reading_stores_no_result_of_a_run(lake: Lake) -> None:
    tokens = Access("a" * 32, "r" * 32, None, frozenset())
    lake.guard(tokens)
    asked = [("a", None), ("a", "r1"), ("r", None), ("r", "r1")]
    found = [lake.answer("verify", {"view": "v", "run": run}, authorization=f"Bearer {token * 32}").status_code for token, run in asked]
    assert found == [200, 200, 200, 403]
    assert lake.answer("command", {"words": ["verify", "v"], "run": "r1"}, authorization="Bearer " + "r" * 32).status_code == 403


def test_a_wrong_name_for_a_request_is_refused(lake: Lake) -> None:
    lake.answer("show", {"view": "v"}, lakejoin_request="used")
    other = lake.answer("show", {"view": "other"}, lakejoin_request="used")
    assert (other.status_code, "used is the name of another request" in other.json()["error"]) == (409, True)
    assert lake.answer("show", {"view": "v"}, lakejoin_request="a/b").status_code == 400
    assert lake.answer("show", {"view": "v"}, lakejoin_request="x" * 65).status_code == 400


def test_pages_show_what_happened_and_load_nothing_from_elsewhere(lake: Lake) -> None:
    def fails(request: Request) -> int:
        request.refreshes.append({"view": "q20", "mode": "incremental", "rows_inserted": 1234, "rows_deleted": 5, "seconds": 1.25})
        request.emit({"err": "lakejoin: <b>broken</b>\n"})
        return 2

    lake.run = fails
    name = lake.answer("refresh", {"views": ["q20"], "until": ["<i>"]}).json()["id"]
    pages = [lake.get(path).text for path in ("/", f"/requests/{name}", "/docs")]
    assert "incremental" in pages[0]
    assert "+1,234 -5" in pages[0]
    assert "&lt;script&gt;" in pages[0]
    assert "lakejoin: &lt;b&gt;broken" in pages[1]
    assert "POST /v1/refresh" in pages[2]
    for page in pages:
        assert "<script" not in page
        assert "<i>" not in page
        assert not re.search(r"(src|href)=.?(https?:)?//", page)


def test_the_overview_needs_neither_a_valid_configuration_nor_lags(lake: Lake) -> None:
    def broken() -> Any:
        raise SourceError("the lake is gone")

    page = Page(lake.queue, broken, Lags(broken, lambda: True), "lakejoin.yml")
    assert "no valid view" in page.overview()


def test_the_openapi_document_says_what_each_option_means(lake: Lake) -> None:
    found = lake.get("/openapi.json").json()
    fields = found["components"]["schemas"]["RefreshRequest"]["properties"]
    assert "bring" in found["paths"]["/v1/refresh"]["post"]["summary"].lower()
    assert all(said.get("description") for said in fields.values())
    assert found["components"]["schemas"]["BackfillRequest"]["required"] == ["view"]


def test_metrics_count_requests_refreshes_and_failures_and_know_the_lags(lake: Lake) -> None:
    def fails(request: Request) -> int:
        request.refreshes.append({"view": "q20", "mode": "incremental", "rows_inserted": 1234, "rows_deleted": 5, "seconds": 1.25})
        request.error = "SourceError"
        return 2

    metrics = ServerMetrics(lambda: 77)
    lake.queue.on_end, lake.run = metrics.count, fails
    row = SourceStatus("q20", "bid", 3, 5, 2, 60.0, "data files")
    lags = Lags(lambda: [row], lambda: True)
    metrics.watch(lake.queue, lags)
    lake.answer("refresh", {"views": ["q20"]})
    until(lags.last, within=10, every=0.01)
    lines = metrics.text().decode().splitlines()
    for line in (
        'lakejoin_refreshes_total{mode="incremental",view="q20"} 1.0',
        'lakejoin_rows_inserted_total{view="q20"} 1234.0',
        'lakejoin_refresh_seconds_sum{view="q20"} 1.25',
        'lakejoin_requests_total{exit_code="2",verb="refresh"} 1.0',
        'lakejoin_failures_total{error="SourceError",verb="refresh"} 1.0',
        'lakejoin_lag_versions{source="bid",view="q20"} 2.0',
        'lakejoin_changes_expire_seconds{source="bid",view="q20"} 60.0',
        "lakejoin_heap_bytes 77.0",
        "lakejoin_requests_waiting 0.0",
    ):
        assert line in lines


def test_lags_that_are_read_slowly_are_read_once_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lake.server.lags._SECONDS", 0)
    go_on, reads = threading.Event(), list[int]()

    def read() -> list[SourceStatus]:
        reads.append(1)
        assert go_on.wait(10)
        return []

    lags = Lags(read, lambda: True)
    for _ in range(3):
        lags.last()
    go_on.set()
    lags._thread.shutdown()
    assert len(reads) == 1


def test_dashboard_and_alerts_use_metrics_that_exist() -> None:
    """`up` is Prometheus' own."""
    folder = Path(__file__).parent.parent.parent / "docs" / "monitoring"
    dashboard, alerts = json.loads((folder / "grafana.json").read_text()), yaml.safe_load((folder / "alerts.yml").read_text())
    metrics = ServerMetrics(lambda: 0)
    metrics.watch(Lake().queue, Lags(list, lambda: False))
    there = set(re.findall(r"^# TYPE (\w+)", metrics.text().decode(), re.MULTILINE)) | {"up"}
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked += [rule["expr"] for group in alerts["groups"] for rule in group["rules"]]
    used = {name for text in asked for name in re.findall(r"\b(?:lakejoin_\w+|up)\b", text)}
    assert len(used) > 8
    assert {name for name in used if name not in there and name.removesuffix("_bucket") not in there} == set()
