"""Checks from end to end: what is wrong is found, kept, shown and told of once; what could not run is told apart from what failed."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import great_expectations as gx
import great_expectations.expectations as gxe
import pytest

from lake import Lakehouse
from lake.core.redaction import Samples
from lake.errors import BlockedError, ConfigError, ViewsFailedError
from lake.quality import check
from lake.quality.checks import Checked
from lake.quality.decisions import snooze_finding
from lake.quality.findings import findings
from lake.quality.measurements import PER_FINDING, Measurement, row_of
from lake.quality.notices import _notices
from lake.quality.results import QualityResults
from tests.lakes import TestLake, multiset

SECRET = "planted-secret"


@pytest.fixture
def orders(lake: TestLake) -> TestLake:
    """A view with a key over two tables, one of which has a sensitive column."""
    lake.table("o", f"SELECT * FROM VALUES (1, 7, 10, '{SECRET}'), (2, 7, 20, NULL), (3, NULL, 30, 'x') AS t(id, c, x, mail)", key=["id"])
    lake.table("c", "SELECT * FROM VALUES (7, 'seven'), (8, 'eight') AS t(id, name)", key=["id"])
    lake.view("v", "SELECT o.id, o.x, o.mail, c.name FROM o LEFT JOIN c ON o.c = c.id")
    return lake


def states(found: Checked) -> dict[str, str]:
    return {f"{m.scope}: {m.subject}": m.status for m in found.measures}


def test_a_sound_view_passes_all_and_what_came_of_it_can_be_queried(orders: TestLake) -> None:
    orders.refresh("v")
    found = check(orders.open, "v")
    assert set(states(found).values()) == {"passed"}
    assert {"v: rows that differ from the query", "o: key unique", "c: key not NULL", "v: changes of o readable for"} <= set(states(found))
    assert (found.exit_code, found.open, found.reported) == (0, (), ())
    kept = QualityResults(orders.open).frame()
    assert kept is not None
    assert kept.where(f"status = 'passed' AND run = '{found.run}'").count() == len(found.measures)
    docs = Path(found.pages)
    assert "✓ met" in docs.read_text()
    assert "://" not in (docs.parent / "v.html").read_text()


def test_a_finding_opens_goes_on_is_put_off_and_is_resolved_and_is_told_once_each(orders: TestLake, webhook: list[Any]) -> None:
    orders.refresh("v")
    lake = orders.open
    with orders.as_if_published("v"):
        orders.sql("UPDATE {v} SET x = 98 WHERE id = 1", "DELETE FROM {v} WHERE id = 2")
    first = check(lake, "v")
    assert first.exit_code == 1
    (finding,) = first.open
    assert (finding.check, finding.rows, finding.state, finding.severity) == ("exactness", 3, "opened", "critical")
    assert [event for event, _ in first.reported] == ["opened"]
    again = check(lake, "v")
    assert [(f.id, f.state) for f in again.open] == [(finding.id, "ongoing")]
    assert again.reported == ()
    assert again.open[0].first_seen == finding.first_seen
    snooze_finding(lake, finding.id, datetime.now(UTC) + timedelta(hours=1), "being mended")
    later = check(lake, "v")
    assert later.exit_code == 0
    assert "being mended" in later.open[0].reason
    lake.rebuild("v")
    ended = check(lake, "v")
    assert ended.open == ()
    assert [event for event, _ in ended.reported] == ["resolved"]
    assert [body["event"] for body in webhook] == ["opened", "resolved"]
    assert "lakejoin rebuild v" in webhook[0]["text"]


def test_a_broken_key_is_one_finding_of_the_table_with_the_views_that_depend_on_it(orders: TestLake) -> None:
    orders.view("w", "SELECT name, count(*) AS n FROM v GROUP BY name")
    orders.refresh("v")
    orders.refresh("w")
    orders.sql("INSERT INTO {o} VALUES (2, 8, 5, NULL), (2, 8, 6, NULL), (NULL, 8, 1, NULL)")
    found = check(orders.open, "w")
    opened = {f.subject: f for _, f in found.reported}
    assert (opened["key unique"].rows, opened["key not NULL"].rows) == (2, 1)
    assert opened["key unique"].dependents == ("v", "w")


def test_a_check_that_cannot_run_is_told_apart_from_one_that_failed(orders: TestLake) -> None:
    orders.view(
        "v", orders.views["v"]["query"], expectations=[{"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "gone"}}]
    )
    unbuilt = check(orders.open, "v")
    assert states(unbuilt)["v: exactness"] == "broken"
    assert unbuilt.exit_code == 3
    orders.refresh("v")
    found = check(orders.open, "v")
    broken = {m.subject: m.broken for m in found.measures if m.status == "broken"}
    assert list(broken) == ["expect_column_values_to_not_be_null(column='gone')"]
    assert "! could not run" in Path(found.pages).read_text()
    assert found.open == ()
    assert found.exit_code == 3


def test_shares_of_the_keys_take_turns_until_all_were_compared(orders: TestLake) -> None:
    orders.view("v", orders.views["v"]["query"], quality={"share": "1/3"})
    orders.refresh("v")
    with orders.as_if_published("v"):
        orders.sql("UPDATE {v} SET x = 98 WHERE id = 1")
    found = _exactness(orders, 5)
    wrong = next(m for m in found if m.rows)
    assert (wrong.rows, wrong.part) == (2, found[-1].part)  # it is compared again until it is mended
    orders.open.rebuild("v")
    ended = check(orders.open, "v")
    assert [event for event, _ in ended.reported] == ["resolved"]
    found = _exactness(orders, 3)
    assert sorted(m.part for m in found) == ["1/3", "2/3", "3/3"]
    assert [m.rows for m in found] == [0, 0, 0]
    assert sum(int(m.detail.split(" of ")[1].split()[0]) for m in found) == 3


def _exactness(lake: TestLake, times: int) -> list[Measurement]:
    return [next(m for m in check(lake.open, "v").measures if m.check == "exactness") for _ in range(times)]


def test_what_cannot_be_decided_any_more_ends_no_finding(orders: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    orders.view("v", orders.views["v"]["query"], realtime=True)
    orders.refresh("v")
    orders.open.on("eventual").refresh("v")
    with orders.as_if_published("v", "eventual"):
        orders.spark.sql(f"UPDATE delta.`{orders.path('views')}/v__realtime` SET x = 98 WHERE id = 1")
    (first,) = check(orders.open, "v").open
    assert (first.check, first.subject, first.rows) == ("agreement", "wrong_value", 1)
    decided = Lakehouse.agreement
    monkeypatch.setattr(Lakehouse, "agreement", lambda *about: replace(decided(*about), classes=(), reason="a file is gone"))
    again = check(orders.open, "v")
    assert [(f.id, f.state) for f in again.open] == [(first.id, "opened")]
    assert {m.status for m in again.measures if m.check == "agreement" and m.subject != "undecidable"} == {"undecidable"}


def test_what_is_not_checked_any_more_is_over(orders: TestLake) -> None:
    query = orders.views["v"]["query"]
    orders.view("v", query, expectations=[{"type": "expect_column_max_to_be_between", "kwargs": {"column": "x", "max_value": 3}}])
    orders.refresh("v")
    (opened,) = check(orders.open, "v").open
    orders.view("v", query, expectations=[{"type": "expect_column_max_to_be_between", "kwargs": {"column": "x", "max_value": 99}}])
    ended = check(orders.open, "v")
    assert ([(event, f.id) for event, f in ended.reported], ended.open) == ([("resolved", opened.id)], ())


def test_a_failed_blocking_expectation_leaves_the_view_and_says_which_rows(orders: TestLake, webhook: list[Any]) -> None:
    asked = [{"type": "expect_column_values_to_be_between", "kwargs": {"column": "x", "min_value": 0}, "on_failure": "block"}]
    orders.view("v", orders.views["v"]["query"], expectations=asked, sensitive=["mail"])
    orders.refresh("v")
    before = multiset(orders.open.read("v"))
    orders.sql("INSERT INTO {o} VALUES (4, 7, -1, NULL), (5, 8, 50, NULL)")
    with pytest.raises(BlockedError, match=r"among the rows that change: 1 rows do not meet it, such as \{'id': 4\}") as caught:
        orders.refresh("v")
    assert multiset(orders.open.read("v")) == before
    finding = str(caught.value).split("--accept ")[1].split('"')[0]
    found = check(orders.open, "v")
    assert ([f.id for f in found.open], found.reported) == ([finding], ())  # the published rows are as they should be, and old
    assert found.open[0].snapshot
    assert orders.refresh("v", accept=[finding]).rows_inserted == 2
    orders.assert_exact("v")
    frame = QualityResults(orders.open).frame()
    assert frame is not None
    assert [r.kind for r in frame.where(f"finding = '{finding}'").orderBy("time").collect()].count("accept") == 1
    assert [(event, f.id) for event, f in check(orders.open, "v").reported if f.check == "publishing"] == [("resolved", finding)]
    assert [body["event"] for body in webhook if body["finding"]["id"] == finding] == ["opened", "resolved"]


@pytest.mark.slow
def test_views_that_are_refreshed_beside_each_other_are_blocked_each_by_its_own_rows(orders: TestLake) -> None:
    names = [f"v{least}" for least in (0, 5, 10, 15)]
    for name in names:
        kwargs = {"column": "x", "min_value": int(name[1:])}
        asked = [{"type": "expect_column_values_to_be_between", "kwargs": kwargs, "on_failure": "block"}]
        orders.view(name, f"SELECT id, x, '{name}' AS of_view FROM o", expectations=asked)
    with pytest.raises(ViewsFailedError) as caught:
        orders.open.refresh_all(parallel=4)
    assert [*caught.value.failed] == ["v15"]
    assert orders.open.stamp("v15") is None
    orders.sql("INSERT INTO {o} VALUES (4, 7, 7, NULL)")
    with pytest.raises(ViewsFailedError) as caught:
        orders.open.refresh_all(parallel=4)
    assert {view: "id': 4" in str(error) for view, error in caught.value.failed.items()} == {"v10": True, "v15": True}
    assert multiset(orders.open.read("v5")) == orders.truth("v5")
    assert len({row.finding for row in QualityResults(orders.open).recent()}) == 2


def test_what_the_webhook_could_not_be_told_it_is_told_later(orders: TestLake, webhook: list[Any]) -> None:
    orders.refresh("v")
    orders.sql("INSERT INTO {o} VALUES (2, 8, 5, NULL)")
    there, orders.others = orders.others, {"quality": {"webhook": "http://127.0.0.1:9"}}
    orders._open = None
    (finding,) = check(orders.open, "v").open
    check(orders.open, "v")
    assert webhook == []
    orders.others, orders._open = there, None
    check(orders.open, "v")
    check(orders.open, "v")
    assert [(body["event"], body["finding"]["id"]) for body in webhook] == [("opened", finding.id)]
    frame = QualityResults(orders.open).frame()
    assert frame is not None
    assert [r.kind for r in frame.where("kind <> 'result'").orderBy("time").collect()] == ["untold", "told"]


def test_results_of_an_older_lakejoin_are_read(orders: TestLake) -> None:
    """They lack a column."""
    orders.refresh("v")
    with orders.as_if_published("v"):
        orders.sql("DELETE FROM {v} WHERE id = 2")
    (first,) = check(orders.open, "v").open
    results = QualityResults(orders.open)
    frame = results.frame()
    assert frame is not None
    old = orders.spark.createDataFrame(frame.drop("first_seen").collect(), frame.drop("first_seen").schema)
    old.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(results.path)
    (second,) = check(orders.open, "v").open
    assert (second.id, second.state, second.first_seen) == (first.id, "ongoing", first.first_seen)
    assert [r.first_seen for r in results.recent() if r.status == "failed"] == [None, first.first_seen]


def test_of_each_finding_only_the_newest_results_are_read(orders: TestLake) -> None:
    """However often checks run, the driver reads a stated number of rows; what they say of the finding is the same."""
    results, start = QualityResults(orders.open), datetime.now(UTC) - timedelta(hours=9)
    wrong = Measurement("v", "exactness", "rows", 1.0, "rows", most=0, samples=({"id": 1},))
    rows = [row_of(wrong, f"run{i}", start + timedelta(minutes=i), "me") for i in range(40)]
    rows = [rows[0], *(replace(row, first_seen=rows[0].time) for row in rows[1:])]
    broken = [row_of(replace(wrong, broken="why"), f"late{i}", start + timedelta(minutes=60 + i), "me") for i in range(40)]
    ended = replace(rows[0], kind="snooze", time=start - timedelta(hours=1), until=start + timedelta(days=9), status="")
    results.add([ended, *rows, *broken])
    read = results.recent()
    assert [row.run for row in read if row.status == "failed"] == [f"run{i}" for i in range(40 - PER_FINDING, 40)]
    assert [row.run for row in read if row.samples] == ["run39", "late39"]
    assert len([row for row in read if row.status == "broken"]) == PER_FINDING
    (finding,) = findings(read).values()
    assert (finding.state, finding.first_seen, finding.snoozed) == ("ongoing", rows[0].time, None)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://bot:planted-secret@127.0.0.1:9/planted-secret?key=planted-secret", "http://127.0.0.1"),
        ("nonsense:planted-secret", "the configured URL"),
        ("http://127.0.0.1:9/a b planted-secret", "http://127.0.0.1"),
        ("http://[planted-secret/", "the configured URL"),
    ],
)
def test_the_url_of_the_webhook_is_not_logged(url: str, host: str, caplog: pytest.LogCaptureFixture) -> None:
    row = row_of(Measurement("v", "exactness", "rows", 1.0, "rows", most=0), "run", datetime.now(UTC), "me")
    known = findings([row])
    told = [("opened", finding) for finding in known.values()]
    (notice,) = _notices(url, [row], told, known, row.time)  # type: ignore[arg-type]
    assert notice.kind == "untold"
    assert f"the webhook at {host} was not notified" in caplog.text
    assert SECRET not in caplog.text + str(notice)


def test_a_suite_of_great_expectations_in_a_file_blocks_and_warns(orders: TestLake, tmp_path: Path) -> None:
    suite = gx.ExpectationSuite(
        name="mine",
        expectations=[
            gxe.ExpectColumnValuesToBeBetween(column="x", min_value=0, meta={"on_failure": "block"}),
            gxe.ExpectColumnValuesToNotBeNull(column="name"),
        ],
    )
    (tmp_path / "mine.json").write_text(json.dumps(suite.to_json_dict()))
    orders.view("v", orders.views["v"]["query"], expectations_file=str(tmp_path / "mine.json"))
    orders.refresh("v")
    found = check(orders.open, "v")
    assert [(f.check, f.severity, f.rows) for f in found.open] == [("expectation", "warning", 1)]
    orders.sql("INSERT INTO {o} VALUES (4, 7, -1, NULL)")
    with pytest.raises(BlockedError, match="1 rows do not meet it") as blocked:
        orders.refresh("v")
    assert [(event["event"], event["severity"]) for event in blocked.value.events] == [("opened", "critical")]


def test_an_aggregate_expectation_is_held_against_the_whole_view(orders: TestLake) -> None:
    asked = [{"type": "expect_table_row_count_to_be_between", "kwargs": {"max_value": 4}, "on_failure": "block"}]
    orders.view("v", orders.views["v"]["query"], expectations=asked)
    orders.refresh("v")
    orders.sql("INSERT INTO {o} VALUES (4, 7, 1, NULL)")
    orders.refresh("v")
    orders.sql("INSERT INTO {o} VALUES (5, 7, 1, NULL)")
    with pytest.raises(BlockedError, match="in the view as it would be"):
        orders.refresh("v")
    orders.sql("DELETE FROM {o} WHERE id = 1")
    orders.refresh("v")
    orders.assert_exact("v")


@pytest.mark.parametrize("how", ["off", "keys", "rows"])
def test_a_planted_secret_is_found_nowhere(orders: TestLake, how: str, caplog: pytest.LogCaptureFixture) -> None:
    asked = [
        {"type": "expect_column_values_to_be_in_set", "kwargs": {"column": "mail", "value_set": ["x"]}},
        {"type": "expect_column_value_lengths_to_equal", "kwargs": {"column": "mail", "value": 1}},
        {"type": "unexpected_rows_expectation", "kwargs": {"unexpected_rows_query": "SELECT * FROM {batch} WHERE mail <> 'x'"}},
        {"type": "unexpected_rows_expectation", "kwargs": {"unexpected_rows_query": "SELECT CAST(mail AS INT) FROM {batch}"}},
        {"type": "expect_column_max_to_be_between", "kwargs": {"column": "x", "max_value": 3}},
    ]
    orders.view("v", orders.views["v"]["query"], expectations=asked)
    orders.tables["o"]["sensitive"] = ["mail"]
    orders.others = {"samples": how}
    opened = orders.open
    opened.refresh("v")
    with orders.as_if_published("v"):
        orders.sql(f"UPDATE {{v}} SET mail = '{SECRET}-2' WHERE id = 3")
    found = check(opened, "v")
    assert found.exit_code == 1
    assert {m.rows for m in found.measures if m.expectation.startswith("expect_column_value")} == {2}
    told = json.dumps(found.to_json(), default=str)
    pages = [f.read_text() for f in Path(found.pages).parent.parent.rglob("*") if f.suffix in (".json", ".html")]
    frame = QualityResults(opened).frame()
    assert frame is not None
    for text in [told, caplog.text, *pages, str(frame.collect())]:
        assert SECRET not in text
    assert ("'id': 1" in str(found.measures)) == (how != "off")


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("[CAST_INVALID_INPUT] The value 'it's a planted-secret' of ... malformed. SQLSTATE: 22018", "[CAST_INVALID_INPUT]"),
        ('[CAST_OVERFLOW] The value 42L of the type "BIGINT" ... SQLSTATE: 22003', "[CAST_OVERFLOW]"),
        ("[USER_RAISED_EXCEPTION] planted-secret SQLSTATE: P0001", "[USER_RAISED_EXCEPTION]"),
        ("[CAST_INVALID_INPUT] The value 'planted-", "[CAST_INVALID_INPUT]"),
        ("[UNRESOLVED_COLUMN] A column `x` ... SQLSTATE: 42703", "A column `x`"),
    ],
)
def test_of_an_error_in_the_data_only_its_name_is_shown(message: str, shown: str) -> None:
    text = Samples("keys").text(message)
    assert shown in text
    assert "planted" not in text
    assert "42L" not in text
    assert Samples("rows").text(message) == message


def test_a_maximum_of_what_is_sensitive_is_not_shown(orders: TestLake) -> None:
    asked = [{"type": "expect_column_max_to_be_between", "kwargs": {"column": name, "max_value": 3}} for name in ("x", "id")]
    orders.view("v", orders.views["v"]["query"], expectations=asked, sensitive=["X"])
    orders.refresh("v")
    found = check(orders.open, "v")
    assert {m.subject.split("'")[1]: m.value for m in found.measures if m.check == "expectation"} == {"x": None, "id": 3}
    assert '"observed_value": 30' not in "".join(f.read_text() for f in Path(found.pages).parent.parent.rglob("*.json"))


def test_what_is_not_known_is_refused(orders: TestLake) -> None:
    orders.view("v", orders.views["v"]["query"], expectations=[{"type": "expect_column_to_be_great"}])
    orders.refresh("v")
    (broken,) = [m.broken for m in check(orders.open, "v").measures if m.status == "broken"]
    assert "no expectation" in broken
    with pytest.raises(ConfigError, match="There is no finding 'F0'"):
        snooze_finding(orders.open, "F0", datetime.now(UTC) + timedelta(hours=1), "")


@pytest.fixture
def webhook(orders: TestLake) -> Iterator[list[Any]]:
    """What a webhook of the lake was sent."""
    got: list[Any] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

    server = HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    orders.others = {"quality": {"webhook": f"http://127.0.0.1:{server.server_port}"}}
    orders._open = None
    yield got
    server.shutdown()
    server.server_close()
