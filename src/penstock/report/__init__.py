"""Journals made readable: a story, a picture."""
