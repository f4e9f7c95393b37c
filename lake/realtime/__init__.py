"""The real-time path: keeps tables of views within seconds of their sources; each batch is exact at a snapshot."""
