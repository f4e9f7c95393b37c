"""Airflow's DAGs, built from lakejoin.yml."""
