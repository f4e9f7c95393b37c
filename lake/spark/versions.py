"""The versions of Spark and Delta Lake with which Lakejoin is tested (`make versions`): it calls internals of both.

Patch releases are not told apart: Spark 4.1.4 is tested if 4.1 is.
"""

from __future__ import annotations

from lake.errors import ConfigError

TESTED = (("4.0", "4.4"), ("4.1", "4.4"), ("4.2", "4.4"))
"""Pairs of minor versions: Spark's and Delta's, oldest first."""


def minor(version: str) -> str:
    """`4.1` of 4.1.4 or 4.1.2-amzn-0."""
    return ".".join(version.split(".")[:2])


def refuse_untested(spark: str, delta: str) -> None:
    """Raise ConfigError unless the versions of Spark and Delta Lake are a pair that is tested."""
    if problem := untested(spark, delta):
        raise ConfigError(problem)


def untested(spark: str, delta: str) -> str:
    """Why the versions of Spark and Delta Lake are not to be used together, and what to do; empty if they are a pair that is tested."""
    if (minor(spark), minor(delta)) in TESTED:
        return ""
    near = nearest(spark)
    return (
        f"Lakejoin is not tested with Spark {spark} and Delta Lake {delta}. The nearest pair that is: Spark {near[0]} and Delta Lake "
        f'{near[1]} (pip install "pyspark=={near[0]}.*" "delta-spark=={near[1]}.*", then lakejoin setup; on a cluster, its Spark). To try '
        "this pair nevertheless, set `allow_untested: true` in lakejoin.yml, and compare the views with `lakejoin verify --all`."
    )


def nearest(spark: str) -> tuple[str, str]:
    """The tested pair whose Spark is nearest to a version."""

    def number(version: str) -> int:
        major, _, rest = minor(version).partition(".")
        return 100 * int(major) + int(rest) if major.isdecimal() and rest.isdecimal() else 0

    return min(TESTED, key=lambda pair: abs(number(pair[0]) - number(spark)))
