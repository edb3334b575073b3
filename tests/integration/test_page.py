"""The page of a job in a real browser: what it shows, what its buttons do, in the dark and on a narrow screen."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from pydantic import SecretStr

from incsnap.config.explained import Explained
from incsnap.config.settings import MonitoringSettings
from incsnap.errors import ConfigError
from incsnap.monitoring.http_server import StatusServer
from incsnap.monitoring.job_status import Point
from incsnap.monitoring.status import RETRYING, Failure, JobStatus, NotificationStatus, SnapshotStatus
from tests.support.job_statuses import running
from tests.support.waiting import PATIENCE_SECONDS

TOKEN = "a-token-of-some-length"
_CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

pytestmark = pytest.mark.skipif(_CHROMIUM is None, reason="no Chromium on this machine (Debian: apt install chromium)")


@dataclass
class Job:
    #: A job without a gap, which would be named in the title.
    status: JobStatus = field(default_factory=lambda: running(gap=None))
    token: str = TOKEN
    sent: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def send(self, kind: str, data: dict[str, Any]) -> tuple[str, list[str]]:
        if data.get("data-collections") == ["bad"]:
            raise ConfigError("The signal would be ignored: bad", "Name a table.")
        self.sent.append((kind, data))
        return "its-id", []


@contextmanager
def patient_expectations() -> Iterator[None]:
    """Let what is expected of a page come as late as a test waits. Playwright's own limit is 5 s."""
    expect.set_options(timeout=PATIENCE_SECONDS * 1_000)
    yield
    expect.set_options(timeout=5_000)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as play, patient_expectations():
        # As root, in a container, Chromium's own sandbox cannot be had; it is given our page alone.
        chromium = play.chromium.launch(
            executable_path=_CHROMIUM, args=["--no-sandbox"], timeout=PATIENCE_SECONDS * 1_000
        )
        yield chromium
        chromium.close()


@pytest.fixture
def job() -> Job:
    return Job()


@pytest.fixture
def server(job: Job) -> Iterator[StatusServer]:
    settings = MonitoringSettings(port=None, token=SecretStr(job.token))
    explained = (Explained("topic.prefix", "shop", "file", "obeyed", "a <b>note</b>"),)
    points = [Point(at, 60, 1_000.0, 50_000.0, 5e7) for at in range(900)]
    made = StatusServer(settings, lambda: job.status, lambda: points, explained, job.send)
    yield made
    made.close()


@pytest.fixture
def page(browser: Browser, server: StatusServer) -> Iterator[Page]:
    yield from opened(browser, server)


def opened(browser: Browser, server: StatusServer, **more: Any) -> Iterator[Page]:
    """Yield the open page. At the end its console must have no error."""
    page = browser.new_page(**more)
    console: list[str] = []
    page.on("console", lambda message: console.append(message.text))
    page.on("pageerror", lambda error: console.append(str(error)))
    page.goto("http://{}:{}/".format(*server.address))
    expect(page.locator("#prefix")).to_have_text("shop")
    yield page
    page.close()
    assert [text for text in console if "status of 40" not in text] == []


def test_the_page_shows_all_parts_of_a_busy_job(page: Page) -> None:
    expect(page).to_have_title("shop: 1 failed, tables differ, keys given up")
    expect(page.locator("#state")).to_have_text("running · tables differ · keys given up · 1 table failed")
    expect(page.locator("#failed")).to_have_text("Not read completely: shop.lines (INCOMPLETE)")
    expect(page.locator("#servers")).to_have_text("MySQL db:3306 → Kafka k:9092")
    expect(page.locator("#lag-scale")).to_contain_text("peak ")
    expect(page.locator("#lag")).to_have_text("0.063 s")
    expect(page.locator("#behind")).to_have_text("400 kB of binlog behind")
    expect(page.get_by_role("progressbar", name="shop.orders")).to_have_attribute("aria-valuenow", "62")
    table = page.locator(".table").first
    expect(table).to_contain_text("62 % · 1,240,000 rows of about 2,000,000 (1,900,000 to 2,300,000)")
    expect(table).to_contain_text("2 ranges are read again, one of them 3 times so far")
    expect(table).to_contain_text("given up (quarantine): keys (26, 27]")
    expect(page.locator("#waiting")).to_have_text("waiting: shop.a, shop.b, shop.c")
    expect(page.locator("#told")).to_contain_text("STARTED nightly shop.orders,shop.lines")
    expect(page.locator("#finished")).to_contain_text("shop.lines INCOMPLETE, 4,000,000 rows")
    expect(page.locator("#stream")).to_contain_text("binlog.000042:1,000,000")


