"""States and answers that are copied, pickled, interrupted, subclassed, and asked while they answer."""

import copy
import json
import pickle
import subprocess
import sys

import msgspec
import pytest

import bayplan

from .test_answers import AS_COMMANDS, ROOT, document, first, fleet, stuck
from .test_answers import in_root as in_root  # noqa: PLC0414 - an autouse fixture


@pytest.mark.parametrize("ask", [ask for _, _, ask in AS_COMMANDS], ids=[" ".join([name, *words]) for name, words, _ in AS_COMMANDS])  # fmt: skip
def test_an_answer_that_is_pickled_is_the_same(ask):
    answer = ask()
    again = pickle.loads(pickle.dumps(answer))
    assert document(again) == document(answer)
    assert str(again) == str(answer)
    assert repr(again) == repr(answer)
    assert pickle.loads(pickle.dumps(again)).to_dict() == again.to_dict()
    assert copy.deepcopy(answer) is copy.copy(answer) is answer


def test_a_pod_of_a_pickled_plan_explains_itself():
    plan = stuck().place()
    again = pickle.loads(pickle.dumps(plan))
    key = next(iter(plan.pods))
    assert document(again.pods[key].explain()) == document(plan.pods[key].explain())
    assert copy.deepcopy(plan.pods[key]).node == plan.pods[key].node


def fixed(explanation, number):
    """The manifests, or the error."""
    try:
        return explanation.apply_fix(number)
    except bayplan.ArgumentError as error:
        return str(error)


def test_a_pickled_explanation_has_the_manifests_of_its_fixes():
    explanation = first().explain("shop/web-4")
    again = pickle.loads(pickle.dumps(explanation))
    assert explanation.fixes
    for number, _ in enumerate(explanation.fixes, 1):
        assert fixed(again, number) == fixed(explanation, number)
    with pytest.raises(bayplan.ArgumentError, match="there is no fix 99"):
        again.apply_fix(99)


@pytest.mark.parametrize("ask", [first, stuck, fleet, lambda: first().lose("node/node-a1").only(selector="app=web")])
def test_a_state_that_is_pickled_is_the_same_in_another_process(ask, tmp_path):
    state = ask()
    assert copy.deepcopy(state) is state
    expected = document(state.place())
    (tmp_path / "state").write_bytes(pickle.dumps(state))
    code = "import json, pickle, sys; print(json.dumps(pickle.load(open(sys.argv[1], 'rb')).place().to_dict()))"
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "state"], capture_output=True, text=True, cwd=tmp_path, env={"PYTHONPATH": str(ROOT / "src")}, check=True)  # fmt: skip
    assert json.loads(done.stdout) == json.loads(msgspec.json.encode(expected))


def test_a_pickle_of_a_live_cluster_has_no_token(tmp_path):
    live = bayplan.Cluster.from_context(server="https://127.0.0.1:1", token="very-secret", kubeconfig=tmp_path / "none")
    assert b"very-secret" not in pickle.dumps(live)
    assert "secret" not in repr(live)


def test_an_interrupted_answer_leaves_the_state_as_it_was():
    cluster = first()
    before = document(cluster.place())

    class InterruptError(BaseException):
        pass

    for stop_at in range(4):
        lines = []

        def interrupt(line, lines=lines, stop_at=stop_at):
            lines.append(line)
            if len(lines) > stop_at:
                raise InterruptError

        with pytest.raises(InterruptError):
            cluster.reporting(interrupt).place()
        assert document(cluster.place()) == before


def test_a_function_for_progress_cannot_ask_the_state():
    cluster = first()
    with pytest.raises(bayplan.BayplanError, match="cannot ask the state"):
        cluster.reporting(lambda _: cluster.place()).place()
    assert len(cluster.place()) == 4


def test_an_error_of_a_question_leaves_the_state_as_it_was():
    cluster = first()
    before = document(cluster.place())
    for ask in (lambda: cluster.lose("node/x").place(), lambda: cluster.explain("pod/x"), lambda: cluster.lose("node/node-a1").cordon("node/node-a1").place()):  # fmt: skip
        with pytest.raises(bayplan.BayplanError):
            ask()
        assert document(cluster.place()) == before


def test_a_subclass_stays_one():
    class Ours(bayplan.Cluster):
        @property
        def webs(self):
            return [key for key in self.pods if key.startswith("shop/web")]

    ours = Ours.from_manifests("examples/01-first-pod").lose("node/node-a1").only(namespace="shop")
    assert type(ours) is Ours
    assert len(ours.webs) == 4
