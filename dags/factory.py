"""The old place of `lake.airflow`, for one more version: `from dags.factory import airflow_dags` works with a warning."""

import warnings

from lake.airflow import airflow_dags, raise_for_invalid_views

warnings.warn("dags.factory has moved: write `from lake.airflow import airflow_dags`.", DeprecationWarning, stacklevel=2)

__all__ = ["airflow_dags", "raise_for_invalid_views"]
