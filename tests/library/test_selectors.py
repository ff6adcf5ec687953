"""Label selectors as -l and `only` take them."""

import pytest

from bayplan.errors import ArgumentError
from bayplan.library import inputs

YES, NO = True, False


@pytest.mark.parametrize("text, labels, matches", [
    ("app=web", {"app": "web"}, YES),
    ("app==web", {"app": "web"}, YES),
    ("app = web", {"app": "db"}, NO),
    ("app=", {"app": ""}, YES),
    ("app!=web", {}, YES),  # an absent key is not equal either
    ("app", {"app": ""}, YES),
    ("!app", {"app": ""}, NO),
    ("app in (web, db)", {"app": "db"}, YES),
    ("app notin (web,db),tier=1", {"tier": "1"}, YES),
    ("example.com/app=web,tier", {"example.com/app": "web"}, NO),
    ("", {}, YES),
    ("in in (in)", {"in": "in"}, YES),
])  # fmt: skip
def test_selectors_follow_the_grammar_of_kubectl(text, labels, matches):
    assert inputs.parse_selector(text).matches(labels) is matches


@pytest.mark.parametrize(
    "text", ["a b", "=web", "app=web,", "app in web", "app in (a b)", "a=b=c", "app in (a,b", "-a"]
)
def test_anything_else_is_an_error_of_the_argument(text):
    with pytest.raises(ArgumentError):
        inputs.parse_selector(text)
