"""The queue of the server: order, bounds, cancellation; requests are functions that wait for the test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial

import pytest

from lake.server import queue as queues
from lake.server.queue import DrainingError, Limits, OtherRequestError, Queue, QueueFullError
from lake.server.request import INTERRUPTED, Call, Request, TooMuchOutputError
from tests import lakes

WAIT = 10.0
until = partial(lakes.until, within=WAIT, every=0.005)


class Work:
    """What the queue runs: each request waits until the test lets it go on, or it is cancelled. An apply reserves views before."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self.reserved: dict[str, bool] = {}
        self.at_once = 0
        self.cancelled: list[str] = []
        self._gates: dict[str, threading.Event] = {}
        self._lock = threading.Lock()

    def gate(self, name: str) -> threading.Event:
        with self._lock:
            return self._gates.setdefault(name, threading.Event())

    def run(self, request: Request) -> int:
        self.began.append(request.id)
        reserves = request.call.options.get("reserves")
        with request.alone(reserves) if reserves else nullcontext(False) as waited:
            self.reserved[request.id] = waited
            assert self.gate(request.id).wait(WAIT)
        if request.id == "broken":
            raise OSError("no such thing")
        request.emit({"out": f"did {request.id}"})
        return 1 if request.cancelled else 0

    def cancel(self, request: Request) -> None:
        self.cancelled.append(request.id)
        self.gate(request.id).set()


@pytest.fixture
def work() -> Work:
    return Work()


@pytest.fixture
def queue(work: Work) -> Iterator[Queue]:
    found = Queue(work.run, work.cancel, Limits(parallel=2, waiting=3))
    found.open()
    yield found
    found.drain(0)


def refresh(name: str, view: str | None, *, waits: bool = False, **options: object) -> Request:
    return Request(Call("refresh", {"views": [view], "named": name, **options}, True, waits=waits), name)


def show(name: str) -> Request:
    return Request(Call("show", {"view": "v", "named": name}, False, waits=False), name)


def ended(request: Request) -> bool:
    return request.state == "done"


def test_one_view_is_refreshed_by_one_request_at_a_time_and_others_meanwhile(queue: Queue, work: Work) -> None:
    first, second, other = (queue.submit(refresh(n, v)) for n, v in (("1", "a"), ("2", "a"), ("3", "b")))
    until(lambda: sorted(work.began) == ["1", "3"])
    assert second.state == "waiting"
    work.gate("3").set()
    until(lambda: ended(other))
    assert second.state == "waiting"  # a place is free, the view is not
    work.gate("1").set()
    until(lambda: ended(first) and work.began[-1] == "2")
    work.gate("2").set()
    until(lambda: ended(second))


def several(name: str, *views: str, **options: object) -> Request:
    return Request(Call("refresh", {"views": list(views), **options}, True, waits=False), name)


def test_a_refresh_of_several_views_waits_for_each_and_is_not_overtaken(queue: Queue, work: Work) -> None:
    first, both, later = queue.submit(refresh("1", "a")), queue.submit(several("2", "a", "b")), queue.submit(refresh("3", "b"))
    until(lambda: work.began == ["1"])
    assert (both.state, later.state) == ("waiting", "waiting")
    work.gate("1").set()
    until(lambda: work.began == ["1", "2"])
    assert (first.state, later.state) == ("done", "waiting")
    work.gate("2").set()
    work.gate("3").set()
    until(lambda: ended(later))


def test_what_waits_behind_one_that_is_cancelled_starts(queue: Queue, work: Work) -> None:
    _, both, later = queue.submit(refresh("1", "a")), queue.submit(several("2", "a", "b")), queue.submit(refresh("3", "b"))
    assert later.state == "waiting"
    queue.cancel(both, "no longer needed")
    until(lambda: sorted(work.began) == ["1", "3"])


def test_a_refresh_of_all_views_waits_for_none(queue: Queue, work: Work) -> None:
    queue.submit(refresh("1", "a"))
    queue.submit(several("2", all_views=True))
    until(lambda: sorted(work.began) == ["1", "2"])


def apply(name: str, *reserves: str) -> Request:
    return Request(Call("apply", {"reserves": reserves, "named": name}, True, waits=False), name)


