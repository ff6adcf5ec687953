"""`bayplan place` on a live Karmada control plane says what the scheduler then does, and writes nothing."""

import asyncio
import json

import yaml
from click.testing import CliRunner

from bayplan.cli import main
from live import bayplan_running
from live.admin import wait_for
from live.fleet_user import DYNAMIC, PATIENCE

MEMBERS = {"clusterAffinity": {"clusterNames": ["member1", "member2"]}}


async def place(karmada, *arguments):
    """The answer of `bayplan place` as JSON."""
    command = ["place", "--kubeconfig", str(karmada.server.kubeconfig()), "-o", "json", "--show-unchanged", *arguments]
    done = await asyncio.to_thread(CliRunner().invoke, main.cli, command)
    assert done.exit_code in {0, 1}, done.output
    return json.loads(done.stdout)


async def test_an_edited_policy_and_a_lost_member_are_seen_before(karmada, fleet, tmp_path):
    async with bayplan_running.fleet_in_process(karmada.server):
        await fleet.deploy("web", 6)
        policy = await fleet.propagate("web", placement={**MEMBERS, "replicaScheduling": DYNAMIC})
        await fleet.until_placed("web", {"member1": 3, "member2": 3})
        lost = await place(karmada, "--lose", "cluster/member1")
        await wait_for(lambda: _unchanged_since(fleet, "web"), PATIENCE)
        before = await fleet.binding("web")

        placement = {"clusterAffinity": {"clusterNames": ["member2"]}, "replicaScheduling": DYNAMIC}
        edited = {key: policy[key] for key in ("apiVersion", "kind")}
        edited |= {
            "metadata": {"name": policy["metadata"]["name"], "namespace": fleet.namespace},
            "spec": {**policy["spec"], "placement": placement},
        }
        file = tmp_path / "policy.yaml"
        file.write_text(yaml.safe_dump(edited))
        preview = await place(karmada, "-f", str(file))
        assert await fleet.shares("web") == {"member1": 3, "member2": 3}, "nothing is written"
        assert (await fleet.binding("web"))["metadata"]["generation"] == before["metadata"]["generation"]
        spec = {"spec": {"placement": placement}}
        await fleet.admin.patch("policy.karmada.io/v1alpha1/propagationpolicies", "web-policy", spec, fleet.namespace)
        await fleet.until_placed("web", {"member2": 6})

    assert _planned(lost, fleet) == {"member2": 6}
    assert _planned(preview, fleet) == {"member2": 6}


def _planned(document, fleet):
    """Where a plan has the binding of this test."""
    (found,) = (one for one in document["items"] if (one["namespace"], one["name"]) == (fleet.namespace, "web"))
    return {one["name"]: one["replicas"] for one in found["clusters"]}


async def _unchanged_since(fleet, name):
    return await fleet.shares(name) == {"member1": 3, "member2": 3}
