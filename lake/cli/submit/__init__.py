"""The script that spark-submit is given, in a folder of its own: its folder becomes the first on Python's path."""
