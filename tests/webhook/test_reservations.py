"""A review reserves for seconds; what counts is what the watch shows. Answers name no pods of other namespaces."""

import json

import pytest

from bayplan.enforcing.quota import QuotaLimits
from bayplan.webhook import reviewers
from bayplan.webhook.admission_handler import AdmissionHandler, AdmissionSettings
from webhook import admission_reviews
from webhook.admission_reviews import HOSTNAME, RUNNING, View, anti, binding, pod

EVERYWHERE = json.dumps(anti(HOSTNAME, RUNNING, app="db", namespaceSelector={}))


def handler_of(view):
    return AdmissionHandler(AdmissionSettings(), view)


async def review(obj, handler, **how):
    return await handler.validate(admission_reviews.request(obj, **how))


def exclusive(name, **how):
    return pod(name, affinity=anti(HOSTNAME), **how)


async def test_a_pod_that_is_never_stored_keeps_pods_of_other_namespaces_from_no_node():
    """A tenant may create pods with a node as often as it likes, and have each of them rejected later."""
    view = View()
    view.put(pod("db", labels={"app": "db"}, namespace="bank"))
    handler = handler_of(view)
    for i in range(3):
        for node in ("n1", "n2"):
            assert (await review(pod(f"never-{i}-{node}", annotation=EVERYWHERE, node=node), handler)).allowed
    assert (await review(binding("db", "n1", namespace="bank"), handler, subResource="binding")).allowed


async def test_it_counts_in_its_own_namespace():
    view = View()
    view.put(pod("db", labels={"app": "db"}))
    handler = handler_of(view)
    assert (await review(pod("web", annotation=EVERYWHERE, node="n1"), handler)).allowed
    assert (await review(binding("db", "n1"), handler, subResource="binding")).code == 409


async def test_the_bind_of_a_scheduler_counts_in_all_namespaces():
    view = View()
    view.put(pod("db", labels={"app": "db"}, namespace="bank"))
    view.put(pod("web", annotation=EVERYWHERE))
    handler = handler_of(view)
    assert (await review(binding("web", "n1"), handler, subResource="binding")).allowed
    assert (await review(binding("db", "n1", namespace="bank"), handler, subResource="binding")).code == 409


async def test_what_is_charged_is_the_pod_that_the_cluster_shows():
    """Another webhook took the rule away after the review: the pod exists, and excludes no other."""
    view = View(limits=QuotaLimits({"shop": (("cpu", 4000),)}))
    handler = handler_of(view)
    assert (await review(exclusive("first"), handler)).allowed
    assert not (await review(exclusive("second"), handler)).allowed
    view.put(pod("first"))
    assert (await review(exclusive("second"), handler)).allowed


async def test_a_reservation_ends_within_seconds():
    view, now = View(limits=QuotaLimits({"shop": (("cpu", 4000),)})), [0.0]
    handler = handler_of(view)
    handler._quota._clock = lambda: now[0]
    for i in range(20):
        assert (await review(exclusive(f"rejected-later-{i}"), handler)).allowed
        assert len(handler._quota._reserved) == 1
        now[0] += reviewers.POD_RESERVED_SECONDS
    assert reviewers.POD_RESERVED_SECONDS <= 10


@pytest.mark.parametrize("placed, asked, said", [
    (  # the rule of another tenant: neither its pod nor its selector
        pod("web", annotation=EVERYWHERE, node="n1", namespace="bank"),
        pod("db", labels={"app": "db"}),
        "a rule of a pod of another namespace on n1 rejects this pod",
    ),
    (
        pod("vault", labels={"app": "db"}, node="n1", namespace="bank"),
        pod("web", annotation=EVERYWHERE),
        f"metadata.annotations[bayplan.io/affinity].podAntiAffinity.{RUNNING}[0] of shop/web rejects app=db in any namespace on its node, and n1 has a pod of another namespace",
    ),
])  # fmt: skip
async def test_no_answer_names_pods_of_another_namespace(placed, asked, said):
    view = View()
    view.put(placed)
    view.put(asked)
    response = await review(binding(asked["metadata"]["name"], "n1"), handler_of(view), subResource="binding")
    assert "bank" not in response.message
    assert response.message == said
