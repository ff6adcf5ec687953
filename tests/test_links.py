"""Every page and every example can be reached from the README, and every link has a target."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parent.parent
LINK = re.compile(r"\]\(([^)\s]+)\)")
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
FOLDERS = ("docs/how-to", "docs/reference", "docs/explanation", "docs/tutorial", "examples")
TO_FIND = [page for page in PAGES if str(page.relative_to(ROOT)).startswith(FOLDERS)]


def links(page):
    """Each link to a file of the repository, with its anchor."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in LINK.findall(text):
        if "://" not in target:
            path, _, anchor = target.partition("#")
            yield (page.parent / path).resolve() if path else page, anchor


def anchors(page):
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_have_a_target(page):
    for target, anchor in links(page):
        assert target.exists(), f"{target} does not exist"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{target} has no heading {anchor}"


def test_every_page_can_be_reached_from_the_readme():
    reached, unread = set(), [ROOT / "README.md"]
    while unread:
        page = unread.pop()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        unread += [target for target, _ in links(page) if target.exists()]
    assert [str(page.relative_to(ROOT)) for page in TO_FIND if page.resolve() not in reached] == []
