from bayplan.writing import tables
from bayplan.writing.tables import Table

TABLE = Table(("NAME", "NODE", "MESSAGE"), [("web-1", "a1", "-"), ("web-22", "", "fits [bold]nowhere")], ["", "red"])


def test_plain_tables_are_aligned():
    assert tables.plain(TABLE) == (
        "NAME    NODE    MESSAGE\n"
        "web-1   a1      -\n"
        "web-22  <none>  fits [bold]nowhere\n"
    )  # fmt: skip


def test_an_empty_table_has_its_head():
    assert tables.plain(Table(("A", "B"), [])) == "A  B\n"


def test_cells_are_clean_and_on_one_line():
    assert tables.plain(Table(("A",), [("x\x1b[2J\ny",)])) == "A\nx y\n"


def test_a_drawn_table_fits_the_terminal():
    drawn = tables.coloured(TABLE, 30)
    assert "\x1b[31m" in drawn
    assert "[bold]" in drawn  # no markup
    assert all(len(_without_colours(line)) <= 30 for line in drawn.splitlines())


def test_a_drawn_table_obeys_no_cell():
    drawn = tables.coloured(Table(("A",), [("x\x1b[2Jy",)]), 30)
    assert "\x1b[2J" not in drawn


def test_the_width_says_which():
    assert tables.rendered(TABLE, None) == tables.plain(TABLE)
    assert tables.rendered(TABLE, 40) == tables.coloured(TABLE, 40)


def _without_colours(line):
    import re

    return re.sub(r"\x1b\[[0-9;]*m", "", line)
