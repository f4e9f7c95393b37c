"""How far two floating-point numbers are apart, in ulps (units in the last place): from one number to the next one of its type is one."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lake.spark import sameness
from lake.spark.jvm.invoked import double_bits, float_bits


def ulps_apart(a: Column, b: Column, data_type: T.DataType, most: int) -> Column:
    """How many ulps two numbers are apart, NULL where that is more than `most` or where one of them is no number. Where none is allowed,
    nothing but the sign of zero may differ, which is no ulp then.

    A FLOAT is a sum of doubles that was rounded once more: one ulp is allowed, for each of its own is half a billion of a double's.
    """
    single = isinstance(data_type, T.FloatType)
    place_a, place_b = (_place(float_bits(v).cast("long") if single else double_bits(v), 31 if single else 63) for v in (a, b))
    apart = F.try_subtract(F.greatest(place_a, place_b), F.least(place_a, place_b))  # NULL where they are too far apart for a BIGINT
    apart = F.when(apart == 0, min(most, 1)).otherwise(apart)  # 0.0 and -0.0
    finite = ~F.isnan(a) & ~F.isnan(b) & (F.abs(a) != float("inf")) & (F.abs(b) != float("inf"))
    within = F.when(finite & (apart <= (min(most, 1) if single else most)), apart)
    return F.when(_same(a, b, data_type), F.lit(0)).otherwise(within)


def _place(bits: Column, sign: int) -> Column:
    """Where a number stands among all of its type, 0.0 and -0.0 in the middle: its bits, the other way round where it is negative."""
    least = F.lit(-(2**sign)).cast("long")
    return F.when(bits >= 0, bits).otherwise(least - bits)


def _same(a: Column, b: Column, data_type: T.DataType) -> Column:
    return F.struct(*sameness.marks(a, data_type)).eqNullSafe(F.struct(*sameness.marks(b, data_type)))
