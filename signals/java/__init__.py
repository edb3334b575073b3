"""Java's regular expressions: read as Java 17 reads them, and written for the engines that match them here."""