def test_the_page_shows_a_gap_while_it_is_compared_and_afterwards(page: Page, job: Job) -> None:
    gap = running().gap
    assert gap is not None
    gap = replace(gap, failures=0, whole=0)
    job.status = replace(job.status, gap=gap)
    expect(page.locator("#gap")).to_have_text(
        "Gap in the binlog: tables are compared with their topics: 9 done, 3 left;"
        " 1,234 keys that differ are sent again"
    )
    badge = "running · closing a gap · tables differ · keys given up · 1 table failed"
    expect(page.locator("#state")).to_have_text(badge)
    expect(page).to_have_title("shop: 1 failed, closing a gap, tables differ, keys given up")
    job.status = replace(job.status, gap=replace(gap, failure="MySQL is away"))
    expect(page.locator("#gap")).to_contain_text("the last attempt failed: MySQL is away")
    job.status = replace(job.status, gap=replace(gap, left=0, ended_ms=1))
    expect(page.locator("#gap")).to_contain_text("tables were compared until")
    expect(page.locator("#state")).to_have_text("running · tables differ · keys given up · 1 table failed")
    job.status = replace(job.status, gap=None)
    expect(page.locator("#gap")).to_be_hidden()


def test_windows_are_drawn_on_the_side_of_the_stream_where_they_are(page: Page) -> None:
    stream = page.locator("#windows-line line").evaluate("line => line.x1.baseVal.value")
    sides = page.locator("#windows-line rect").evaluate_all(
        "all => all.map(one => [one.className.baseVal, one.x.baseVal.value, one.width.baseVal.value])"
    )

    assert [kind for kind, _, _ in sides] == ["releasing", "read", "read", "reading"]
    assert sides[0][1] + sides[0][2] == pytest.approx(stream)
    assert [begin for _, begin, _ in sides[1:]] == pytest.approx([stream] * 3)
    assert sides[1][2] < sides[2][2]


def test_the_page_follows_the_job(page: Page, job: Job) -> None:
    assert job.status.stream is not None
    job.status = replace(job.status, stream=replace(job.status.stream, lag_ms=4_200))
    expect(page.locator("#lag")).to_have_text("4.2 s")

    failure = Failure("MySQL does not answer", "start it", job.status.written_ms, 3)
    job.status = replace(job.status, state=RETRYING, failure=failure)
    expect(page.locator("#state")).to_have_text("retrying · tables differ · keys given up · 1 table failed")
    expect(page).to_have_title("shop: retrying, 1 failed, tables differ, keys given up")
    expect(page.get_by_role("alert")).to_contain_text("MySQL does not answer → start it")


def test_a_binlog_file_that_may_soon_be_purged_is_in_the_badge(page: Page, job: Job) -> None:
    stream = job.status.stream
    assert stream is not None
    soon = replace(stream, purge_not_before_ms=job.status.written_ms + 60_000)
    job.status = replace(job.status, stream=soon, snapshot=SnapshotStatus(), verification=None)

    expect(page.locator("#state")).to_have_text("running · binlog purged soon")
    expect(page).to_have_title("shop: binlog purged soon")


def test_foreign_text_is_escaped(page: Page, job: Job) -> None:
    notification = NotificationStatus("<img src=x onerror=alert(1)>", "STARTED", 5, {"data_collections": "<b>bold</b>"})
    job.status = replace(job.status, notifications=(notification,))

    expect(page.locator("#told")).to_contain_text("<img src=x onerror=alert(1)> <b>bold</b>")
    page.locator("summary").click()
    expect(page.locator("#settings")).to_contain_text("a <b>note</b>")


