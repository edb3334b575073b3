"""Seeded faults in copies of topics, and runs beside writers: what `incsnap verify` finds and names."""
