"""Executors on other machines: the check that they are ready, and the archive of incsnap that they are sent."""