def test_a_job_that_ended_is_said_to_be_gone(browser: Browser, server: StatusServer) -> None:
    page = browser.new_page()
    page.goto("http://{}:{}/".format(*server.address))
    expect(page.locator("#prefix")).to_have_text("shop")
    server.close()

    expect(page.locator("#state")).to_have_text("gone")
    expect(page).to_have_title("shop: gone")
    expect(page.locator("body")).to_have_class("gone")
    expect(page.get_by_role("alert")).to_contain_text("The job does not answer any more")
    page.close()


def test_a_job_that_gives_no_answer_is_said_to_be_gone(page: Page) -> None:
    expect(page.locator("#state")).to_contain_text("running")
    # A request that nobody answers, as that of a frozen process.
    page.route("**/status", lambda route: None)

    expect(page.locator("#state")).to_have_text("gone", timeout=30_000)
    expect(page.get_by_role("alert")).to_contain_text("The job does not answer any more")


def test_buttons_send_signals_with_the_token(page: Page, job: Job) -> None:
    page.get_by_role("textbox", name="token").fill(TOKEN)
    page.get_by_role("textbox", name="tables").fill("shop.orders, shop.li.*")
    page.get_by_role("button", name="Snapshot", exact=True).click()
    expect(page.locator("#answer")).to_have_text("execute-snapshot is sent; its id is its-id")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#answer")).to_have_text("pause-snapshot is sent; its id is its-id")
    expect(page.get_by_role("button", name="Resume")).to_be_disabled()
    job.status = replace(job.status, snapshot=replace(job.status.snapshot, paused=True))
    page.get_by_role("button", name="Resume").click()
    expect(page.locator("#answer")).to_have_text("resume-snapshot is sent; its id is its-id")
    page.get_by_role("textbox", name="tables").fill("")
    page.once("dialog", lambda dialog: dialog.dismiss())
    page.get_by_role("button", name="Stop snapshot").click()
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Stop snapshot").click()
    expect(page.locator("#answer")).to_have_text("stop-snapshot is sent; its id is its-id")

    tables = {"type": "incremental", "data-collections": ["shop.orders", "shop.li.*"]}
    assert job.sent == [
        ("execute-snapshot", tables),
        ("pause-snapshot", {}),
        ("resume-snapshot", {}),
        ("stop-snapshot", {"type": "incremental"}),
    ]


def test_a_wrong_token_and_a_bad_signal_show_an_error(page: Page, job: Job) -> None:
    page.get_by_role("textbox", name="token").fill("another-token-as-long")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#answer")).to_have_text("wrong token")
    expect(page.locator("#answer")).to_have_class("bad")
    page.get_by_role("textbox", name="token").fill("")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#answer")).to_have_text("token missing")
    page.get_by_role("textbox", name="token").fill(TOKEN)
    page.get_by_role("textbox", name="tables").fill("bad")
    page.get_by_role("button", name="Snapshot", exact=True).click()
    expect(page.locator("#answer")).to_have_text("The signal would be ignored: bad → Name a table.")
    assert job.sent == []


def test_without_a_token_in_the_settings_there_are_no_buttons(browser: Browser, job: Job) -> None:
    settings = MonitoringSettings(port=None)
    server = StatusServer(settings, lambda: job.status, list, (), job.send)
    for page in opened(browser, server):
        expect(page.get_by_role("button")).to_have_count(0)
    server.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1_200])
def test_the_page_fits_a_narrow_screen_and_has_a_dark_theme(
    scheme: str, width: int, browser: Browser, server: StatusServer
) -> None:
    for page in opened(browser, server, viewport={"width": width, "height": 700}, color_scheme=scheme):
        page.locator("summary").click()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        background, ink = (
            page.evaluate(f"getComputedStyle(document.body).{name}.match(/\\d+/g).map(Number)")
            for name in ("backgroundColor", "color")
        )
        assert (sum(background) < sum(ink)) == (scheme == "dark")
