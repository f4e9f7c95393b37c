"""Standard workloads as views: TPC-H's 22 queries under its refresh functions and updates, Nexmark's under a stream that is mended, and a
warehouse by TPC-DI's data model, batch after batch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession

from examples.delta import write
from examples.nexmark import demo as nexmark
from examples.nexmark.generator import Nexmark
from examples.tpch.tables import Tpch, generate
from examples.warehouse.lake import opened
from examples.warehouse.shape import Shape
from examples.warehouse.tables import Warehouse
from lake import Lakehouse, open_lake

pytestmark = pytest.mark.slow
EXAMPLES = Path(__file__).parent.parent / "examples"
TPCH = sorted(yaml.safe_load((EXAMPLES / "tpch/lakejoin.yml").read_text())["views"])
NEXMARK = list(yaml.safe_load((EXAMPLES / "nexmark/queries.yml").read_text())["views"])


class Changing:
    """A lake whose whole history has happened; each view is then refreshed along it, snapshot by snapshot."""

    def __init__(self, spark: SparkSession, config: Path, root: Path) -> None:
        settings = yaml.safe_load(config.read_text())
        for view in settings["views"].values():
            if "query_file" in view:
                view["query"] = (config.parent / view.pop("query_file")).read_text()
        self.lake: Lakehouse = open_lake({**settings, "root": str(root)}, spark=spark)
        self.heads: list[dict[str, int]] = []

    def after(self, *changes: Callable[[], None]) -> None:
        for change in changes:
            change()
        self.heads.append({t: self.lake.source_head(t).version.number for t in self.lake.config.tables})

    def assert_exact(self, view: str) -> None:
        """Refresh along the history, and prove the view at its end, since that costs more than a refresh: a row that an earlier change left
        wrong is wrong there, too."""
        sources = self.lake.explain(view).sources
        until = [{t: v for t, v in heads.items() if t in sources} for heads in self.heads]
        assert self.lake.refresh(view, until[0]).mode == "build"
        for before, snapshot in pairwise(until):
            assert (self.lake.refresh(view, snapshot).mode == "none") == (before == snapshot)
        assert self.lake.verify(view).exact


@pytest.fixture(scope="module")
def tpch(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Changing:
    folder = tmp_path_factory.mktemp("tpch")
    generate(folder / "parquet", 0.01)  # below, the generator makes two suppliers of a part the same
    found = Changing(spark, EXAMPLES / "tpch/lakejoin.yml", folder / "lake")
    tables = Tpch(spark, folder / "lake")
    tables.load(folder / "parquet")
    found.after()
    found.after(lambda: tables.insert_orders(0.02, 1), lambda: tables.delete_orders(0.02, 1))
    found.after(lambda: tables.update(0.02, 1))
    return found


@pytest.fixture(scope="module")
def stream(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Changing:
    found = Changing(spark, EXAMPLES / "nexmark/queries.yml", tmp_path_factory.mktemp("nexmark"))
    events, lake = Nexmark(), found.lake
    for table in ("person", "auction", "bid"):
        write(getattr(events, table)(spark, 0, 2000), lake.config.source_path(table))
    found.after()
    changes = (nexmark.raise_bids, nexmark.change_auctions, nexmark.move_bids)
    found.after(lambda: nexmark.append_events(lake, events, 2000, 2200), *[partial(change, lake) for change in changes])
    return found


@pytest.mark.parametrize("query", TPCH)
def test_tpch(tpch: Changing, query: str) -> None:
    tpch.assert_exact(query)
    assert tpch.lake.explain(query).incremental


@pytest.mark.parametrize("query", NEXMARK)
def test_nexmark(stream: Changing, query: str) -> None:
    stream.assert_exact(query)
    assert stream.lake.explain(query).incremental


@pytest.mark.timeout(1800)
def test_warehouse(spark: SparkSession, tmp_path: Path) -> None:
    lake, tables = opened(tmp_path, spark=spark), Warehouse(spark, tmp_path, Shape(trades=300))
    tables.load()
    assert {result.mode for result in lake.refresh_all()} == {"build"}
    for batch in (2, 3):
        tables.bring(batch)
        assert {result.view for result in lake.refresh_all() if result.mode == "none"} == {"gold.dim_date", "gold.dim_time"}
    assert [view for view in lake.config.views if not lake.verify(view).exact] == []
