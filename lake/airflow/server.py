"""Lets `lakejoin serve` carry out tasks: a request for each try, and a trigger that waits for its end without a worker slot.

Neither workers nor triggerers need Java, or load PySpark, for it.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from airflow.triggers.base import BaseTrigger, TriggerEvent

from lake.errors import LakeError
from lake.server.client import Client, remote

_LOOKS_EVERY = 0.2
_GONE_FOR = 120.0
"""Seconds in which a server that does not answer may come back, before the task fails."""

_ABANDONED_AFTER = 300.0
"""Seconds after which the server cancels a request that nothing in Airflow has asked for: a task may be cleared before its trigger runs, or
its worker killed."""
_BUSY = (429, 502, 503, 504)
"""Statuses of a server, or of a proxy before it, that may take the request later."""


@dataclass(frozen=True)
class ServerRequest:
    """The request of one try of a task. `server`: an address, or the id of a connection; `name`: of the request."""

    server: str
    name: str

    @staticmethod
    def of(server: str, run: str, try_number: int) -> ServerRequest:
        """The request of a try: the same try has the same request, if its worker is started twice."""
        return ServerRequest(server, hashlib.sha256(f"{run}\0{try_number}".encode()).hexdigest()[:32])

    @property
    def client(self) -> Client:
        """A client of the server. Raises AirflowFailException if it has no valid address or no token."""
        try:
            if "://" in self.server:
                return remote(self.server, os.environ.get("LAKEJOIN_TOKEN"))
            found = Connection.get(self.server)
            host = str(found.host or "")
            url = host if "://" in host else f"{found.schema or 'http'}://{host}"
            return remote(f"{url}:{found.port}" if found.port else url, found.password)
        except LakeError as error:
            raise AirflowFailException(str(error)) from error

    def begin(self, words: Sequence[str], run: str, seconds: float) -> None:
        """Send the request. Raises AirflowException if the server is busy or does not answer, AirflowFailException if it refuses it."""
        headers = {"Lakejoin-Request": self.name, "Prefer": "respond-async"}
        body = {"words": list(words), "run": run, "timeout": seconds, "abandon_after": _ABANDONED_AFTER}
        try:
            status, said = self.client.ask("POST", "/v1/command", body, headers)
        except OSError as error:
            raise AirflowException(f"The server at {self.server} does not answer ({error}). It is tried again.") from error
        if status in _BUSY:
            raise AirflowException(f"The server at {self.server}: {_error(said)}")
        if status != 202:
            raise AirflowFailException(f"The server at {self.server} answered {status}: {_error(said)}")

    def answer(self) -> dict[str, Any] | None:
        """The answer; None while there is none. Raises OSError if the server does not answer, AirflowException if it does not know the
        request."""
        status, said = self.client.ask("GET", f"/v1/requests/{self.name}")
        if status != 200:
            raise AirflowException(
                f"The server at {self.server} does not know the request of this try ({status}: {_error(said)}). It was probably "
                "started again; a retry goes to the same snapshot."
            )
        return dict(said) if said["state"] == "done" else None

    def answer_within(self, seconds: float) -> dict[str, Any] | None:
        """The answer, if there is one within this time."""
        ends = time.monotonic() + seconds
        while (found := self.answer()) is None and time.monotonic() < ends:
            time.sleep(_LOOKS_EVERY)
        return found

    def cancel(self) -> None:
        """Cancel the request: its Spark jobs, and those of no other."""
        self.client.cancel(self.name)


class RequestEnded(BaseTrigger):
    """Fires when a request has ended, or can no longer be asked for. `seconds`: between two looks. If a person ends the task, the request
    is cancelled."""

    def __init__(self, server: str, name: str, seconds: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.request, self.seconds = ServerRequest(server, name), seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        where = f"{type(self).__module__}.{type(self).__qualname__}"
        return where, {"server": self.request.server, "name": self.request.name, "seconds": self.seconds}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        answered = time.monotonic()
        while True:
            try:
                if await asyncio.to_thread(self.request.answer) is not None:
                    break
                answered = time.monotonic()
            except AirflowException:  # the task asks again, and fails with the message
                break
            except OSError as error:
                self.log.warning("%s", error)
                if time.monotonic() - answered > _GONE_FOR:
                    break
            await asyncio.sleep(self.seconds)
        yield TriggerEvent(self.request.name)  # type: ignore[no-untyped-call]

    async def on_kill(self) -> None:
        """The task was cleared, or marked as failed or succeeded."""
        await asyncio.to_thread(self.request.cancel)


def _error(said: Any) -> Any:
    """What an answer says, also one of a proxy."""
    return said.get("error", said) if isinstance(said, dict) else said
