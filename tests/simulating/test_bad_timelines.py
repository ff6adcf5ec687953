"""What is wrong with a timeline: every fault at once, with its line, its field and the nearest word."""

import pytest

import bayplan

from .clusters import ZONE, autoscaler, deployment, node, simulate, workload

CLUSTER = [
    node("node-a1"), node("node-b1", "b"), deployment("web"), deployment("api"), autoscaler("web"),
    workload("DaemonSet", "agent"), workload("StatefulSet", "db", 1),
]  # fmt: skip


def faults(text, folder, objects=CLUSTER):
    """The messages without the name of the file."""
    path = folder / "timeline.yaml"
    path.write_text(text)
    with pytest.raises(bayplan.InputError) as error:
        bayplan.Cluster.from_objects(objects).simulate(path)
    assert all(fault.file == str(path) for fault in error.value.faults)
    return [f"{fault.line}: {fault.path}: {fault.message}" for fault in error.value.faults]


@pytest.mark.parametrize("step, message", [
    ("at: soon, restart: web", "steps[0].at: expected a time such as 90s, 12m, 1h30m or 2d, got 'soon'"),
    ("at: 400d, restart: web", "steps[0].at: expected at most 366d, got '400d'"),
    ("at: -5, restart: web", "steps[0].at: expected a time such as 90s, 12m, 1h30m or 2d, got -5"),
    ("at: 1m, loose: node/node-a1", "steps[0].loose: unknown field, did you mean lose?"),
    ("at: 1m", "steps[0]: it does nothing: expected one of lose, recover, "),
    ("lose: node/node-a1", "steps[0]: expected the time of the step in `at`, got nothing"),
    ("at: 1m, lose: node-a1", "steps[0].lose: expected node/NAME or KEY=VALUE of a node label, got 'node-a1'"),
    ("at: 1m, lose: []", "steps[0].lose: expected node/NAME or KEY=VALUE of a node label, got nothing"),
    ("at: 1m, lose: node/node-a2", "steps[0].lose: there is no node node-a2, did you mean node-a1?"),
    (f"at: 1m, lose: {ZONE}=c", f"steps[0].lose: no node has {ZONE}=c, expected one of a, b"),
    ("at: 1m, lose: topology.kubernetes.io/zones=a", f"steps[0].lose: no node has the label topology.kubernetes.io/zones, did you mean {ZONE}?"),
    ("at: 1m, scale: {wbe: 3}", "steps[0].scale[wbe]: there is no workload wbe, did you mean web?"),
    ("at: 1m, scale: {web: many}", "steps[0].scale[web]: expected a whole number, 0 or more, got 'many'"),
    ("at: 1m, scale: {web: -1}", "steps[0].scale[web]: expected a whole number, 0 or more, got -1"),
    ("at: 1m, scale: {agent: 3}", "steps[0].scale[agent]: DaemonSet agent cannot be used here: expected Deployment, "),
    ("at: 1m, scale: {other/web: 3}", "steps[0].scale[other/web]: there is no workload web in namespace other, "),
    ("at: 1m, scale: {Job/web: 3}", "steps[0].scale[Job/web]: expected one of Deployment, StatefulSet, "),
    ("at: 1m, restart: {web: 1}", "steps[0].restart: expected NAME, KIND/NAME or KIND/NAMESPACE/NAME, got a mapping"),
    ("at: 1m, delete: web", "steps[0].delete: expected KIND/NAME, got 'web'"),
    ("at: 1m, delete: Pod/wob-1", "steps[0].delete: there is no Pod wob-1"),
    ("at: 1m, delete: Depolyment/shop/web", "steps[0].delete: unknown kind Depolyment, did you mean Deployment?"),
    ("at: 1m, relabel: {web: {a: b}}", "steps[0].relabel[web]: expected node/NAME, namespace/NAME, pod/NAME, got 'web'"),
    ("at: 1m, taint: {node/node-a1: 'a=b:NoRun'}", "steps[0].taint[node/node-a1]: expected KEY[=VALUE]:EFFECT or KEY[:EFFECT]-"),
    ("at: 1m, load: {api: 3}", "steps[0].load[api]: no HorizontalPodAutoscaler scales Deployment shop/api, so a load changes nothing"),
    ("at: 1m, load: {agent: 3}", "steps[0].load[agent]: DaemonSet agent cannot be used here"),
    ("at: 1m, load: {web: [1, 2]}", "steps[0].load[web]: a curve needs the time that it takes: add `over` to the step"),
    ("at: 1m, over: 5m, restart: web", "steps[0].over: it is for the verb load, which the step does not have"),
    ("at: 1m, until: 5m, restart: web", "steps[0].until: it is for `every` or `expect`, which the step does not have"),
    ("at: 5m, until: 1m, expect: {pending: 0}", "steps[0].until: it is before the step, which is at 5m"),
    ("at: 5m, every: 0, restart: web", "steps[0].every: expected 1s or more, got 0"),
    ("at: 5m, apply: nowhere.yaml", None),
    ("at: 5m, apply: 5", "steps[0].apply: expected a file or an object, got 5"),
    ("at: 5m, rebalance: {moves: 3}", "steps[0].rebalance.moves: unknown field, did you mean maxMoves?"),
    ("at: 5m, expect: {pendign: 0}", "steps[0].expect.pendign: unknown field, did you mean pending?"),
    ("at: 5m, expect: {pending: {of: wbe}}", "steps[0].expect.pending.of: there is no workload wbe, did you mean web?"),
    ("at: 5m, expect: {pending: {atMost: 1, atLeast: 0}}", "steps[0].expect.pending: expected one limit, got atLeast, atMost"),
    ("at: 5m, expect: {pending: {longerThan: 5m}}", "steps[0].expect.pending.longerThan: it can never be judged: only 5m have passed by then"),
    ("at: 5m, expect: {ready: 2}", "steps[0].expect.ready: expected the workload in `of`, got nothing"),
    ("at: 5m, expect: {ready: {of: web}}", "steps[0].expect.ready: expected a limit, one of exactly, "),
    ("at: 5m, expect: {ready: {of: web, atLeast: 1, inEvery: rack}}", "steps[0].expect.ready.inEvery: it can never be judged: no node has rack"),
    ("at: 5m, expect: {evictions: {fewerThan: 0}}", "steps[0].expect.evictions.fewerThan: no number is fewer than 0"),
    ("at: 5m, expect: {evictions: {atLeast: 0}}", "steps[0].expect.evictions.atLeast: every number is at least 0"),
    ("at: 5m, expect: {evictions: {cause: enforcement, atMost: 1}}", "steps[0].expect.evictions.cause: it can never be judged: the timeline enforces no rules"),
    ("at: 5m, expect: {evictions: {cause: rain, atMost: 1}}", "steps[0].expect.evictions.cause: expected one of enforcement, "),
    ("at: 5m, expect: {violations: 0}", "steps[0].expect.violations: it can never be judged: no pod has a rule that holds during execution"),
    ("at: 5m, expect: {moves: 0}", "steps[0].expect.moves: it can never be judged: nothing moves pods without the verb rebalance"),
])  # fmt: skip
def test_a_bad_step_is_named_with_its_line(tmp_path, step, message):
    text = f"about: bad\n\nsteps:\n- {{{step}}}\n"
    if message is None:
        path = tmp_path / "timeline.yaml"
        path.write_text(text)
        with pytest.raises(bayplan.InputError, match=r"nowhere\.yaml: no such file or directory"):
            bayplan.Cluster.from_objects(CLUSTER).simulate(path)
        return
    (found,) = faults(text, tmp_path)
    assert found.startswith(f"4: {message}")


