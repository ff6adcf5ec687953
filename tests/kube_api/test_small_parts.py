import random

from hypothesis import given
from hypothesis import strategies as st

from bayplan.kube_api import decoding
from bayplan.kube_api.decoding import LineBuffer
from bayplan.kube_api.pacing import Backoff, TokenBucket
from kube_api.fake_time import SkippedTime


@given(st.lists(st.binary(max_size=8).map(lambda part: part.replace(b"\0", b"\n"))))
def test_lines_are_whole_and_in_order(chunks):
    lines = LineBuffer()
    found = [lines.feed(chunk) for chunk in chunks]
    everything = b"".join(chunks)
    assert b"".join(found) == everything[: everything.rfind(b"\n") + 1]
    assert all(not part or part.endswith(b"\n") for part in found)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), JSON, max_size=5), st.sampled_from([None, 1]))
def test_members_of_objects(value, indent):
    import json

    found = decoding.members(json.dumps(value, indent=indent).encode())
    assert {json.loads(key): json.loads(part) for key, part in found} == value


@given(st.lists(JSON, max_size=5))
def test_members_of_arrays(value):
    import json

    assert [json.loads(part) for _, part in decoding.members(json.dumps(value).encode())] == value


def test_waits_double_up_to_a_bound_and_vary():
    backoff = Backoff(random.Random(1), first=1, most=8)
    waits = [backoff.next() for _ in range(5)]
    for wait, step in zip(waits, (1, 2, 4, 8, 8), strict=True):
        assert step / 2 <= wait <= step
    backoff.reset()
    assert backoff.next() <= 1
    assert Backoff(random.Random(2)).next() != Backoff(random.Random(3)).next()


async def test_a_burst_then_one_after_another():
    time, waits = SkippedTime(), []

    async def note(seconds):
        waits.append(round(seconds, 3))

    bucket = TokenBucket(5, 2, time.clock, note)
    for _ in range(5):  # all at the same moment
        await bucket.take()
    assert waits == [0.2, 0.4, 0.6]
    time.now += 100
    for _ in range(3):
        await bucket.take()
    assert waits[3:] == [0.2]
