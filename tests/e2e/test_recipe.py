"""The recipe of docs/migrate-from-debezium.md: its commands run as written, with a real connector and under writes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from lab.addresses import MySqlAddress
from lab.from_debezium import DOCUMENT, recipe

pytestmark = pytest.mark.servers


def test_the_recipe_ends_with_a_comparison() -> None:
    commands = recipe(DOCUMENT.read_text()).splitlines()

    assert commands[-1].startswith("incsnap verify ")
    assert [each.split()[1] for each in commands if each.startswith("incsnap")] == [
        "check", "takeover", "run", "verify", "hand-back", "verify"
    ]  # fmt: skip


@pytest.mark.long
def test_the_commands_of_the_recipe_run_as_written(mysql_address: MySqlAddress, kafka_address: str) -> None:
    environment = {
        **os.environ,
        "INCSNAP_MYSQL": str(mysql_address),
        "INCSNAP_MYSQL_USER": mysql_address.user,
        "INCSNAP_MYSQL_PASSWORD": mysql_address.password,
        "INCSNAP_KAFKA": kafka_address,
    }
    command = [sys.executable, "-m", "lab", "--from-debezium"]
    done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True, timeout=450)

    assert done.returncode == 0, done.stdout + done.stderr
    # Both engines were compared, and the connector was stopped cleanly.
    assert "continues there" in done.stdout
