"""The random questions are answerable, varied, and make the presets matter."""

from collections import Counter

from hypothesis import HealthCheck, given, settings

from reference import label_keys, pods, strategies


def seen(questions):
    """How often each outcome came up."""
    counts = Counter()
    for question in questions:
        answer = pods.answer(question)
        counts["none fits" if answer["message"] else "some fit"] += 1
        for verdict in answer["nodes"].values():
            counts[verdict.get("plugin") or verdict["code"]] += 1
            for plugin in verdict.get("scores") or {}:
                counts[f"score {plugin}"] += 1
        given_up = {**question["options"], "switches": {}}
        presets = [
            pods.answer({**question, "options": {**given_up, "semantics": name}}) for name in ("upstream", "design")
        ]
        counts["presets differ"] += presets[0]["nodes"] != presets[1]["nodes"]
    return counts


def test_random_questions_reach_every_rule():
    counts = seen(strategies.seeded(seed) for seed in range(300))
    assert not [name for name, rule in pods.RULES.items() if hasattr(rule, "check") and not counts[name]]
    assert not [name for name, rule in pods.RULES.items() if hasattr(rule, "score") and counts[f"score {name}"] < 20]
    assert counts["PreFilterExcluded"]
    assert counts["none fits"] > 50
    assert counts["some fit"] > 50
    assert counts["presets differ"] > 30


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(strategies.questions())
def test_the_order_of_nodes_and_pods_changes_nothing(question):
    turned = {**question, "nodes": question["nodes"][::-1], "pods": question["pods"][::-1]}
    one, other = pods.answer(question), pods.answer(turned)
    assert one["nodes"] == other["nodes"]
    assert sorted(one["best"]) == sorted(other["best"])
    assert one["message"] == other["message"]


def test_expanding_label_keys_twice_changes_nothing():
    for seed in range(200):
        once = label_keys.expand(strategies.seeded(seed)["pod"])
        assert label_keys.expand(once) == once
