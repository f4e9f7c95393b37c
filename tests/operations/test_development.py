"""Development environments: their views against the queries from scratch, beside a production that nothing in them writes to."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from lake import Lakehouse, open_lake
from tests.lakes import TestLake, multiset


def digests(folder: Path) -> dict[str, tuple[int, str]]:
    """When each file below a folder was written, and a digest of it."""
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    return {str(f.relative_to(folder)): (f.stat().st_mtime_ns, hashlib.sha256(f.read_bytes()).hexdigest()) for f in files}


class Deployments:
    """Production in one folder, a development environment's tables in another one. `edits`: the views that the environment has instead."""

    def __init__(self, lake: TestLake, folder: Path) -> None:
        self.production, self.folder = lake, folder

    def dev(self, **views: str) -> Lakehouse:
        overlay = {"development_of": "default", "target": {"path": str(self.folder)}, "views": {n: {"query": q} for n, q in views.items()}}
        return open_lake({**self.production.config, "environments": {"dev": overlay}}, spark=self.production.spark, env="dev")


@pytest.fixture
def deployments(lake: TestLake, tmp_path_factory: pytest.TempPathFactory) -> Deployments:
    """Two tables with duplicates and NULL keys; views on views."""
    lake.table("t", "SELECT id, CAST(nullif(id % 4, 0) AS INT) AS k, id * 2 AS v FROM range(12)", ["id"])
    lake.table("u", "SELECT CAST(nullif(id % 5, 4) AS INT) AS k, CAST(id % 2 AS INT) AS w FROM range(10)")
    lake.view("plain", "SELECT k, w FROM u")
    lake.view("joined", "SELECT t.id, t.k, u.w FROM t LEFT JOIN u ON t.k = u.k")
    lake.view("counts", "SELECT k, count(*) AS n, sum(w) AS s FROM joined GROUP BY k")
    lake.view("both", "SELECT c.k, c.n, p.w FROM counts c JOIN plain p ON c.k <=> p.k")
    return Deployments(lake, tmp_path_factory.mktemp("dev") / "views")


def test_thin(deployments: Deployments) -> None:
    lake = deployments.production
    lake.open.refresh_all()
    before = digests(lake.folder)
    edited = "SELECT t.id, t.k, u.w FROM t LEFT JOIN u ON t.k = u.k WHERE t.v > 4"
    dev = deployments.dev(joined=edited)
    plan = {v.view: (v.action, v.from_production) for v in dev.plan().views}
    assert plan == {"plain": ("none", True), "joined": ("build", False), "counts": ("build", False), "both": ("build", False)}
    print([r.view for r in dev.apply()])
    print({v.view: (v.action, v.from_production) for v in dev.plan().views})
    for view in ("plain", "joined", "counts", "both"):
        assert dev.verify(view).exact
    print(dev.refresh_all())
    assert digests(lake.folder) == before
