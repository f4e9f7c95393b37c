"""A lease is held by one process, ends with that process, and stores the last metrics of its path."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lake.core.constants import LEASE_SECONDS
from lake.delta.lease import Lease, newest
from lake.delta.sidecar import Folder
from lake.errors import ConcurrencyError


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> Folder:
    return Folder(spark, str(tmp_path / "_lakejoin"))


def rewritten(folder: Folder, lease: Lease, **said: object) -> None:
    """The lease as another holder would have left it."""
    name = f"lease-{lease.number:08}.json"
    folder.replace(name, json.dumps({**json.loads(folder.read(name)), **said}))


def test_a_second_process_is_refused_with_the_name_of_the_first(folder: Folder) -> None:
    Lease.take("v", folder)
    with pytest.raises(ConcurrencyError, match=f"process {os.getpid()} on "):
        Lease.take("v", folder)


def test_a_lease_that_ended_or_failed_can_be_taken(folder: Folder) -> None:
    for state in ("stopped", "failed"):
        lease = Lease.take("v", folder)
        lease.renew(state, {"batches": 3})
        assert newest(folder)[1]["batches"] == 3
    assert Lease.take("v", folder).number == 3
    assert folder.names() == ["lease-00000003.json"]


def test_a_lease_whose_process_ended_can_be_taken_immediately(folder: Folder) -> None:
    lease = Lease.take("v", folder)
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True)
    rewritten(folder, lease, process=int(gone.stdout))
    assert Lease.take("v", folder).number == 2


def test_a_process_that_reuses_the_number_of_an_ended_one_does_not_hold_its_lease(folder: Folder) -> None:
    lease = Lease.take("v", folder)
    rewritten(folder, lease, started="1")
    assert Lease.take("v", folder).number == 2


def test_a_lease_of_another_machine_can_be_taken_when_it_was_not_renewed(folder: Folder) -> None:
    lease = Lease.take("v", folder)
    rewritten(folder, lease, host="elsewhere")
    with pytest.raises(ConcurrencyError, match="elsewhere"):
        Lease.take("v", folder)
    rewritten(folder, lease, host="elsewhere", renewed=time.time() - LEASE_SECONDS - 1)
    assert Lease.take("v", folder).number == 2


def test_a_lease_whose_process_was_killed_while_writing_can_be_taken_after_its_time(folder: Folder) -> None:
    """Its file is empty, or half of what it was to be, which a local disk tells by a checksum."""
    name, path = f"lease-{Lease.take('v', folder).number:08}.json", Path(folder.path)
    checksum = (path / f".{name}.crc").read_bytes()
    folder.replace(name, "")
    with pytest.raises(ConcurrencyError, match="already running"):
        Lease.take("v", folder)
    (path / f".{name}.crc").write_bytes(checksum)
    (path / name).write_text('{"state": "run')
    with pytest.raises(ConcurrencyError, match="already running"):
        Lease.take("v", folder)
    os.utime(path / name, (0, time.time() - LEASE_SECONDS - 1))
    assert Lease.take("v", folder).number == 2


def test_a_holder_learns_that_its_lease_was_taken(folder: Folder) -> None:
    lease = Lease.take("v", folder)
    rewritten(folder, lease, host="elsewhere", renewed=0)
    Lease.take("v", folder)
    with pytest.raises(ConcurrencyError, match="taken over"):
        lease.renew("running", {})


def test_of_two_that_follow_at_once_one_gets_it(folder: Folder) -> None:
    folder.create("lease-00000001.json", json.dumps({"state": "stopped"}))
    assert folder.create("lease-00000002.json", "")
    assert not folder.create("lease-00000002.json", "")
    with pytest.raises(ConcurrencyError):  # the other's is being written
        Lease.take("v", folder)
