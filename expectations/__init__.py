"""Data quality: the two paths and the truth held against each other, and reports that people read."""
