"""What an API server writes into the selectors of a new pod for its label keys: the same as the reference implementation."""

import msgspec
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bayplan.controllers import label_keys
from bayplan.wire.pods import Pod
from reference import strategies
from reference.label_keys import expand, is_merged_mismatch


def new_pod(seed):
    written = strategies.seeded(seed)["pod"]
    written["metadata"].pop("uid", None)
    written["metadata"].pop("annotations", None)
    return written


def looks_merged(pod):
    """Whether a term excludes another value of a mismatch key than the pod's: the reference takes it for merged."""
    affinity, labels = pod["spec"].get("affinity") or {}, pod["metadata"].get("labels") or {}
    terms = [
        one.get("podAffinityTerm", one)
        for sign in ("podAffinity", "podAntiAffinity")
        for listed in (affinity.get(sign) or {}).values()
        for one in listed
    ]
    return any(
        is_merged_mismatch(one) and one["key"] in (term.get("mismatchLabelKeys") or ())
        and one["values"] != [labels.get(one["key"])]
        for term in terms
        for one in (term.get("labelSelector") or {}).get("matchExpressions") or ()
    )  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_selectors_are_those_of_an_api_server(seed):
    written = new_pod(seed)
    assume(not looks_merged(written))
    written["spec"].pop("topologySpreadConstraints", None)
    expected = msgspec.convert(expand(written), Pod)
    assert label_keys.merged(msgspec.convert(written, Pod)) == expected
