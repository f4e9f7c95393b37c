"""The DAGs of the lakejoin.yml that LAKEJOIN_CONFIG names."""

from lake.airflow import airflow_dags

globals().update(airflow_dags())
