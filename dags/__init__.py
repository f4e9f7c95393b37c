"""The DAG files that Airflow loads."""
