"""A real MySQL and a real Kafka for the demo and the tests, wherever they come from. Start with ``servers.py``."""
