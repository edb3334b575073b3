"""Runs of `incsnap verify` beside a real job and writers, to see that it raises no false alarm."""
