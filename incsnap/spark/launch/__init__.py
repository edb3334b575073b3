"""The start of Spark for `incsnap run`: `startup.launched` is the only name that other packages use."""