@pytest.mark.parametrize("text, message", [
    ("steps: 3\n", "1: steps: expected a list, got 3"),
    ("kind: Timelien\nsteps: []\nlasts: 1h\n", "1: kind: expected Timeline, got 'Timelien'"),
    ("apiVersion: v1\nlasts: 1h\n", "1: apiVersion: expected bayplan.io/v1alpha1, got 'v1'"),
    ("about: nothing\n", "1: : expected `steps`, got nothing"),
    ("lasts: 5m\nsteps:\n- {at: 10m, restart: web}\n", "3: steps[0].at: it is after the end: the timeline lasts 5m"),
    ("lasts: 1h\ntiming: {of: {wbe: {start: 1s}}}\n", "2: timing.of[wbe]: there is no workload wbe, did you mean web?"),
    ("lasts: 1h\ntiming: {begin: 1s}\n", "2: timing.begin: unknown field, expected one of of, run, start, stop"),
    ("lasts: 1h\nfailures:\n- {rate: often, lasts: 5m}\n", "3: failures[0].rate: expected failures per time, such as 6/d, at most one a second, got 'often'"),
    ("lasts: 1h\nfailures:\n- {rate: 6/d}\n", "3: failures[0].lasts: expected a time, or the shortest and the longest"),
    ("lasts: 1h\nfailures:\n- {rate: 6/d, lasts: 5m, nodes: node/x}\n", "3: failures[0].nodes: there is no node x"),
    ("lasts: 1h\nenforcement: {grace: 5m}\n", "2: enforcement.grace: unknown field"),
])  # fmt: skip
def test_a_bad_head_is_named_with_its_line(tmp_path, text, message):
    assert any(found.startswith(message) for found in faults(text, tmp_path))


