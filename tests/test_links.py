"""Whoever starts at the README finds every page and every example, and no link leads nowhere."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parent.parent
LINK = re.compile(r"\]\(([^)\s]+)\)")
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
FOLDERS = ("docs/how-to", "docs/reference", "docs/explanation", "docs/tutorial", "examples")
TO_FIND = [page for page in PAGES if str(page.relative_to(ROOT)).startswith(FOLDERS)]


def links(page):
    """Each link to a file of ours, with its anchor."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in LINK.findall(text):
        if "://" not in target:
            path, _, anchor = target.partition("#")
            yield (page.parent / path).resolve() if path else page, anchor


def anchors(page):
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target, anchor in links(page):
        assert target.exists(), f"{target} is not there"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{target} has no heading {anchor}"


def test_every_page_can_be_reached_from_the_readme():
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        waiting += [target for target, _ in links(page) if target.exists()]
    assert [str(page.relative_to(ROOT)) for page in TO_FIND if page.resolve() not in reached] == []
