"""Rules that Karmada has no field for, on a real control plane: `bayplan.io/placement` on a policy."""

import json
import re

from live import bayplan_running
from live.admin import ApiError, wait_for
from live.fleet_user import DEPLOYMENTS, PATIENCE, POLICIES

DEFINITIONS = "apiextensions.k8s.io/v1/customresourcedefinitions"
TERM = {"labelSelector": {"matchLabels": {"app": "flink"}}, "matchLabelKeys": ["pipeline"]}
APART = json.dumps({"workloadAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}})
PIPELINES = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "pipelines.streams.example"},
    "spec": {
        "group": "streams.example",
        "names": {"kind": "Pipeline", "listKind": "PipelineList", "plural": "pipelines", "singular": "pipeline"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
ONE_CLUSTER = {
    "clusterAffinity": {"clusterNames": ["member1", "member2"]},
    "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}],
}


async def _policy(fleet, name, selector, **annotations):
    return await fleet.create(
        {
            "apiVersion": "policy.karmada.io/v1alpha1",
            "kind": "PropagationPolicy",
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"resourceSelectors": [selector], "schedulerName": "bayplan", "placement": ONE_CLUSTER},
        }
    )


async def test_duplicate_pipelines_never_share_a_cluster(karmada, fleet):
    """Pipelines are of a kind of the test's own, whose labels the scheduler reads by a watch of metadata."""
    for admin in (fleet.admin, *fleet.members.values()):
        await admin.create(PIPELINES)
    try:
        await wait_for(lambda: fleet.members_serve("streams.example/v1"), PATIENCE)
        selector = {"apiVersion": "streams.example/v1", "kind": "Pipeline"}
        async with bayplan_running.fleet_in_process(karmada.server):
            await _policy(fleet, "pipelines", selector, **{"bayplan.io/placement": APART})
            for name in ("blue", "green", "third"):
                await fleet.create(_pipeline(name))
            placed = await wait_for(lambda: _placed(fleet, ("blue", "green", "third"), 2), PATIENCE)
            (last,) = {"blue", "green", "third"} - placed.keys()
            # Also where its first attempt came before the labels of the others were known.
            message = await fleet.until_refused(last, "NoClusterFit", kind="pipeline")
            await fleet.admin.delete("streams.example/v1/pipelines", next(iter(placed)), fleet.namespace)
            again = await wait_for(lambda: _placed(fleet, ("blue", "green", "third"), 2, last), PATIENCE)
    finally:
        for name in ("blue", "green", "third"):
            await _delete(fleet, name)
        await wait_for(lambda: _none(fleet), PATIENCE)
        for admin in (fleet.admin, *fleet.members.values()):
            await admin.delete(DEFINITIONS, "pipelines.streams.example")

    assert sorted(placed.values()) == ["member1", "member2"]
    assert sorted(again.values()) == ["member1", "member2"]
    # Clusters that other tests have left count too.
    assert re.fullmatch(
        r"0/\d+ clusters are available: .*2 cluster\(s\) did not match workload anti-affinity rules.*", message
    )


async def test_a_template_that_is_relabelled_blocks_no_longer(karmada, fleet):
    selector = {"apiVersion": "apps/v1", "kind": "Deployment"}
    async with bayplan_running.fleet_in_process(karmada.server):
        await _policy(fleet, "flink", selector, **{"bayplan.io/placement": APART})
        for name in ("blue", "green", "third"):
            await fleet.deploy(name, 1, labels={"app": "flink", "pipeline": "p"})
        placed = await wait_for(lambda: _placed(fleet, ("blue", "green", "third"), 2, kind="deployment"), PATIENCE)
        (last,) = {"blue", "green", "third"} - placed.keys()
        await fleet.until_refused(last, "NoClusterFit")
        change = {"metadata": {"labels": {"pipeline": "another"}}}
        await fleet.admin.patch(DEPLOYMENTS, next(iter(placed)), change, fleet.namespace)
        await wait_for(lambda: _placed(fleet, (last,), 1, kind="deployment"), PATIENCE)
        assert len(await _placed(fleet, ("blue", "green", "third"), 3, kind="deployment")) == 3


async def test_a_malformed_annotation_is_told_and_its_correction_is_noticed(karmada, fleet):
    selector = {"apiVersion": "apps/v1", "kind": "Deployment"}
    async with bayplan_running.fleet_in_process(karmada.server):
        await _policy(fleet, "flink", selector, **{"bayplan.io/placement": "workloadAntiAffinity: 3"})
        await fleet.deploy("web", 1)
        message = await fleet.until_refused("web", "SchedulerError")
        await fleet.admin.patch(
            POLICIES, "flink", {"metadata": {"annotations": {"bayplan.io/placement": APART}}}, fleet.namespace
        )
        await wait_for(lambda: _placed(fleet, ("web",), 1, kind="deployment"), PATIENCE)

    assert "bayplan.io/placement" in message


async def test_a_kind_that_is_removed_while_it_is_watched_stops_nothing(karmada, fleet):
    """Its members do not serve it either: the binding is refused with that reason, and the others go on."""
    definition = {**PIPELINES, "metadata": {"name": "streams.brief.example"}}
    names = {"kind": "Stream", "listKind": "StreamList", "plural": "streams", "singular": "stream"}
    definition["spec"] = {**PIPELINES["spec"], "group": "brief.example", "names": names}
    await fleet.admin.create(definition)
    async with bayplan_running.fleet_in_process(karmada.server) as running:
        await wait_for(lambda: _is_served_by_karmada(fleet, "brief.example/v1/streams"), PATIENCE)
        await _policy(fleet, "streams", {"apiVersion": "brief.example/v1", "kind": "Stream"})
        await fleet.admin.create(
            {"apiVersion": "brief.example/v1", "kind": "Stream", "metadata": {"name": "river"}},
            namespace=fleet.namespace,
        )
        message = await fleet.until_refused("river", "NoClusterFit", kind="stream")
        assert ("brief.example/v1", "Stream") in running.state.templates.kinds
        await fleet.admin.delete(DEFINITIONS, "streams.brief.example")
        await wait_for(lambda: ("brief.example/v1", "Stream") not in running.state.templates.kinds, PATIENCE)
        await fleet.deploy("web", 1)
        await _policy(fleet, "web", {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"})
        await wait_for(lambda: _placed(fleet, ("web",), 1, kind="deployment"), PATIENCE)

    assert "did not have the API resource" in message


async def _is_served_by_karmada(fleet, resource):
    try:
        return (await fleet.admin.list(resource, fleet.namespace))["kind"]
    except ApiError:
        return None


def _pipeline(name):
    labels = {"app": "flink", "pipeline": "clicks"}
    return {"apiVersion": "streams.example/v1", "kind": "Pipeline", "metadata": {"name": name, "labels": labels}}


async def _placed(fleet, names, count, needed="", kind="pipeline"):
    """The cluster by name, once so many are placed, `needed` among them."""
    found = {}
    for name in names:
        shares = await fleet.shares(name, kind)
        if shares:
            (found[name],) = shares
    return found if len(found) == count and (not needed or needed in found) else None


async def _delete(fleet, name):
    try:
        await fleet.admin.delete("streams.example/v1/pipelines", name, fleet.namespace)
    except ApiError as error:
        if error.status != 404:
            raise


async def _none(fleet):
    return not await fleet.admin.items("work.karmada.io/v1alpha2/resourcebindings", fleet.namespace)
