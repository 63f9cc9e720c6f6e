"""Penstock: just the workers a streaming job needs, and the reasons why."""

__version__ = "0.1.0"
