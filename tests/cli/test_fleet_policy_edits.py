"""An edited policy releases what it no longer selects, and claims stay: fleets as `kubectl get` prints them."""

import json

import pytest
import yaml

DEPLOYMENTS = {"apiVersion": "apps/v1", "kind": "Deployment"}
AGGREGATED = {"replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}}
RELEASED = "released by an edited policy, selected by no other one, and left where they are"


def cluster(name):
    return {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": name},
        "spec": {"syncMode": "Push"},
        "status": {
            "apiEnablements": [{"groupVersion": "apps/v1", "resources": [{"kind": "Deployment"}]}],
            "resourceSummary": {"allocatable": {"cpu": "50", "pods": "110"}},
        },
    }


def policy(name, clusters, *selectors, namespace="web", **spec):
    where = {"namespace": namespace} if namespace else {}
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy" if namespace else "ClusterPropagationPolicy",
        "metadata": {"name": name, **where},
        "spec": {
            "resourceSelectors": [{**DEPLOYMENTS, **where, **one} for one in selectors or ({},)],
            "placement": {"clusterAffinity": {"clusterNames": clusters}, **AGGREGATED},
            **spec,
        },
    }


def of_server(written, prefix="propagationpolicy"):
    """The policy as the server returns it."""
    meta = {**written["metadata"], "uid": "u", "resourceVersion": "1"}
    meta["labels"] = {f"{prefix}.karmada.io/permanent-id": f"id-{meta['name']}"}
    return {**written, "metadata": meta}


def claimed_by(written):
    """Labels and annotations of what the policy has claimed."""
    namespace, name = written["metadata"].get("namespace"), written["metadata"]["name"]
    prefix = "propagationpolicy" if namespace else "clusterpropagationpolicy"
    annotations = {f"{prefix}.karmada.io/name": name}
    if namespace:
        annotations[f"{prefix}.karmada.io/namespace"] = namespace
    return {"labels": {f"{prefix}.karmada.io/permanent-id": f"id-{name}"}, "annotations": annotations}


def binding(name, of, clusters, replicas=3, labels=None, **spec):
    claim, placement = claimed_by(of), of["spec"]["placement"]
    annotations = {**claim["annotations"], "policy.karmada.io/applied-placement": json.dumps(placement)}
    if labels is not None:
        annotations["bayplan.io/workload-labels"] = json.dumps(labels)
    return {
        "apiVersion": "work.karmada.io/v1alpha2",
        "kind": "ResourceBinding",
        "metadata": {
            "name": f"{name}-deployment", "namespace": "web", "uid": f"b-{name}", "resourceVersion": "1",
            "labels": claim["labels"], "annotations": annotations,
        },
        "spec": {
            "resource": {**DEPLOYMENTS, "namespace": "web", "name": name},
            "replicas": replicas,
            "replicaRequirements": {"resourceRequest": {"cpu": "1"}},
            "clusters": [{"name": one, "replicas": count} for one, count in clusters.items()],
            "placement": placement,
            "schedulerName": "default-scheduler",
            **spec,
        },
    }  # fmt: skip


def template(name, replicas=3, labels=(), of=None):
    """A Deployment; `of` is the policy that has claimed it, as the server shows."""
    meta = {"name": name, "namespace": "web", "labels": dict(labels)}
    if of is not None:
        claim = claimed_by(of)
        meta |= {"uid": f"t-{name}", "resourceVersion": "1", "annotations": claim["annotations"]}
        meta["labels"] |= claim["labels"]
    pod = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}
    app = {"app": name}
    return {**DEPLOYMENTS, "metadata": meta, "spec": {
        "replicas": replicas, "selector": {"matchLabels": app}, "template": {"metadata": {"labels": app}, "spec": pod},
    }}  # fmt: skip


@pytest.fixture
def placed(run, tmp_path):
    """Where each workload is after a change, or its message, and the result."""

    def place(state, change, *words):
        files = []
        for option, objects in (("--state", [cluster("a"), cluster("b"), cluster("c"), *state]), ("-f", change)):
            path = tmp_path / f"{option.strip('-')}.yaml"
            path.write_text(yaml.safe_dump_all(objects))
            files += [option, str(path)] if objects else []
        result = run("place", *files, "-o", "json", "--show-unchanged", *words)
        items = json.loads(result.stdout)["items"] if result.stdout else []
        rows = {
            one["name"]: {c["name"]: c["replicas"] for c in one["clusters"]} if one["placed"] else one["message"]
            for one in items
        }
        result.policies = {one["name"]: one["policy"] and one["policy"]["name"] for one in items}
        return rows, result

    return place


ALL = policy("all", ["a"])
ONLY_API = policy("all", ["a"], {"name": "api"})
WEB = policy("web", ["b"], {"name": "web"})
REST = policy("rest", ["c"], namespace="")
STATE = [of_server(ALL), binding("api", ALL, {"a": 3}), binding("web", ALL, {"a": 3}), binding("old", ALL, {"a": 3})]
TEMPLATES = [template(name, of=ALL) for name in ("api", "web", "old")]


@pytest.mark.parametrize("templates", [(), TEMPLATES], ids=["without templates", "with templates"])
def test_what_an_edited_policy_no_longer_selects_goes_to_another_one(templates, placed):
    rows, result = placed([*STATE, *templates], [ONLY_API, WEB])
    assert rows == {"web": {"b": 3}}
    assert result.policies == {"web": "web"}
    assert f"{RELEASED}: web/old-deployment" in result.stderr
    assert result.exit_code == 0
    rows, result = placed([*STATE, *templates], [ONLY_API, WEB, REST])
    assert rows == {"web": {"b": 3}, "old": {"c": 3}}
    assert RELEASED not in result.stderr


