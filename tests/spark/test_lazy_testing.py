"""PySpark's tools for tests are loaded when somebody asks for them, not because Spark asks for NumPy."""

from __future__ import annotations

import subprocess
import sys

ASKED = """
import sys
from lake.spark import lazy_testing
lazy_testing.install()
lazy_testing.install()
import numpy as np
from pyspark.sql.types import NumpyArrayConverter, NumpyScalarConverter
assert NumpyScalarConverter().can_convert(np.int64(3)) and not NumpyScalarConverter().can_convert("3")
assert NumpyArrayConverter().can_convert(np.array([1])) and not NumpyArrayConverter().can_convert([1])
assert "pandas" not in sys.modules
"""
MORE = {
    "names of the module": "from pyspark.testing.utils import have_numpy, have_pandas; assert have_numpy and have_pandas",
    "the module": "import pyspark.testing.utils; assert pyspark.testing.utils.have_pandas and pyspark.testing.utils.__file__",
    "another module": "import pyspark.testing.sqlutils; from pyspark.testing.utils import have_pandas; assert have_pandas",
    "the package": "from pyspark.testing import assertDataFrameEqual; assert callable(assertDataFrameEqual)",
    "a pandas UDF": "from pyspark.sql.functions import pandas_udf; from pyspark.sql.types import LongType; import pandas as pd\n"
    "def add(x: pd.Series) -> pd.Series: return x + 1\n"
    "assert pandas_udf(add, LongType()).evalType",
}


def test_whether_there_is_a_numpy_is_known_without_them_and_all_else_is_as_it_was() -> None:
    for name, more in MORE.items():
        ended = subprocess.run(
            [sys.executable, "-c", f"from __future__ import annotations\n{ASKED}\n{more}"], capture_output=True, text=True
        )
        assert ended.returncode == 0, (name, ended.stderr)
    assert (
        "pandas"
        in subprocess.run(
            [sys.executable, "-c", "import sys\nfrom pyspark.testing.utils import have_numpy\nprint([*sys.modules])"],
            capture_output=True,
            text=True,
        ).stdout
    )  # what it is for: if this fails, PySpark does not need it any more
