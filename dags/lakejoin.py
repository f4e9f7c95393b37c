"""The DAGs of the lakejoin.yml that LAKEJOIN_CONFIG names, in Airflow."""

from lake.airflow import airflow_dags

globals().update(airflow_dags())
