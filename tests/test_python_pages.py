"""The Python of the pages and the notebook prints what they show."""

import contextlib
import io
import json

import pytest

import python_pages
from python_pages import NOTEBOOKS, PAGES, ROOT


@pytest.fixture(autouse=True)
def settled(monkeypatch, tmp_path):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1790000000")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


@pytest.mark.filterwarnings("ignore:unclosed file")  # as people write it
@pytest.mark.parametrize("page", PAGES)
def test_the_python_of_a_page_prints_what_the_page_shows(page):
    found, silent = python_pages.real(page)
    assert found == (ROOT / page).read_text(encoding="utf-8"), "run tests/python_pages.py"
    assert page == "README.md" or not silent  # its first block prints what is above it: see below


def test_the_first_screen_of_the_readme_is_also_five_lines_of_python():
    first = (ROOT / "README.md").read_text(encoding="utf-8").partition("\n## ")[0]
    code = first.partition("```python\n")[2].partition("```")[0]
    assert 0 < len(code.splitlines()) <= 5
    demo = first.partition("$ make demo\n")[2].partition("```")[0]
    printed = "\n".join(line for line in demo.splitlines() if not line.startswith("note: ")).split()
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.chdir(ROOT):
        exec(code, {})
    assert output.getvalue().split() == printed


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_a_notebook_is_valid_and_its_cells_give_what_it_shows(notebook):
    text = (ROOT / notebook).read_text(encoding="utf-8")
    content = json.loads(text)
    assert (content["nbformat"], content["nbformat_minor"]) == (4, 5)
    assert content["metadata"]["kernelspec"]["language"] == "python"
    assert len({cell["id"] for cell in content["cells"]}) == len(content["cells"])
    assert {cell["cell_type"] for cell in content["cells"]} == {"code", "markdown"}
    assert python_pages.real_notebook(notebook) == text, "run tests/python_pages.py"


def test_all_notebooks_are_run():
    assert sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/**/*.ipynb")) == sorted(NOTEBOOKS)
