"""
The pages of the documentation site, their order and their links, from the tree of the repository.

A hook of MkDocs (`hooks` in mkdocs.yml). Beside docs/ the site has the README files, the examples and the project's own
pages. Links work as they do in the repository: a file of source code that a page links to gets a page with its text.
The navigation is the tree, in the order in which the README names its pages, so a new page needs no entry anywhere.
"""

import os
import pathlib
import posixpath
import re
import sys

from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(pathlib.Path(__file__).parent), str(ROOT / "src")]

import generated  # noqa: E402

OUTSIDE = ("*.md", "benchmarks/README.md", "changelog.d/README.md", "examples/**/*.md", "tests/upstream/README.md")
SECTIONS = {
    "Tutorials": ("tutorial/",),
    "How-to guides": ("how-to/",),
    "Reference": ("reference/", "glossary.md"),
    "Explanation": ("explanation/", "differences.md"),
    "Examples": ("examples/",),
    "Runbooks": ("runbooks/",),
    "Project": ("",),
}
SUBSECTIONS = {"reference/rules/": "Rules", "reference/schemas/": "JSON schemas", "decisions/": "Decisions",
               "checklists/": "Checklists", "source/": "Source files"}  # fmt: skip
LANGUAGES = {".py": "python", ".go": "go", ".yaml": "yaml", ".yml": "yaml", ".json": "json"}
LONGEST_SOURCE = 200_000
FENCED = re.compile(r"(^```.*?^```$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(\]\()([^)\s]+)(\))")


def _uri_of(path):
    """Where a file of the repository is on the site: its source URI in MkDocs' terms."""
    if path.parts[0] == "docs":
        return path.relative_to("docs").as_posix()
    if path.as_posix() == "README.md":
        return "index.md"
    if path.suffix == ".md":
        return path.as_posix()
    return f"source/{path.as_posix()}.md"


def _target(page, link):
    """The file that a link of `page` leads to, and its anchor; None for other hosts and the page itself."""
    path, _, anchor = link.partition("#")
    if not path or re.match(r"[a-z]+:", path):
        return None, anchor
    target = pathlib.Path(os.path.normpath(ROOT / page.parent / path)).relative_to(ROOT)
    if (ROOT / target).is_dir():
        target /= "README.md"
    return target, anchor


def _own_pages():
    """The pages outside of docs/, by path in the repository."""
    return sorted(path.relative_to(ROOT) for pattern in OUTSIDE for path in ROOT.glob(pattern))


def _linked_sources(pages):
    """The files outside of docs/ that pages link to and that are no pages themselves."""
    found = set()
    for page in pages:
        for _, link, _ in LINK.findall(FENCED.sub("", (ROOT / page).read_text(encoding="utf-8"))):
            target, _ = _target(page, link)
            if target and target.parts[0] != "docs" and target.suffix != ".md" and (ROOT / target).is_file():
                found.add(target)
    return sorted(found)


def _source_page(path):
    text = (ROOT / path).read_text(encoding="utf-8")[:LONGEST_SOURCE]
    language = LANGUAGES.get(path.suffix, "text")
    return f"---\nsearch: {{exclude: true}}\n---\n\n# {path.as_posix()}\n\n~~~~~~{language}\n{text}\n~~~~~~\n"


def on_files(files, config):
    """Add the pages outside of docs/, those made from the code and of linked source files; set the navigation."""
    own = _own_pages()
    docs = [path.relative_to(ROOT) for path in sorted(ROOT.glob("docs/**/*.md"))]
    contents = {_uri_of(page): (ROOT / page).read_text(encoding="utf-8") for page in own}
    contents |= {_uri_of(path): _source_page(path) for path in _linked_sources([*own, *docs])}
    contents |= generated.pages()
    for uri, content in contents.items():
        files.append(File.generated(config, uri, content=content))
    config.nav = _navigation([file.src_uri for file in files.documentation_pages()])
    return files


def on_page_markdown(markdown, page, config, files):
    """Lead the links of a page to the pages of the site."""
    uri = page.file.src_uri
    if uri.startswith("source/") or uri in generated.pages():
        return markdown
    path = _path_of(uri)
    parts = FENCED.split(markdown)
    parts[::2] = [
        LINK.sub(lambda found: found[1] + _on_site(path, uri, found[2]) + found[3], part) for part in parts[::2]
    ]
    return "".join(parts)


def _path_of(uri):
    """The file of the repository that a page of the site is made from."""
    own = {_uri_of(page): page for page in _own_pages()}
    return own.get(uri, pathlib.Path("docs", uri))


def _on_site(path, uri, link):
    target, anchor = _target(path, link)
    if target is None:
        return link
    there = posixpath.relpath(_uri_of(target), posixpath.dirname(uri) or ".")
    return f"{there}#{anchor}" if anchor else there


def _navigation(uris):
    """Sections with their pages; the pages of a section as the README names them, others after them by name."""
    named = [_uri_of(_target(pathlib.Path("README.md"), link)[0] or pathlib.Path("README.md"))
             for _, link, _ in LINK.findall((ROOT / "README.md").read_text(encoding="utf-8"))]  # fmt: skip
    place = {uri: at for at, uri in reversed(list(enumerate(named)))}
    left = sorted((uri for uri in uris if uri != "index.md"), key=lambda uri: (place.get(uri, len(named)), uri))
    navigation = [{"Bayplan": "index.md"}]
    for title, prefixes in SECTIONS.items():
        chosen = [uri for uri in left if uri.startswith(prefixes)]
        left = [uri for uri in left if uri not in chosen]
        if chosen:
            navigation.append({title: _with_subsections(chosen)})
    return navigation


def _with_subsections(uris):
    section = [uri for uri in uris if not uri.startswith(tuple(SUBSECTIONS))]
    for prefix, title in SUBSECTIONS.items():
        inside = [uri for uri in uris if uri.startswith(prefix)]
        if inside:
            section.append({title: sorted(inside, key=lambda uri: (not uri.endswith("README.md"), uri))})
    return section
