"""Relations: the algebra. Each relation has a snapshot, lookups and changes, under one law (base.py)."""
