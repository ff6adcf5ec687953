"""Any JSON is rejected as input or gets a response: the handler never fails."""

import asyncio
import contextlib
import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.enforcing.quota import QuotaLimits
from bayplan.errors import InputError
from bayplan.model.semantics import DESIGN
from bayplan.webhook import reviews
from bayplan.webhook.admission_handler import AdmissionHandler, AdmissionSettings
from webhook.admission_reviews import HOSTNAME, RUNNING, View, anti, binding, deployment, pod, policy, review

RULE = json.dumps(anti(HOSTNAME, RUNNING, app="db", limit=1, tolerateNamespaces=["a"]))
PLACEMENT = {"clusterAffinities": [{"affinityName": "a", "overflowAffinities": [{"affinityName": "b"}]}]}
OBJECTS = [
    pod(affinity=anti("zone"), annotation=RULE, node="n1"),
    deployment(anti(HOSTNAME), annotations={"bayplan.io/placement": "{supplements: []}"}),
    policy({**PLACEMENT, "spreadConstraints": [{"spreadByField": "zone", "maxGroups": 1}]}),
    binding("web", "n1"),
]
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.sampled_from([RULE, "{", "-", "1Gi", "all"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def places(value, path=()):
    """Yield the path of every part of a value."""
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inside:
        yield from places(item, (*path, key))


def with_other(value, path, other):
    if not path:
        return other
    changed = copy.copy(value)
    changed[path[0]] = with_other(value[path[0]], path[1:], other)
    return changed


def handler():
    view = View(limits=QuotaLimits({"shop": (("cpu", 1000),)}), semantics=DESIGN)
    view.put(pod("web", annotation=RULE))
    view.put(pod("db", labels={"app": "db"}, node="n1"))
    return AdmissionHandler(AdmissionSettings(semantics=DESIGN), view)


HANDLER = handler()


@pytest.mark.parametrize("obj", OBJECTS, ids=lambda obj: obj["kind"])
@pytest.mark.parametrize("update", [False, True], ids=["create", "update"])
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_review_with_arbitrary_parts(obj, update, data):
    written = review(
        obj, old=obj if update else None, **({"subResource": "binding"} if obj["kind"] == "Binding" else {})
    )
    for _ in range(data.draw(st.integers(1, 2))):
        written = with_other(written, data.draw(st.sampled_from(list(places(written)))), data.draw(JSON))
    with contextlib.suppress(InputError):
        request = reviews.read_request(json.dumps(written).encode())
        for respond in (HANDLER.validate, HANDLER.mutate):
            response = json.loads(reviews.write_response(request.uid, asyncio.run(respond(request))))
            assert response["response"]["uid"] == request.uid
