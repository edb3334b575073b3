"""The page of a real job in a browser, in each state: idle, snapshot, paused, a failed table, MySQL down, killed.

Each state is looked at on a wide and on a narrow screen, in the light and in the dark. INCSNAP_SCREENSHOTS=docs/images
writes the pictures of docs/screenshots.md there.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from lab.captured_database import captured_database
from lab.fetched_kafka import breakable_kafka
from lab.fetched_mysql import breakable_mysql
from lab.free_port import free_ports
from lab.table_designs import ORDERS, PEOPLE

_CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
_PICTURES = os.environ.get("INCSNAP_SCREENSHOTS", "")

pytestmark = [
    pytest.mark.servers,
    pytest.mark.timeout(600),
    pytest.mark.skipif(_CHROMIUM is None, reason="no Chromium on this machine (Debian: apt install chromium)"),
]
#: The pictures of docs/screenshots.md.
_SHOWN = [
    *((state, 1280, "light") for state in ("idle", "snapshot", "paused", "failed", "mysql-down", "killed")),
    *((state, 390, "dark") for state in ("snapshot", "mysql-down")),
]
_SCREENS = [(width, scheme) for width in (1280, 390) for scheme in ("light", "dark")]


@pytest.fixture
def browser() -> Iterator[Browser]:
    # By default 5 s, which a busy machine may take for an answer of the job.
    expect.set_options(timeout=60_000)
    with sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=_CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()
    expect.set_options(timeout=5_000)


class _Screens:
    """One open page for each width and theme. All of them show the same job."""

    def __init__(self, browser: Browser, url: str) -> None:
        self.pages: dict[tuple[int, str], Page] = {}
        for width, scheme in _SCREENS:
            view = {"width": width, "height": 800}
            page = browser.new_page(viewport=view, color_scheme=scheme)  # type: ignore[arg-type]
            page.goto(url)
            self.pages[width, scheme] = page

    def show(self, state: str, badge: str, title: str, bar: str = "", alert: str = "") -> None:
        """Wait until all screens have `badge` and `title`, and check that nothing is wider than the screen.

        `bar`: the table whose progress they have to show. `alert`: a text that their message has to contain.
        """
        for (width, scheme), page in self.pages.items():
            expect(page.locator("#state")).to_have_text(badge)
            expect(page).to_have_title(title)
            if bar:
                expect(page.get_by_role("progressbar", name=bar)).to_be_visible()
            if alert:
                expect(page.get_by_role("alert")).to_contain_text(alert)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (state, width, scheme)
            if _PICTURES and (state, width, scheme) in _SHOWN:
                height = 560 if width == 1280 else 800
                clip = {"x": 0, "y": 0, "width": width, "height": height}
                page.screenshot(path=Path(_PICTURES) / f"page-{state}-{width}-{scheme}.png", clip=clip)  # type: ignore[arg-type]


def test_each_state_is_visible_at_a_glance(browser: Browser, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    database, prefix = "inventory", "shop"  # the servers are this test's own
    with (
        breakable_mysql(["--server-id=73"]) as (mysql, mysqld),
        breakable_kafka() as (kafka, _),
        captured_database(mysql, kafka, database, prefix, tmp_path) as play,
    ):
        orders, people = play.create(ORDERS, 40_000), play.create(PEOPLE, 10)
        settings = {
            "incsnap.metrics.port": str(port),
            "incsnap.page.token": "a-token-of-some-length",
            "incremental.snapshot.chunk.size": "500",
        }
        with play.job(settings) as job:
            job.wait_until_streaming()
            screens = _Screens(browser, f"http://127.0.0.1:{port}/")
            wide = screens.pages[1280, "light"]
            screens.show("idle", "running", f"{prefix}: running")
            expect(wide.locator("#servers")).to_have_text(f"MySQL {mysql.host}:{mysql.port} → Kafka {kafka}")

            play.signal_by_row("slow", "incsnap-throttle", {"rows-per-second": 1_000})
            play.execute_by_row("nightly", [orders])
            screens.show("snapshot", "running", f"{prefix}: running", bar=str(orders))

            wide.get_by_role("textbox", name="token").fill("a-token-of-some-length")
            wide.get_by_role("button", name="Pause").click()
            screens.show("paused", "running · snapshot paused", f"{prefix}: paused", bar=str(orders))
            expect(wide.get_by_role("button", name="Pause")).to_be_disabled()
            wide.get_by_role("button", name="Resume").click()
            screens.show("resumed", "running", f"{prefix}: running", bar=str(orders))

            wide.get_by_role("textbox", name="tables").fill(f"{database}.nosuch")
            wide.get_by_role("button", name="Snapshot", exact=True).click()
            expect(wide.locator("#answer")).to_contain_text("it names no table that can be read")
            expect(wide.locator("#answer")).to_have_class("bad")

            condition = {"data-collection": str(people), "filter": "no_such_column = 1"}
            signal = {"type": "incremental", "data-collections": [str(people)], "additional-conditions": [condition]}
            play.signal_by_row("misspelt", "execute-snapshot", signal)
            screens.show("failed", "running · 1 table failed", f"{prefix}: 1 failed")
            expect(wide.locator("#failed")).to_contain_text(str(people))

            mysqld.kill()
            away = f"MySQL at {mysql.host}:{mysql.port} does not answer since"
            screens.show("mysql-down", "retrying · 1 table failed", f"{prefix}: retrying, 1 failed", alert=away)
            expect(wide.locator("#lag")).to_have_class("old")
            expect(wide.locator("#stream")).to_contain_text("no, ")
            mysqld.start()
            screens.show("again", "running · 1 table failed", f"{prefix}: 1 failed")

            job.kill()
            screens.show("killed", "gone", f"{prefix}: gone")
            expect(wide.locator("body")).to_have_class("gone")