def test_an_apply_and_a_refresh_of_a_view_never_run_at_once_and_other_views_are_refreshed_meanwhile(queue: Queue, work: Work) -> None:
    first, applied = queue.submit(refresh("1", "a")), queue.submit(apply("2", "a"))
    until(lambda: applied.doing == "waiting for requests that change a")
    later, other = queue.submit(refresh("3", "a")), queue.submit(refresh("4", "b"))
    assert (later.state, other.state) == ("waiting", "running")
    work.gate("1").set()
    until(lambda: ended(first) and work.reserved.get("2"))  # it was told that it has waited
    work.gate("4").set()
    until(lambda: ended(other))
    assert later.state == "waiting"
    work.gate("2").set()
    work.gate("3").set()
    until(lambda: ended(later))
    assert work.began[-1] == "3"


def test_an_apply_and_requests_for_all_views_wait_for_each_other(queue: Queue, work: Work) -> None:
    queue.submit(several("1", all_views=True))
    applied, later = queue.submit(apply("2", "a")), queue.submit(several("3", all_views=True))
    until(lambda: applied.doing)
    assert later.state == "waiting"
    work.gate("1").set()
    until(lambda: "2" in work.reserved)
    assert later.state == "waiting"
    work.gate("2").set()
    until(lambda: work.began[-1] == "3")


def test_one_apply_runs_at_a_time_and_takes_no_place_of_a_refresh(queue: Queue, work: Work) -> None:
    first, second = queue.submit(apply("1", "a")), queue.submit(apply("2", "b"))
    for name in ("3", "4"):
        queue.submit(refresh(name, name))
    until(lambda: work.reserved.keys() == {"1", "3", "4"})
    assert (work.reserved["1"], second.state) == (False, "waiting")
    work.gate("1").set()
    until(lambda: ended(first) and work.began[-1] == "2")


def test_an_apply_that_is_cancelled_while_it_waits_changes_nothing_and_keeps_nobody(queue: Queue, work: Work) -> None:
    queue.submit(refresh("1", "a"))
    applied = queue.submit(apply("2", "a", "b"))
    until(lambda: applied.doing)
    later = queue.submit(refresh("3", "b"))
    assert later.state == "waiting"
    queue.cancel(applied, "no longer needed")
    until(lambda: ended(applied) and later.state == "running")
    assert (applied.exit_code, "2" in work.reserved) == (INTERRUPTED, False)


def test_reading_waits_for_no_refresh(queue: Queue, work: Work) -> None:
    for n in ("1", "2"):
        queue.submit(refresh(n, n))
    read = queue.submit(show("r"))
    work.gate("r").set()
    until(lambda: ended(read))
    assert queue.running == 2


def test_an_equal_request_joins_one_that_waits_but_not_one_that_has_begun(queue: Queue, work: Work) -> None:
    call = Call("refresh", {"views": ["a"]}, True, waits=False)
    first, second, third = (queue.submit(Request(call, n)) for n in "123")
    assert (first.id, second.id, third.id) == ("1", "2", "2")
    assert queue.get("3") is second
    for _ in range(2):  # again, because its answer was lost
        queue.cancel(third, "one of two", caller="3")
        assert second.state == "waiting"
    queue.submit(Request(call, "3"))
    queue.cancel(second, "one of two", caller="2")
    assert second.state == "waiting"
    queue.cancel(second, "both", caller="3")
    assert (second.state, second.exit_code) == ("done", INTERRUPTED)
    work.gate("1").set()
    until(lambda: ended(first))
    assert work.began == ["1"]


def test_a_request_is_joined_by_none_that_ends_for_other_reasons(queue: Queue, work: Work) -> None:
    """A client that waits ends its request by going away; a time limit is of the one that has it."""
    queue.submit(refresh("1", "a"))
    calls = [
        Call("refresh", {"views": ["a"]}, True, waits=waits, seconds=limit) for waits, limit in ((True, None), (False, None), (True, 9))
    ]
    assert [queue.submit(Request(call, name)).id for call, name in zip(calls, "234", strict=True)] == ["2", "3", "4"]


def test_one_that_is_asked_for_again_without_waiting_needs_no_reader(queue: Queue, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "_ABANDONED_AFTER", 0.2)
    request, other = queue.submit(refresh("1", "a", waits=True)), queue.submit(refresh("2", "b", waits=True))
    queue.submit(refresh("1", "a"))
    until(lambda: ended(other))
    assert (request.abandoned(0.0), request.state) == (False, "running")


def test_one_that_nobody_asks_for_any_more_is_cancelled_if_its_call_says_so(queue: Queue, work: Work) -> None:
    calls = [Call("refresh", {"views": [view]}, True, waits=False, abandon_after=limit) for view, limit in (("a", 0.5), ("b", None))]
    request, other = (queue.submit(Request(call)) for call in calls)
    until(lambda: ended(request))
    assert (request.cancelled, request.exit_code) == ("its client is gone", INTERRUPTED)
    assert other.state == "running"


