"""The comparison of tables with their topics: `incsnap verify`."""
