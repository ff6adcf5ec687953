"""The documentation site: it builds without a warning, all pages are in its navigation, and all links lead somewhere."""

import html
import os
import pathlib
import re
import subprocess
import sys
import urllib.parse

import click
import pytest

from bayplan.cli import main

ROOT = pathlib.Path(__file__).parents[2]
PAGES = [
    path.relative_to(ROOT)
    for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
]
LINK = re.compile(r"""<a\s[^>]*?href=(?:"([^"]*)"|([^\s>]+))""")
LOADED = re.compile(r"""<(?:script|link|img|iframe|source)\s[^>]*?(?:src|href)=(?:"([^"]*)"|([^\s>]+))""")
ID = re.compile(r"""\sid=(?:"([^"]*)"|([^\s>]+))""")


def build(folder):
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONWARNINGS": ""},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = build(folder)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


@pytest.fixture(scope="module")
def texts(site):
    return {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html") if path.name != "404.html"}


def file_of(page):
    """The file of the site that is made from a page of the repository."""
    if page.parts[0] == "docs":
        page = page.relative_to("docs")
    return page.parent / "index.html" if page.stem == "README" else page.with_suffix("") / "index.html"


def first(pattern, text):
    return [html.unescape(quoted or bare) for quoted, bare in pattern.findall(text)]


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_page_of_the_repository_is_on_the_site(site, page):
    assert (site / file_of(page)).is_file()


def test_every_page_is_in_the_navigation(site, texts):
    index = site / "index.html"
    (navigation,) = re.findall(
        r'<nav class="md-nav md-nav--primary.*?</nav>\s*</div>\s*</div>', texts[index], re.DOTALL
    )
    named = {os.path.normpath(site / link / "index.html") for link in first(LINK, navigation)}
    assert {str(path) for path in texts} - named == set()


def test_every_link_has_a_target(site, texts):
    ids = {path: set(first(ID, text)) for path, text in texts.items()}
    broken = set()
    for path, text in texts.items():
        for link in set(first(LINK, text)):
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or link.startswith("#__"):
                continue
            target = pathlib.Path(os.path.normpath(path.parent / urllib.parse.unquote(parts.path)))
            target = target / "index.html" if target.is_dir() else target if parts.path else path
            if not target.is_file() or (parts.fragment and target in ids and parts.fragment not in ids[target]):
                broken.add((str(path.relative_to(site)), link))
    assert broken == set()


def test_no_page_loads_anything_from_another_host(site, texts):
    loaded = {link for text in texts.values() for link in first(LOADED, text)}
    assert loaded
    assert [link for link in loaded if urllib.parse.urlsplit(link).netloc] == []
    styles = [path.read_text(encoding="utf-8") for path in site.rglob("*.css")]
    assert not [found for text in styles for found in re.findall(r"url\((https?:[^)]*)\)", text)]


def test_every_command_has_its_help_on_the_site(texts, site):
    text = texts[site / "reference" / "commands" / "index.html"]
    for name, command in main.cli.commands.items():
        if not command.hidden:
            assert f'id="bayplan-{name}"' in text
        if not command.hidden and not isinstance(command, click.Group):
            assert f"Usage: bayplan {name}" in html.unescape(re.sub("<[^>]+>", "", text))


def test_a_broken_link_fails_the_build(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("[there](nowhere.md)\n")
    settings = (ROOT / "mkdocs.yml").read_text().replace("hooks: [tools/site/pages.py]\n", "")
    (tmp_path / "mkdocs.yml").write_text(settings)
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict"],
        cwd=tmp_path,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "nowhere.md" in done.stderr
