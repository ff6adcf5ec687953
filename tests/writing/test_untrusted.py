import pytest

from bayplan.writing import untrusted


@pytest.mark.parametrize("text, clean", [
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
    ("a\u00a0b", "a\u00a0b"),  # a space that does not break is harmless
])  # fmt: skip
def test_nothing_but_what_is_seen(text, clean):
    assert untrusted.clean(text) == clean


def test_line_breaks_may_be_kept():
    assert untrusted.clean_lines("a\x07\nb\n") == "a\nb\n"
