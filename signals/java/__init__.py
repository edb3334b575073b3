"""Java's regular expressions: parsed as Java 17 does, and translated for the engines that match them here."""
