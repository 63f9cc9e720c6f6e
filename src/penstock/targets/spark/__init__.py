"""Spark Structured Streaming as a target: a cluster to run on, and a query to watch and rescale."""
