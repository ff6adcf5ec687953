"""Services are found by the labels of a pod as by comparing it with each of them, and at the cost of a few."""

from hypothesis import given
from hypothesis import strategies as st

from bayplan.mapping.service_selectors import ServiceSelectors

KEYS, VALUES = st.sampled_from("abcd"), st.sampled_from("xyz")
LABELS = st.dictionaries(KEYS, VALUES, max_size=4)
SELECTORS = st.lists(st.dictionaries(KEYS, VALUES, min_size=1, max_size=3), max_size=12)


def merged_by_comparing(selectors, labels):
    found = {}
    for selector in selectors:
        if all(labels.get(key) == value for key, value in selector.items()):
            found |= selector
    return found


@given(SELECTORS, LABELS, st.data())
def test_the_same_are_found_as_by_comparing_with_each(written, labels, data):
    selectors = ServiceSelectors()
    for selector in written:
        selectors.add(selector)
    assert selectors.merged(labels) == merged_by_comparing(written, labels)
    kept = list(written)
    for gone in data.draw(st.lists(st.sampled_from(range(len(written))), unique=True) if written else st.just([])):
        selectors.remove(written[gone])
        kept.remove(written[gone])
    assert selectors.merged(labels) == merged_by_comparing(kept, labels)
    assert bool(selectors) is bool(kept)


def test_nothing_is_left_of_removed_selectors():
    selectors, written = ServiceSelectors(), [{"app": f"v{i}", "tier": "web"} for i in range(50)]
    for selector in written:
        selectors.add(selector)
    for selector in written:
        selectors.remove(selector)
    assert (selectors._counts, selectors._stored_at, selectors._pair_of) == ({}, {}, {})


def test_a_pod_is_compared_with_few_of_many_services():
    selectors = ServiceSelectors()
    for i in range(3000):
        selectors.add({"tier": "web", f"key-{i}": "v"})
        selectors.add({"tier": "web"})
    compared = selectors._stored_at["tier", "web"]
    assert len(compared) <= 2
    assert selectors.merged({"tier": "web"}) == {"tier": "web"}
