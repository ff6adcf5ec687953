"""Enforcement across namespaces on a real API server: a tenant's rule evicts no pods of others without their consent."""

import json

from live.admin import wait_for
from live.bayplan_running import in_process
from live.breaking import EXECUTION, HOST, QUICK, Cluster, apart

TERM = {"labelSelector": {}, "namespaceSelector": {}, "topologyKey": HOST}
AGAINST_ALL = {"bayplan.io/affinity": json.dumps({"podAntiAffinity": {EXECUTION: [TERM]}})}


async def test_a_rule_patched_onto_a_running_pod_evicts_others_only_with_consent(kube_server, admin, namespace):
    await admin.create_nodes(2)
    shop, bank, lab = Cluster(admin, namespace), Cluster(admin, "bank"), Cluster(admin, "lab")
    await shop.set_up()
    for name in ("bank", "lab"):
        await admin.create_namespace(name)
    for i in range(5):
        await shop.run(f"shop-{i}")
        await bank.run(f"bank-{i}")
    await lab.run("tenant", priority="high")
    async with in_process(kube_server, enforcement=QUICK):
        await admin.patch("pods", "tenant", {"metadata": {"annotations": AGAINST_ALL}}, "lab")
        (note,) = await wait_for(lambda: lab.notes("RuleNotEnforced"))
        assert note.startswith("not enforced, because 10 pods of namespaces without consent would be evicted: ")
        # A pod whose rule was broken later is evicted: those of other namespaces would have been evicted before it.
        await shop.run("quiet", "node-1", annotations=apart(app="loud"))
        await shop.run("loud", "node-1", labels={"app": "loud"}, priority="high")
        await wait_for(lambda: shop.gone("quiet"))
        assert await shop.names() == ["loud", *(f"shop-{i}" for i in range(5))]
        assert await bank.names() == [f"bank-{i}" for i in range(5)]
        await admin.patch("namespaces", "bank", {"metadata": {"labels": {"bayplan.io/evictable-by": "lab"}}})
        for i in range(5):
            await wait_for(lambda name=f"bank-{i}": bank.gone(name))
        assert await shop.names() == ["loud", *(f"shop-{i}" for i in range(5))]
        notes = await wait_for(lambda: bank.notes("RuleBroken"))
        assert all("a pod of another namespace rejects everything in any namespace" in note for note in notes)
        assert not any("tenant" in note for note in notes)
