"""The server's pages: views with their state, what runs and waits, one request with what it printed, and the HTTP interface."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from jinja2 import Environment, PackageLoader, select_autoescape

from lake.core.formatting import time_text
from lake.core.results import SourceStatus
from lake.errors import LakeError
from lake.server.lags import Lags
from lake.server.queue import Queue
from lake.server.request import Request, shown
from lake.server.verbs import Body

_SHOWN = 50


@dataclass
class Page:
    """`queue`: its requests are shown; `views`: the names of the configuration's views; `title`: the configuration file."""

    queue: Queue
    views: Callable[[], Sequence[str]]
    lags: Lags
    title: str
    _templates: Environment = field(
        default_factory=lambda: Environment(loader=PackageLoader("lake.server", "."), autoescape=select_autoescape(default=True))
    )

    def overview(self) -> str:
        """The page at /."""
        requests, lags = self.queue.requests(), self.lags.last()
        views = list[str]()
        with suppress(LakeError):
            views = list(self.views())
        rows = [_row(view, requests, lags) for view in views]
        shown = [_shown(request) for request in requests[:_SHOWN]]
        return self._rendered("page.html.j2", views=rows, requests=shown, ready=self.queue.ready)

    def request(self, request: Request) -> str:
        """The page of one request, with what its command printed."""
        return self._rendered("request.html.j2", request=_shown(request), text=request.text("err") + request.text("out"))

    def documentation(self, openapi: Mapping[str, Any]) -> str:
        """The HTTP interface, from its OpenAPI description."""
        schemas = openapi.get("components", {}).get("schemas", {})
        routes = [_route(path, method, said, schemas) for path, methods in openapi["paths"].items() for method, said in methods.items()]
        return self._rendered("docs.html.j2", about=openapi["info"]["description"], routes=routes)

    def _rendered(self, template: str, **values: Any) -> str:
        return self._templates.get_template(template).render(title=self.title, now=_time(time.time()), **values)


def _row(view: str, requests: Sequence[Request], status: Sequence[SourceStatus]) -> dict[str, Any]:
    """A view's last refresh in this server, its lag, and what is wrong."""
    last = next(((r, found) for r in requests for found in r.refreshes if found["view"] == view), None)
    failed = next((r for r in requests if view in r.call.named and r.state == "done"), None)
    lags = [row for row in status if row.view == view]
    running = any(view in r.call.named and r.state == "running" and r.call.writes for r in requests)
    wrong = failed is not None and bool(failed.exit_code)
    return {
        "name": view,
        "state": "running" if running else "failed" if wrong else "ok" if last is not None else "",
        "failed": failed.id if failed is not None and wrong else "",
        "lag": ", ".join(f"{row.source} {row.lag}" for row in lags if row.lag) or ("0" if lags else ""),
        "mode": last[1]["mode"] if last is not None else "",
        "rows": f"+{last[1]['rows_inserted']:,} -{last[1]['rows_deleted']:,}" if last is not None else "",
        "seconds": f"{last[1]['seconds']:.1f}" if last is not None else "",
        "at": _time(last[0].ended or last[0].submitted) if last is not None else "",
    }


def _shown(request: Request) -> dict[str, Any]:
    return request.to_json() | {"at": _time(request.submitted), "asked": _asked(request)}


def _asked(request: Request) -> str:
    """The request as the words of a command."""
    words = [request.call.verb, *request.call.named]
    for name, value in request.call.options.items():
        if name in ("views", "view", "as_json") or value in (None, False, [], ()):
            continue
        option = f"--{name.replace('_views', '').replace('_', '-')}"
        words += [option if one is True else f"{option} {shown(one)}" for one in (value if isinstance(value, list) else [value])]
    return " ".join(words)


def _route(path: str, method: str, said: Mapping[str, Any], schemas: Mapping[str, Any]) -> dict[str, Any]:
    body = said.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    schema = schemas.get(body.get("$ref", "").rpartition("/")[2], {})
    last = list(Body.model_fields)  # the fields that all verbs have
    properties = sorted(schema.get("properties", {}).items(), key=lambda item: item[0] in last)
    fields = [
        {"name": name, "kind": _kind(found), "required": name in schema.get("required", ()), "text": found.get("description", "")}
        for name, found in properties
    ]
    return {"path": path, "method": method.upper(), "summary": said.get("summary", ""), "fields": fields}


def _kind(found: Mapping[str, Any]) -> str:
    kinds = found.get("anyOf", [found])
    return " or ".join(str(k.get("type", k.get("$ref", "").rpartition("/")[2] or "any")) for k in kinds if k.get("type") != "null")


def _time(seconds: float) -> str:
    return f"{time_text(seconds)} UTC"
