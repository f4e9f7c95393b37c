"""One of each: a lease is held by one, ends with its process, and says what its path said last."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lake.core.kinds import LEASE_SECONDS
from lake.delta.sidecar import Folder
from lake.errors import ConcurrencyError
from lake.realtime.lease import Lease, newest


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> Folder:
    return Folder(spark, str(tmp_path / "_lakejoin"))


def rewritten(folder: Folder, lease: Lease, **said: object) -> None:
    """The lease as another holder would have left it."""
    name = f"lease-{lease.number:08}.json"
    folder.replace(name, json.dumps({**json.loads(folder.read(name)), **said}))


def test_a_second_instance_is_refused_and_told_who_runs(folder: Folder) -> None:
    Lease.take("v", folder)
    with pytest.raises(ConcurrencyError, match=f"process {os.getpid()} on "):
        Lease.take("v", folder)


def test_one_that_ended_or_failed_is_followed(folder: Folder) -> None:
    for state in ("stopped", "failed"):
        lease = Lease.take("v", folder)
        lease.renew(state, {"batches": 3})
        assert newest(folder)[1]["batches"] == 3
    assert Lease.take("v", folder).number == 3
    assert folder.names() == ["lease-00000003.json"]


def test_one_whose_process_is_gone_is_followed_at_once(folder: Folder) -> None:
    lease = Lease.take("v", folder)
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True)
    rewritten(folder, lease, process=int(gone.stdout))
    assert Lease.take("v", folder).number == 2


def test_a_process_that_has_the_number_of_one_that_is_gone_does_not_hold_its_lease(folder: Folder) -> None:
    lease = Lease.take("v", folder)
    rewritten(folder, lease, started="1")
    assert Lease.take("v", folder).number == 2


def test_one_on_another_machine_is_followed_when_it_has_been_silent(folder: Folder) -> None:
    lease = Lease.take("v", folder)
    rewritten(folder, lease, host="elsewhere")
    with pytest.raises(ConcurrencyError, match="elsewhere"):
        Lease.take("v", folder)
    rewritten(folder, lease, host="elsewhere", renewed=time.time() - LEASE_SECONDS - 1)
    assert Lease.take("v", folder).number == 2


def test_one_that_was_killed_while_it_wrote_is_followed_in_time(folder: Folder) -> None:
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


def test_who_was_followed_learns_it(folder: Folder) -> None:
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
