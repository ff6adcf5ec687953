from bayplan.writing import tables
from bayplan.writing.tables import Table

TABLE = Table(("NAME", "NODE", "MESSAGE"), [("web-1", "a1", "-"), ("web-22", "", "fits [bold]nowhere")], ["", "red"])


def test_plain_tables_are_aligned():
    assert tables.rendered(TABLE, None) == (
        "NAME    NODE    MESSAGE\n"
        "web-1   a1      -\n"
        "web-22  <none>  fits [bold]nowhere\n"
    )  # fmt: skip


def test_an_empty_table_has_its_header():
    assert tables.rendered(Table(("A", "B"), []), None) == "A  B\n"


def test_cells_are_printable_and_on_one_line():
    assert tables.rendered(Table(("A",), [("x\x1b[2J\ny",)]), None) == "A\nx y\n"


def test_a_table_is_drawn_within_the_width_of_the_terminal():
    drawn = tables.rendered(TABLE, 30)
    assert "\x1b[31m" in drawn
    assert "[bold]" in drawn  # not read as markup
    assert all(len(without_colors(line)) <= 30 for line in drawn.splitlines())


def test_a_drawn_table_strips_escape_sequences_from_cells():
    drawn = tables.rendered(Table(("A",), [("x\x1b[2Jy",)]), 30)
    assert "\x1b[2J" not in drawn


def without_colors(line):
    import re

    return re.sub(r"\x1b\[[0-9;]*m", "", line)
