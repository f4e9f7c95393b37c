"""Fails to import if views of lakejoin.yml are invalid: Airflow shows the errors, and the DAGs of the other views stay."""

from lake.airflow import raise_for_invalid_views

raise_for_invalid_views()
