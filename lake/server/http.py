"""The server's HTTP interface: POST /v1/VERB takes a verb's options as JSON; its answer is one JSON object, or a line for each event.

A request that was carried out is answered with status 200 and the command's exit code, whatever that is. Other statuses say that it was
not carried out: 400 invalid options, 401 and 403 access, 404 unknown, 409 other settings or the name of another request, 413 too long,
421 wrong host, 429 too many requests, 503 the server starts or ends.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI, Response
from fastapi import Request as Http
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, StreamingResponse

from lake import __version__
from lake.server.access import ONLY_READS
from lake.server.engine import OtherSettingsError
from lake.server.page import Page
from lake.server.queue import DrainingError, OtherRequestError, Queue, QueueFullError
from lake.server.request import Call, Request
from lake.server.verbs import Body, Parse, UsageError, Verb, Words

_ID = re.compile(r"[\w-]{1,64}")
_ALIVE_EVERY = 5.0
_EVENTS = "application/x-ndjson"
_CLIENTS_OWN = ("environment",)
COMMAND = "/v1/command"
_ABOUT = """Runs the verbs of the lakejoin command in a warm Spark session.

Each `POST /v1/VERB` takes the verb's options as JSON. The answer has the exit code of the command, its result (what `--json` prints) and
its messages. `Lakejoin-Request: ID` names a request: the same name again gets the same answer. `Prefer: respond-async` answers immediately,
and `GET /v1/requests/ID` says how far it is. `Accept: application/x-ndjson` asks for a line of JSON for each event, as it happens."""


class _Json(JSONResponse):
    """JSON in ASCII: a text may have half a surrogate pair, which no UTF-8 has. One such text must not make every answer fail."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, separators=(",", ":")).encode()


@dataclass(frozen=True)
class Service:
    """What the interface is made of. `parse`: reads the words of a command; `about`: what `GET /v1/server` says; `refuse`: raises
    OtherSettingsError for the environment of a client, if its command would do something else without the server; `metrics`: the text for
    Prometheus."""

    verbs: tuple[Verb, ...]
    parse: Parse
    queue: Queue
    page: Page
    about: Callable[[], dict[str, Any]]
    refuse: Callable[[Mapping[str, str]], None]
    metrics: Callable[[], bytes]


def application(service: Service) -> FastAPI:
    """The application, with a route for each verb."""
    found = FastAPI(title="Lakejoin", version=__version__, description=_ABOUT, docs_url=None, redoc_url=None)
    found.add_exception_handler(RequestValidationError, _invalid)
    for verb in service.verbs:
        _add_verb(found, service, verb)
    _add_words(found, service)
    _add_requests(found, service.queue)
    _add_pages(found, service)
    return found


def _add_verb(app: FastAPI, service: Service, verb: Verb) -> None:
    async def endpoint(http: Http, body: Body) -> Response:
        return await _asked(http, service, verb, verb.options(body), body)

    endpoint.__annotations__["body"] = verb.body
    app.post(f"/v1/{verb.name}", summary=verb.summary, operation_id=verb.name, tags=["writes" if verb.writes else "reads"])(endpoint)


def _add_words(app: FastAPI, service: Service) -> None:
    verbs = {verb.name: verb for verb in service.verbs}

    @app.post(COMMAND, summary="Any of these verbs, written as a command.", tags=["writes"])
    async def command(http: Http, body: Words) -> Response:
        try:
            name, options = service.parse(body.words)
        except UsageError as error:
            return _error(400, str(error))
        return await _asked(http, service, verbs[name], dict(options), body)


async def _asked(http: Http, service: Service, verb: Verb, options: dict[str, Any], body: Body) -> Response:
    """Take a request, and answer it."""
    given, client = http.headers.get("lakejoin-request"), body.client or {}
    if given is not None and not _ID.fullmatch(given):
        return _error(400, "Lakejoin-Request is at most 64 letters, digits, - and _.")
    if body.run is not None and getattr(http.state, ONLY_READS, False):
        return _error(403, "This token may only read, and `run` stores the result of a scheduled run. Leave it out.")
    if verb.prints_json and not client and not options.get("markdown"):
        options["as_json"] = True
    waits = "respond-async" not in http.headers.get("prefer", "")
    told = {name: value for name, value in client.items() if name not in _CLIENTS_OWN}
    call = Call(verb.name, options, verb.writes, body.run, told, waits, body.timeout, body.abandon_after)
    try:
        if isinstance(client.get("environment"), dict):
            await asyncio.to_thread(service.refuse, client["environment"])
        request = service.queue.submit(Request(call, given) if given else Request(call))
    except OtherSettingsError as error:
        return _error(409, str(error))
    except OtherRequestError:
        return _error(409, f"{given} is the name of another request. Give each request a name of its own.")
    except QueueFullError:
        limit = service.queue.limits.waiting
        return _error(429, f"{limit} requests wait, which is the limit (`--queue`). Try again later.", {"Retry-After": "5"})
    except DrainingError:
        return _error(503, "The server is ending. Try again when it has been started again.", {"Retry-After": "10"})
    return await _answer(http, request, given or request.id, waits)


