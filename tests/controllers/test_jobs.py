"""Which pods of a Job go when its parallelism is lowered or it is suspended."""

import msgspec
import pytest

from bayplan.controllers import jobs
from bayplan.controllers.desired_state import PodEntry
from bayplan.wire.controllers import Controller


def job(**spec):
    return msgspec.convert({"metadata": {"name": "j"}, "spec": spec}, Controller)


def pods(text):
    """`a:0` is a ready pod of index 0; `!` not ready."""
    for part in text.split():
        name, _, index = part.partition(":")
        yield PodEntry(name.strip("!"), ready="!" not in part, assigned=True, index=index)


@pytest.mark.parametrize(
    "spec, members, removed",
    [
        ({"parallelism": 2}, "a b c", "a"),
        ({"parallelism": 2}, "a b c!", "c"),
        ({"parallelism": 3}, "a b", ""),
        ({"parallelism": 0}, "a b", "a b"),
        ({"parallelism": 2, "suspend": True}, "a b", "a b"),
        ({"parallelism": 3, "completions": 2}, "a b c!", "c"),
        ({"parallelism": 2, "completions": 2, "completionMode": "Indexed"}, "a:0 b:0! c:1", "b"),
        ({"parallelism": 2, "completions": 2, "completionMode": "Indexed"}, "a:0 b:1 c:7", "c"),
        ({"parallelism": 1, "completions": 2, "completionMode": "Indexed"}, "a:0 b:1!", "b"),
    ],
)
def test_surplus(spec, members, removed):
    assert " ".join(pod.name for pod in jobs.surplus(job(**spec), list(pods(members)))) == removed
