"""The page of SQL constructs also shows what is not incremental, which the law tests do not check line by line."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.relations.cases import SCHEMAS, UNSCOPED
from tests.relations.laws import View
from tests.relations.matrix import DOCUMENT, line


@pytest.mark.parametrize("name", UNSCOPED)
def test_a_query_that_is_always_recomputed_has_its_line(spark: SparkSession, name: str) -> None:
    view = View(spark, SCHEMAS, UNSCOPED[name])
    assert view.definition.recomputed
    assert line(name, view) in DOCUMENT.read_text().splitlines(), "docs/reference/sql.md is stale: make docs"