def test_one_that_is_asked_for_is_not_abandoned() -> None:
    request = Request(Call("refresh", {"views": ["a"]}, True, waits=False, abandon_after=60.0))
    request._left -= 61
    assert request.abandoned(0.0)
    request.asked_for()
    assert not request.abandoned(0.0)


def test_a_name_is_of_one_request(queue: Queue, work: Work) -> None:
    first = queue.submit(refresh("1", "a"))
    with pytest.raises(OtherRequestError):
        queue.submit(refresh("1", "b"))
    assert queue.submit(refresh("1", "a", waits=True)) is first


def test_a_name_that_comes_again_later_has_other_spark_jobs() -> None:
    """Spark cancels all later jobs of a group that was cancelled."""
    assert refresh("1", "a").jobs != refresh("1", "a").jobs


def test_the_same_name_gets_the_same_answer(queue: Queue, work: Work) -> None:
    work.gate("1").set()
    first = queue.submit(refresh("1", "a"))
    until(lambda: ended(first))
    assert queue.submit(refresh("1", "a")) is first
    assert work.began == ["1"]


def test_a_full_queue_refuses(queue: Queue, work: Work) -> None:
    for n in range(5):  # two run, three wait
        queue.submit(refresh(str(n), str(n)))
    with pytest.raises(QueueFullError):
        queue.submit(refresh("5", "5"))
    assert queue.get("5") is None
    work.gate("0").set()
    until(lambda: queue.waiting == 2)
    queue.submit(refresh("5", "5"))


def test_cancelling_one_that_runs_cancels_its_jobs_and_no_others(queue: Queue, work: Work) -> None:
    first, other = queue.submit(refresh("1", "a")), queue.submit(refresh("2", "b"))
    until(lambda: len(work.began) == 2)
    queue.cancel(first, "Ctrl-C")
    until(lambda: ended(first))
    assert (first.exit_code, work.cancelled, other.state) == (INTERRUPTED, ["1"], "running")
    assert "interrupted (Ctrl-C)" in first.text("err")


def test_one_that_succeeded_although_it_was_cancelled_says_so(queue: Queue, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "run", None)
    queue.run = lambda request: 0 if work.gate("1").wait(WAIT) else 1
    request = queue.submit(refresh("1", "a"))
    until(lambda: request.state == "running")
    queue.cancel(request, "late")
    until(lambda: ended(request))
    assert request.exit_code == 0


def test_what_fails_unexpectedly_ends_and_frees_its_view(queue: Queue, work: Work) -> None:
    work.gate("broken").set()
    work.gate("2").set()
    broken, second = queue.submit(refresh("broken", "a")), queue.submit(refresh("2", "a"))
    until(lambda: ended(broken) and ended(second))
    assert (broken.exit_code, second.exit_code) == (1, 0)
    assert "OSError: no such thing" in broken.text("err")


def test_one_that_runs_too_long_is_cancelled(work: Work) -> None:
    queue = Queue(work.run, work.cancel, Limits(parallel=1, waiting=3, seconds=0.05))
    queue.open()
    request = queue.submit(refresh("1", "a"))
    until(lambda: ended(request))
    assert request.exit_code == INTERRUPTED
    assert "it ran for more than 0.05 s" in request.text("err")


def test_a_request_can_have_a_time_limit_of_its_own(queue: Queue, work: Work) -> None:
    limited = queue.submit(Request(Call("refresh", {"views": ["a"]}, True, waits=False, seconds=0.05), "1"))
    other = queue.submit(refresh("2", "b"))
    until(lambda: ended(limited))
    assert (limited.exit_code, other.state) == (INTERRUPTED, "running")


def test_one_that_nobody_reads_any_more_is_cancelled(queue: Queue, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "_ABANDONED_AFTER", 0.2)
    request, read = queue.submit(refresh("1", "a", waits=True)), queue.submit(refresh("2", "b", waits=True))
    with read.read_by(lambda: None):
        until(lambda: ended(request))
        assert request.exit_code == INTERRUPTED
        assert read.state == "running"
    until(lambda: ended(read))
    assert work.cancelled == ["1", "2"]


