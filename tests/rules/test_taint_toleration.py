"""TaintToleration: which taints keep a pod away, and which lower a node's score."""

import pytest

from bayplan.rules.taint_toleration import TaintToleration
from rules.shorthand import node, pod, run, taints, tolerations

UNTOLERATED = "UU node(s) had untolerated taint(s)"
YES, NO = True, False


def ask(tolerated, *tainted):
    on = [node(f"n{i}", taints=taints(text)) for i, text in enumerate(tainted)]
    return run(TaintToleration(), pod("web", tolerations=tolerations(tolerated)), on)


@pytest.mark.parametrize("tainted, tolerated, fits", [
    ("",                         "",                        YES),
    ("app=db:NoSchedule",        "",                        NO),
    ("app=db:NoExecute",         "",                        NO),
    ("app=db:PreferNoSchedule",  "",                        YES),
    ("app:NoSchedule",           "",                        NO),
    ("app=db:NoSchedule",        "app=db:NoSchedule",       YES),
    ("app=db:NoSchedule",        "app=web:NoSchedule",      NO),
    ("app=db:NoSchedule",        "app=db:NoExecute",        NO),
    ("app=db:NoSchedule",        "app=db:PreferNoSchedule", NO),
    ("app=db:NoSchedule",        "app=db",                  YES),  # no effect: any effect
    ("app=db:NoExecute",         "app=db",                  YES),
    ("app=db:NoSchedule",        "app:NoSchedule",          YES),  # Exists: any value
    ("app=db:NoSchedule",        "app",                     YES),
    ("app=db:NoSchedule",        "ap",                      NO),
    ("app=db:NoSchedule",        ":",                       YES),  # no key and Exists: every taint
    ("app=db:NoSchedule",        ":NoSchedule",             YES),
    ("app=db:NoSchedule",        ":NoExecute",              NO),
    ("app=db:NoSchedule",        "=db",                     YES),  # no key and Equal: any key with this value
    ("app=db:NoSchedule",        "=web",                    NO),
    ("app:NoSchedule",           "app=:NoSchedule",         YES),  # an empty value equals an empty value
    ("app=db:NoSchedule",        "app=:NoSchedule",         NO),
    ("a:NoSchedule,b:NoExecute", "a",                       NO),   # every taint
    ("a:NoSchedule,b:NoExecute", "a,b",                     YES),
    ("a:NoSchedule,a:NoExecute", "a:NoSchedule",            NO),
    ("a:PreferNoSchedule,b:NoSchedule", "b",                YES),
])  # fmt: skip
def test_hard_taints(tainted, tolerated, fits):
    assert ask(tolerated, tainted).rejected == ({} if fits else {"n0": UNTOLERATED})


def test_an_absent_operator_is_equal():
    on = [node("n0", taints=taints("app=db:NoSchedule"))]
    for value, rejected in (("db", {}), ("", {"n0": UNTOLERATED})):
        asked = pod("web", tolerations=[{"key": "app", "value": value, "effect": "NoSchedule"}])
        assert run(TaintToleration(), asked, on).rejected == rejected


@pytest.mark.parametrize("operator, value", [("Gt", "4"), ("Lt", "6")])
def test_comparisons_tolerate_nothing(operator, value):
    """They need an alpha feature gate of kube-scheduler."""
    asked = pod("web", tolerations=[{"key": "level", "operator": operator, "value": value, "effect": "NoSchedule"}])
    on = [node("n0", taints=taints("level=5:NoSchedule"))]
    assert run(TaintToleration(), asked, on).rejected == {"n0": UNTOLERATED}


@pytest.mark.parametrize(
    "tolerated, tainted, raw, scores",
    [
        ("", ["", ""], "0 0", "100 100"),  # never skipped: nothing tainted is worth 100
        ("", ["a:PreferNoSchedule", ""], "1 0", "0 100"),
        ("", ["a:PreferNoSchedule,b:PreferNoSchedule", "a:PreferNoSchedule", ""], "2 1 0", "0 50 100"),
        ("", ["a:PreferNoSchedule,b:PreferNoSchedule,c:PreferNoSchedule", "a:PreferNoSchedule"], "3 1", "0 67"),
        ("", ["a:PreferNoSchedule", "a:PreferNoSchedule"], "1 1", "0 0"),
        ("a", ["a:PreferNoSchedule", "b:PreferNoSchedule"], "0 1", "100 0"),
        ("a:PreferNoSchedule", ["a:PreferNoSchedule", ""], "0 0", "100 100"),
        ("a:NoSchedule", ["a:PreferNoSchedule", ""], "1 0", "0 100"),
        (":", ["a:PreferNoSchedule", ""], "0 0", "100 100"),
        ("a", ["a:NoSchedule", ""], "0 0", "100 100"),
    ],
)
def test_preferred_taints(tolerated, tainted, raw, scores):
    found = ask(tolerated, *tainted)
    assert list(found.raw.values()) == [int(word) for word in raw.split()]
    assert list(found.scores.values()) == [int(word) for word in scores.split()]


def test_evidence_names_each_untolerated_taint():
    found = ask("b", "a=1:NoSchedule,b:NoSchedule,c:NoExecute,d:PreferNoSchedule").failures["n0"]
    assert [failure.term for failure in found] == ["a=1:NoSchedule", "c:NoExecute"]
    assert found[0].detail == "a=1:NoSchedule is not tolerated"
