"""What an API server writes into the selectors of a new pod for its label keys: the same as the reference implementation."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.controllers import label_keys
from bayplan.wire.pods import Pod
from reference import strategies
from reference.label_keys import expand


def new_pod(seed):
    written = strategies.seeded(seed)["pod"]
    written["metadata"].pop("uid", None)
    written["metadata"].pop("annotations", None)
    return written


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_selectors_are_those_of_an_api_server(seed):
    written = new_pod(seed)
    written["spec"].pop("topologySpreadConstraints", None)
    expected = msgspec.convert(expand(written), Pod)
    assert label_keys.merged(msgspec.convert(written, Pod)) == expected
