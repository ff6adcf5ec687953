import pytest

from bayplan.writing import tables


@pytest.mark.parametrize("text, shown", [
    ("web-1", "web-1"),
    ("café 北京", "café 北京"),
    ("\x1b[31mred\x1b[0m", "red"),
    ("\x9b31mred", "red"),
    ("\x1b]0;title\x07name", "name"),
    ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
    ("\x1bcreset", "reset"),
    ("two\nlines\r\tand more", "two lines and more"),
    ("null\0 and bell\x07", "null and bell"),
    ("abc\u202etxt.exe", "abctxt.exe"),  # would be shown backwards
    ("\u2066x\u2069\u200b", "x"),
    ("a\u00a0b", "a\u00a0b"),  # a non-breaking space is visible
])  # fmt: skip
def test_only_visible_characters_remain(text, shown):
    assert tables.printable(text) == shown


def test_printable_lines_keeps_line_breaks():
    assert tables.printable_lines("a\x07\nb\n") == "a\nb\n"