def test_times_that_go_back_are_named_with_both_times(tmp_path):
    text = "steps:\n- {at: 10m, restart: web}\n- {at: 5m, restart: web}\n"
    assert faults(text, tmp_path) == ["3: steps[1].at: times go back: 5m is before 10m of the step above"]


def test_everything_wrong_is_reported_at_once_and_nothing_is_simulated(tmp_path):
    text = "steps:\n- {at: 1m, lose: node/x}\n- {at: 2m, scale: {x: 1}}\n- {at: 3m, load: {api: 1}}\n"
    assert [found.split(":")[0] for found in faults(text, tmp_path)] == ["2", "3", "4"]


def test_an_object_is_there_once_it_is_applied_and_gone_once_it_is_deleted(tmp_path):
    steps = [
        {"at": "1m", "apply": deployment("new")},
        {"at": "2m", "scale": {"new": 2}},
        {"at": "3m", "delete": "Deployment/new"},
    ]
    assert simulate(CLUSTER, steps).ok
    with pytest.raises(bayplan.InputError, match=r"steps\[0\].scale\[new\]: there is no workload new"):
        simulate(CLUSTER, steps[1:])
    with pytest.raises(bayplan.InputError, match=r"steps\[3\].scale\[new\]: there is no workload new"):
        simulate(CLUSTER, [*steps, {"at": "4m", "scale": {"new": 2}}])


def test_a_name_that_several_objects_have_must_say_which_one_is_meant():
    objects = [*CLUSTER, workload("StatefulSet", "web", 1)]
    with pytest.raises(bayplan.InputError, match="web may be any of Deployment/shop/web, StatefulSet/shop/web"):
        simulate(objects, [{"at": "1m", "scale": {"web": 1}}])
    assert simulate(objects, [{"at": "1m", "scale": {"Deployment/web": 1}}]).ok


def test_what_has_no_effect_is_not_applied():
    config = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "l", "namespace": "shop"},
        "spec": {"limits": []},
    }
    with pytest.raises(bayplan.InputError, match="a LimitRange has no effect in a simulation"):
        simulate(CLUSTER, [{"at": "1m", "apply": config}])


def test_manifests_are_validated_before_anything_happens(tmp_path):
    bad = deployment()
    bad["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "much"
    with pytest.raises(bayplan.InputError, match=r"resources\.requests"):
        simulate(CLUSTER, [{"at": "1m", "apply": bad}])


def test_an_end_before_a_state_that_is_asked_for_is_an_argument_error():
    with pytest.raises(bayplan.ArgumentError, match="the timeline lasts 5m"):
        simulate(CLUSTER, [], lasts="5m", at=["6m"])
