"""Real servers (MySQL, Kafka and others) and the demo, for the tests and for trials. Start reading in `servers.py`."""
