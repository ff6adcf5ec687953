"""
The pictures of the documentation are made by this test: `make screenshots` writes them into docs/images.

They are looked at by people; here only that each shows what its page says.
"""

import os
import pathlib
import struct

import pytest

from . import pages
from .pages import settled
from .test_page import click_box, click_item, text

EXAMPLE = "examples/01-first-pod"
FLEET = ("examples/10-fleet-idc-first/fleet", "examples/10-fleet-idc-first/shop-30.yaml")


@pytest.fixture
def folder(tmp_path):
    return pathlib.Path(os.environ.get("BAYPLAN_SCREENSHOTS") or tmp_path)


def kept(page, path):
    """The picture is written, and as large as the window."""
    page.screenshot(path=path)
    width, height = struct.unpack(">II", path.read_bytes()[16:24])
    assert (width, height) == (1280, 720)
    assert path.stat().st_size > 20_000


def test_why_a_pod_waits(chromium, folder):
    with pages.served(pages.manifests(EXAMPLE)) as url, pages.opened(chromium, url, height=720) as page:
        page.select_option("#moment", "after")
        settled(page)
        click_item(page, "shop/web-4")
        assert "Why pending" in text(page)
        kept(page, folder / "why-pending.png")


def test_what_happens_if_a_zone_is_lost(chromium, folder):
    with (
        pages.served(pages.manifests(EXAMPLE)) as url,
        pages.opened(chromium, url, height=720, color_scheme="dark") as page,
    ):
        click_box(page, "zone-b")
        page.get_by_role("button", name="Lose").click()
        settled(page)
        assert "Nodes lost: node-b1, node-b2" in text(page)
        kept(page, folder / "zone-lost.png")


def test_the_replicas_of_a_fleet(chromium, folder):
    with pages.served(pages.manifests(*FLEET)) as url, pages.opened(chromium, url, height=720) as page:
        page.select_option("#moment", "after")
        settled(page)
        click_item(page, "shop/shop-deployment")
        assert "Replicas by cluster" in text(page)
        kept(page, folder / "fleet.png")
