"""The same question about the same state has the same answer, whatever was asked in between."""

import pathlib
import random

import pytest

import bayplan

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


def asked(state):
    """Questions that change the state to find their answer, and leave it in another order."""
    nodes = list(state.nodes)
    names = [name for name in state.pods if state.pods[name]]
    owners = sorted(
        {f"pod/{name.partition('/')[2]}" for name in names} | {"deploy/web", "sts/web", "sts/api", "sts/db"}
    )
    found = {
        "place": state.place,
        "violations": state.violations,
        "rebalance": state.rebalance,
        "lose": lambda: state.lose(f"node/{nodes[0]}").place(explain=True),
        "drain": lambda: state.drain(f"node/{nodes[1]}").place(),
    }
    return found | {f"explain {name}": (lambda name=name: state.explain(name)) for name in owners}


def answer(ask):
    try:
        return ask().to_dict()
    except bayplan.InputError as error:
        return str(error)


@pytest.mark.parametrize("example", ["13-losses", "17-after-a-node-came-back", "08-dump-of-a-cluster"])
def test_the_answer_does_not_depend_on_what_was_asked_before(example):
    state = bayplan.load(change=EXAMPLES / example)
    questions = asked(state)
    fresh = {name: answer(asked(bayplan.load(change=EXAMPLES / example))[name]) for name in questions}
    order = [name for name in questions for _ in range(2)]
    random.Random(24).shuffle(order)
    for name in order:
        assert answer(questions[name]) == fresh[name], name
