"""The address of Kafka Connect in a worker's file."""

from __future__ import annotations

import pytest

from incsnap.takeover.connector_state import rest_of


@pytest.mark.parametrize(
    ("worker", "address"),
    [
        ({}, ""),
        ({"bootstrap.servers": "k:9092"}, ""),
        ({"listeners": "http://:8083"}, "http://localhost:8083"),
        ({"listeners": "HTTPS://0.0.0.0:8443,http://:8083"}, "https://localhost:8443"),
        ({"listeners": "http://connect-1:8085"}, "http://connect-1:8085"),
        ({"rest.advertised.host.name": "connect-1"}, "http://connect-1:8083"),
        (
            {"listeners": "https://:8443", "rest.advertised.host.name": "c", "rest.advertised.port": "9"},
            "https://c:9",
        ),
        ({"listeners": "sasl://:8083"}, ""),
    ],
    ids=range(8),
)
def test_the_address_of_rest_is_that_of_the_workers_file(worker: dict[str, str], address: str) -> None:
    assert rest_of(worker) == address
