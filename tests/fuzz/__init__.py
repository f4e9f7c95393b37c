"""Random queries over random tables with random histories, checked against Spark from scratch: `make fuzz SECONDS=600 SEED=7`."""