def test_a_released_binding_is_printed_with_its_new_policy(placed, run, tmp_path):
    placed(STATE, [ONLY_API, WEB])
    printed = run("place", "--state", str(tmp_path / "state.yaml"), "-f", str(tmp_path / "f.yaml"), "-o", "bindings")
    found = {one["spec"]["resource"]["name"]: one["metadata"] for one in yaml.safe_load(printed.stdout)["items"]}
    labels = "propagationpolicy.karmada.io/permanent-id"
    names = "propagationpolicy.karmada.io/name"
    assert [found[name]["labels"].get(labels) for name in ("api", "web", "old")] == ["id-all", "web", None]
    assert [found[name]["annotations"].get(names) for name in ("api", "web", "old")] == ["all", "web", None]


@pytest.mark.parametrize("templates", [(), TEMPLATES], ids=["without templates", "with templates"])
def test_another_policy_takes_nothing_that_is_claimed(templates, placed):
    rows, result = placed([*STATE, *templates], [policy("better", ["b"], {"name": "web"}, priority=9)])
    assert rows == {}
    assert result.exit_code == 0


def test_the_manifest_of_a_claimed_workload_does_not_change_its_policy(placed):
    """Manifests of a repository have no claims; their bindings do."""
    better = of_server(policy("better", ["b"], {"name": "web"}, priority=9))
    rows, result = placed([*STATE, better], [template("web", replicas=5)])
    assert rows == {"web": {"a": 5}}
    assert result.policies == {"web": "all"}


def test_a_policy_that_the_input_lacks_keeps_its_bindings(placed):
    state = [of_server(WEB), binding("web", ALL, {"a": 3})]
    rows, result = placed(state, [template("web", replicas=5)])
    assert rows == {"web": {"a": 5}}
    assert "1 binding names a policy that is not in the input: PropagationPolicy web/all" in result.stderr


LABELLED = policy("all", ["a"], {"labelSelector": {"matchLabels": {"team": "red"}}})


def test_an_edited_label_selector_needs_the_labels(placed):
    rows, result = placed([of_server(ALL), binding("web", ALL, {"a": 3})], [LABELLED])
    assert rows == {"web": "labels of Deployment web/web are not known, which policy all selects by"}
    assert result.exit_code == 1
    for labels, released in (({"team": "red"}, False), ({"team": "blue"}, True)):
        rows, result = placed([of_server(ALL), binding("web", ALL, {"a": 3}, labels=labels)], [LABELLED, REST])
        assert rows == ({"web": {"c": 3}} if released else {})


def test_a_label_selector_that_stays_as_it_was_needs_no_labels(placed):
    edited = policy("all", ["b"], {"labelSelector": {"matchLabels": {"team": "red"}}})
    rows, result = placed([of_server(LABELLED), binding("web", LABELLED, {"a": 3})], [edited])
    assert rows == {"web": {"b": 3}}
    assert result.exit_code == 0


def test_a_template_that_its_policy_no_longer_selects_changes_nothing(placed):
    """Karmada ignores the template until the policy is edited."""
    state = [
        of_server(LABELLED),
        binding("web", LABELLED, {"a": 3}),
        template("web", labels={"team": "red"}, of=LABELLED),
    ]
    rows, result = placed(state, [template("web", replicas=9, labels={"team": "blue"}), REST])
    assert rows == {}
    assert "no policy selects Deployment web/web" in result.stderr
    assert result.exit_code == 1


def test_a_new_policy_claims_what_no_policy_has_claimed(placed):
    unclaimed = binding("web", ALL, {"a": 3})
    unclaimed["metadata"] |= {"labels": {}, "annotations": {}}
    for templates in ((), [template("web", of=None) | {"metadata": {"name": "web", "namespace": "web", "uid": "t"}}]):
        rows, _ = placed([unclaimed, *templates], [WEB])
        assert rows == {"web": {"b": 3}}


def test_a_lazy_policy_reaches_its_binding_with_the_next_change_of_the_template(placed):
    before, lazy = policy("all", ["a"], activationPreference="Lazy"), policy("all", ["b"], activationPreference="Lazy")
    state = [of_server(lazy), binding("web", before, {"a": 3}), template("web", of=lazy)]
    assert placed(state, [])[0] == placed(state, [template("web")])[0] == {}
    assert placed(state, [template("web", replicas=4)])[0] == {"web": {"b": 4}}


GROUPED = policy("all", ["a", "b"])
GROUPED["spec"]["placement"] |= {
    "workloadAffinity": {"antiAffinity": {"groupByLabelKey": "karmada.io/group"}},
    "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}],
}


def test_a_binding_without_a_group_under_an_unchanged_policy_has_none(placed):
    """Karmada writes the group when it creates the binding, so a template without the label is known to lack it."""
    running = binding("ha", GROUPED, {"a": 3}, workloadAffinityGroups={"antiAffinityGroup": "karmada.io/group=x"})
    rows, result = placed([of_server(GROUPED), running, binding("web", GROUPED, {})], [])
    assert set(rows) == {"web"}
    assert sum(rows["web"].values()) == 3
    assert result.exit_code == 0