async def _answer(http: Http, request: Request, name: str, waits: bool) -> Response:
    headers = {"Lakejoin-Request": name}
    if not waits:
        return _Json(request.to_json() | {"id": name}, 202, headers)
    if _EVENTS in http.headers.get("accept", ""):
        return StreamingResponse(_lines(request), media_type=_EVENTS, headers=headers)
    events = _events(request)
    async for _ in events:
        if await http.is_disconnected():
            await events.aclose()
            break
    return _Json(answer_of(request) | {"id": name}, headers=headers)


def answer_of(request: Request) -> dict[str, Any]:
    """The whole answer: the request, with the result (None if it has none, or is not JSON) and the messages of its command."""
    text = request.text("out")
    result: Any = None
    if text:
        try:
            result = json.loads(text, parse_constant=str)  # NaN is no JSON
        except ValueError:
            result = text
    return request.to_json() | {"result": result, "messages": [*request.text("err").splitlines(), *filter(None, [request.usage])]}


async def _lines(request: Request) -> AsyncIterator[str]:
    async for event in _events(request):
        yield json.dumps(event) + "\n"


async def _events(request: Request) -> AsyncGenerator[dict[str, Any], None]:
    """The events from the first to the last, and in between {} every few seconds, so that a client that is gone is noticed."""
    loop, changed, position = asyncio.get_running_loop(), asyncio.Event(), 0

    def wake() -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(changed.set)

    with request.read_by(wake):
        while True:
            changed.clear()
            while position < len(request.events):
                event = request.events[position]
                yield event
                position += 1
                if "exit_code" in event:
                    return
            try:
                await asyncio.wait_for(changed.wait(), _ALIVE_EVERY)
            except TimeoutError:
                yield {}


def _add_requests(app: FastAPI, queue: Queue) -> None:
    @app.get("/v1/requests", summary="The requests that run, wait or ended lately.", tags=["requests"])
    async def requests() -> Response:
        return _Json([request.to_json() for request in queue.requests()])

    @app.get("/v1/requests/{name}", summary="One request, with its answer so far.", tags=["requests"])
    async def one(name: str) -> Response:
        request = queue.get(name)
        if request is None:
            return _unknown(name)
        request.asked_for()
        return _Json(answer_of(request) | {"id": name})

    @app.get("/v1/requests/{name}/events", summary="The events of a request, from its start to its end.", tags=["requests"])
    async def events(name: str) -> Response:
        request = queue.get(name)
        return _unknown(name) if request is None else StreamingResponse(_lines(request), media_type=_EVENTS)

    @app.delete("/v1/requests/{name}", summary="Cancel a request: its Spark jobs, and those of no other.", tags=["requests"])
    async def cancel(name: str) -> Response:
        request = queue.get(name)
        if request is None:
            return _unknown(name)
        await asyncio.to_thread(queue.cancel, request, "cancelled", name)
        return _Json(request.to_json() | {"id": name})


def _add_pages(app: FastAPI, service: Service) -> None:
    @app.get("/v1/server", summary="What this server is, and what it does.", tags=["server"])
    async def server() -> Response:
        return _Json(service.about())

    @app.get("/healthz", summary="Whether the process answers.", tags=["server"])
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/readyz", summary="Whether requests are carried out.", tags=["server"])
    async def ready() -> Response:
        return _Json({"ready": service.queue.ready}, 200 if service.queue.ready else 503)

    @app.get("/metrics", summary="Metrics for Prometheus.", tags=["server"])
    async def metrics() -> Response:
        return Response(await asyncio.to_thread(service.metrics), media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.get("/", include_in_schema=False)
    async def page() -> HTMLResponse:
        return _html(await asyncio.to_thread(service.page.overview))

    @app.get("/requests/{name}", include_in_schema=False)
    async def request_page(name: str) -> Response:
        request = service.queue.get(name)
        return _unknown(name) if request is None else _html(await asyncio.to_thread(service.page.request, request))

    @app.get("/docs", include_in_schema=False)
    async def documentation() -> HTMLResponse:
        return _html(service.page.documentation(app.openapi()))


def _html(page: str) -> HTMLResponse:
    return HTMLResponse(page.encode(errors="replace"))


def _unknown(name: str) -> Response:
    return _error(404, f"There is no request {name!r}. Answers are kept for ten minutes.")


def _error(status: int, text: str, headers: dict[str, str] | None = None) -> Response:
    return _Json({"error": text}, status, headers)


async def _invalid(_: Http, error: Exception) -> Response:
    """An option that is not valid, named as the field of the request."""
    found = error.errors() if isinstance(error, RequestValidationError) else []
    said = [f"{'.'.join(str(part) for part in e['loc'] if part != 'body') or 'the request'}: {e['msg']}" for e in found]
    return _error(400, "; ".join(said) or "The request is not valid.")
