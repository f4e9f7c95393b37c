"""Relations: the algebra. Each answers snapshot, lookup and changes, under one law (see base.py)."""
