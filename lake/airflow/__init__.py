"""Makes Airflow DAGs from lakejoin.yml. Parsing a DAG file loads neither PySpark nor Great Expectations.

A file in Airflow's dags folder:

    from lake.airflow import airflow_dags

    globals().update(airflow_dags())  # LAKEJOIN_CONFIG names the lakejoin.yml
"""

from lake.airflow.factory import airflow_dags, raise_for_invalid_views

__all__ = ["airflow_dags", "raise_for_invalid_views"]
