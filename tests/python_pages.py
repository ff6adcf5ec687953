"""
Python that a page or a notebook shows, run in order, in one namespace and at the root of the repository.

A block of text after one of Python, with nothing in between, is what that one prints. A test that a block defines is run.

    PYTHONPATH=src:tests .venv/bin/python tests/python_pages.py     writes what is printed into all of them
"""

import ast
import asyncio
import contextlib
import io
import json
import os
import pathlib
import re

ROOT = pathlib.Path(__file__).parent.parent
PAGES = ("README.md", "docs/how-to/use-from-python.md", "docs/how-to/test-manifests-with-pytest.md")
NOTEBOOKS = ("docs/how-to/explore-a-cluster.ipynb",)
_BLOCK = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", re.DOTALL)


def real(page):
    """The page with what its blocks print, and the blocks that print something without showing it."""
    names, silent = {"__name__": page}, []

    def run(found):
        code, shown = found[1], found[2]
        known = set(names)
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.chdir(ROOT):
            exec(compile(code, page, "exec"), names)
            for name in names.keys() - known:
                if name.startswith("test_"):
                    names[name]()
        if shown is None:
            silent.extend([code] if output.getvalue() else [])
            return found[0]
        return f"```python\n{code}```\n\n```text\n{output.getvalue()}```\n"

    return _BLOCK.sub(run, (ROOT / page).read_text(encoding="utf-8")), silent


def real_notebook(path):
    """The notebook with the outputs of its cells."""
    content = json.loads((ROOT / path).read_text(encoding="utf-8"))
    asyncio.run(_run_cells([cell for cell in content["cells"] if cell["cell_type"] == "code"]))
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


async def _run_cells(cells):
    """While an event loop runs, as in Jupyter."""
    names = {"__name__": "__main__"}
    for number, cell in enumerate(cells, 1):
        stream, value = _outputs("".join(cell["source"]), names)
        cell["execution_count"], cell["outputs"] = number, []
        if stream:
            text = stream.splitlines(keepends=True)
            cell["outputs"].append({"name": "stdout", "output_type": "stream", "text": text})
        if value is not None:
            found = {"data": {"text/plain": repr(value).splitlines(keepends=True)}, "execution_count": number}
            cell["outputs"].append({**found, "metadata": {}, "output_type": "execute_result"})


def _outputs(source, names):
    """What a cell prints, and the value of its last line if that is an expression."""
    tree, output, value = ast.parse(source), io.StringIO(), None
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(output), contextlib.chdir(ROOT):
        exec(compile(tree, "cell", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    return output.getvalue(), value


if __name__ == "__main__":
    os.environ["SOURCE_DATE_EPOCH"] = "1790000000"
    for one in PAGES:
        (ROOT / one).write_text(real(one)[0], encoding="utf-8")
    for one in NOTEBOOKS:
        (ROOT / one).write_text(real_notebook(one), encoding="utf-8")
