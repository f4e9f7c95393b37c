"""Fails to import where a view of lakejoin.yml is not valid, so that Airflow shows it, and the DAGs of the others stay."""

from lake.airflow import raise_for_invalid_views

raise_for_invalid_views()
