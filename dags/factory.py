"""The old import path of `lake.airflow`. It works for one more version, with a DeprecationWarning."""

import warnings

from lake.airflow import airflow_dags, raise_for_invalid_views

warnings.warn("dags.factory has moved: write `from lake.airflow import airflow_dags`.", DeprecationWarning, stacklevel=2)

__all__ = ["airflow_dags", "raise_for_invalid_views"]
