"""The real-time path: views within seconds, each batch at a snapshot of its own."""
