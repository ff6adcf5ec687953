"""Tables in Markdown, and their places in README.md."""

import pathlib
import sys

PAGE = pathlib.Path(__file__).parent / "README.md"


def line(cells):
    return f"| {' | '.join(map(str, cells))} |"


def rule(cells):
    return "|" + "---|" * len(cells)


def table(head, rows):
    return "\n".join([line(head), rule(head), *map(line, rows)])


def write(name, program, table):
    """Replace the table of this name in README.md; `program` is what writes it."""
    begin, end = f"<!-- {name}: written by {program} -->", f"<!-- end of {name} -->"
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        sys.exit(f"{PAGE}: expected {begin} and {end}")
    PAGE.write_text(f"{before}{begin}\n{table}\n{end}{after}", encoding="utf-8")
