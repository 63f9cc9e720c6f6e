"""Experiments: a job, a load and a policy, written down in TOML, and run for real."""
