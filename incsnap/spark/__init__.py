"""The interfaces to Spark. The package `incsnap` exports those for users."""
