"""Tests of views (`lakejoin test`): rows, tables, comparison and run of each."""