def test_draining_takes_nothing_new_and_finishes_what_there_is(work: Work) -> None:
    queue = Queue(work.run, work.cancel, Limits(parallel=1, waiting=3))
    queue.open()
    first, second = queue.submit(refresh("1", "a")), queue.submit(refresh("2", "a"))
    draining = threading.Thread(target=queue.drain, args=(WAIT,))
    draining.start()
    until(lambda: not queue.ready)
    with pytest.raises(DrainingError):
        queue.submit(refresh("3", "c"))
    work.gate("1").set()
    work.gate("2").set()
    draining.join(WAIT)
    assert not draining.is_alive()
    assert (first.exit_code, second.exit_code, work.cancelled) == (0, 0, [])


def test_a_second_drain_ends_the_wait_of_the_first(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for a request that can't be cancelled."""
    monkeypatch.setattr(queues, "_ABANDONED_AFTER", 0.05)
    queue = Queue(work.run, lambda _: None, Limits(parallel=1, waiting=3))
    queue.open()
    request = queue.submit(refresh("1", "a"))
    first = threading.Thread(target=queue.drain, args=(WAIT,), daemon=True)
    first.start()
    until(lambda: not queue.ready)
    queue.drain(0)
    first.join(WAIT / 2)
    assert (first.is_alive(), request.state) == (False, "running")
    work.gate("1").set()


def test_errors_in_cancelling_and_counting_stop_neither_time_outs_nor_what_waits(work: Work) -> None:
    def broken(request: Request) -> None:
        raise AttributeError("the JVM is gone")

    queue = Queue(work.run, broken, Limits(parallel=2, waiting=3, seconds=0.01), broken)
    queue.open()
    requests = [queue.submit(refresh(n, "a")) for n in "12"] + [queue.submit(refresh("3", "b"))]
    until(lambda: bool(requests[0].cancelled and requests[2].cancelled))
    work.gate("1").set()
    until(lambda: bool(requests[1].cancelled))
    for n in "23":
        work.gate(n).set()
    queue.drain(WAIT)
    assert [request.exit_code for request in requests] == [INTERRUPTED] * 3


def test_draining_cancels_what_takes_too_long(work: Work) -> None:
    queue = Queue(work.run, work.cancel, Limits(parallel=1, waiting=3))
    queue.open()
    first, second = queue.submit(refresh("1", "a")), queue.submit(refresh("2", "a"))
    until(lambda: first.state == "running")
    queue.drain(0.01)
    assert (first.exit_code, second.exit_code) == (INTERRUPTED, INTERRUPTED)
    assert work.began == ["1"]


def test_draining_starts_nothing_that_waited_behind_what_it_cancels(queue: Queue, work: Work) -> None:
    for request in (refresh("1", "a"), several("2", "a", "b"), refresh("3", "b")):
        queue.submit(request)
    until(lambda: work.began == ["1"])
    queue.drain(0)
    assert (work.began, queue.running, queue.waiting) == (["1"], 0, 0)


def test_before_it_is_open_requests_wait(work: Work) -> None:
    queue = Queue(work.run, work.cancel, Limits(parallel=1, waiting=3))
    work.gate("1").set()
    request = queue.submit(refresh("1", "a"))
    assert (request.state, queue.ready, queue.idle_for()) == ("waiting", False, 0.0)
    queue.open()
    until(lambda: ended(request))
    assert queue.ready


def test_old_answers_are_forgotten(queue: Queue, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "_REMEMBERED", 2)
    for n in range(4):
        work.gate(str(n)).set()
        request = queue.submit(refresh(str(n), "a"))
        until(lambda found=request: ended(found))  # type: ignore[misc]
    assert [request.id for request in queue.requests()] == ["3", "2"]


def test_the_answer_of_a_long_request_outlives_later_ones_that_ended_before(
    queue: Queue, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "_REMEMBERED", 2)
    long = queue.submit(refresh("long", "a"))
    for n in range(3):
        work.gate(str(n)).set()
        request = queue.submit(refresh(str(n), "b"))
        until(lambda found=request: ended(found))  # type: ignore[misc]
    work.gate("long").set()
    until(lambda: ended(long))
    assert queue.get("long") is long


def test_an_answer_that_is_too_long_is_refused_and_its_error_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lake.server.request._MOST_TEXT", 10)
    request = show("1")
    request.emit({"out": "12345"})
    with pytest.raises(TooMuchOutputError, match="--limit"):
        request.emit({"out": "678901"})
    request.emit({"err": "longer than ten"})
    request.end(2)
    assert request.events[-1] == {"exit_code": 2}
