"""The only user of Spark's internals: query → node tree, node + rows → rows.

Spark analyses and optimises a view's query once, over placeholder relations of the sources' schemas; the optimised logical
plan is the tree. To run a node on rows of our choosing, its children are replaced by plans whose columns carry the ids that the node
refers to, and the new plan becomes a DataFrame: Spark's own operator, with Spark's own semantics, on the rows that we give it.

Rows travel as DataFrames whose columns are named after the attribute they stand for (`c12` for expression id 12), with the
weight `w` beside them where they are weighted (see spark/zset.py). Pinned with Spark 4.2: classic sessions only.

expressions   what an expression reads and may be used for, and new ones
trees         plans as node trees, and trees that are changed
running       a node on rows
definitions   a query as a plan: `Catalyst`, which is all of these
"""

from lake.catalyst.definitions import DEFINITION_SETTINGS, Catalyst

__all__ = ["DEFINITION_SETTINGS", "Catalyst"]
