"""Which pods of a Job go when its parallelism is lowered or it is suspended."""

import hypothesis
import msgspec
import pytest
from hypothesis import strategies

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


@pytest.mark.parametrize("completed, failed, missing", [
    ("", "", [0, 1, 2]),
    ("0,2-3", "", [1, 4, 5]),
    ("0-2147483647", "", []),  # not expanded
    ("0-1,1-1", "", [2, 3, 4]),  # an index counts once
    ("abc", "", [0, 1, 2]),  # the controller skips what is no interval
    ("-", "", [0, 1, 2]),
    ("-3", "", [0, 1, 2]),
    ("1-x,3", "", [0, 1, 2]),
    ("9" * 5000, "", [0, 1, 2]),
    ("²,٣", "", [0, 1, 2]),
    ("0", "1,3-4", [2, 5]),
])  # fmt: skip
def test_completion_indexes_that_are_missing(completed, failed, missing):
    spec = {"parallelism": 3, "completions": 6, "completionMode": "Indexed", "backoffLimitPerIndex": 1}
    status = {"completedIndexes": completed, "failedIndexes": failed}
    found = msgspec.convert({"metadata": {"name": "j"}, "spec": spec, "status": status}, Controller)
    assert jobs.missing_indexes(found, []) == missing


def test_most_indexes_of_a_large_job_are_done():
    spec = {"parallelism": 2, "completions": 2**31 - 1, "completionMode": "Indexed"}
    status = {"completedIndexes": f"1-{2**31 - 3}"}
    found = msgspec.convert({"metadata": {"name": "j"}, "spec": spec, "status": status}, Controller)
    assert jobs.missing_indexes(found, []) == [0, 2**31 - 2]


@pytest.mark.parametrize("index", ["9" * 5000, "²", "٣", "-1", "x"])
def test_a_pod_whose_index_is_no_number_is_removed(index):
    members = [PodEntry("a", ready=True, assigned=True, index=index)]
    assert jobs.surplus(job(parallelism=1, completions=5, completionMode="Indexed"), members) == members


def test_an_indexed_job_is_done_when_its_indexes_are():
    spec = {"parallelism": 2, "completions": 3, "completionMode": "Indexed"}
    status = {"completedIndexes": "0-1,1-2147483647"}  # without `succeeded`
    found = msgspec.convert({"metadata": {"name": "j"}, "spec": spec, "status": status}, Controller)
    assert jobs.n_missing(found, []) == 0


def test_failed_indexes_are_not_tried_again():
    spec = {"parallelism": 3, "completions": 3, "completionMode": "Indexed", "backoffLimitPerIndex": 0}
    found = msgspec.convert(
        {"metadata": {"name": "j"}, "spec": spec, "status": {"completedIndexes": "0", "failedIndexes": "1-2"}},
        Controller,
    )
    assert jobs.n_missing(found, []) == 0


def test_an_indexed_job_without_numbers_has_one_index():
    assert jobs.missing_indexes(job(completionMode="Indexed"), []) == [0]


def listed_indexes(job, members):
    """The reference: every index of every interval in a set."""
    completions, done = job.spec.completions, set()
    for text in (job.status.completed_indexes, job.status.failed_indexes):
        for part in filter(None, text.split(",")):
            first, _, last = part.partition("-")
            done.update(range(int(first), int(last or first) + 1))
    completed = {index for index in done if index < completions}
    for part in filter(None, job.status.failed_indexes.split(",")):
        completed.discard(int(part))
    completed |= {int(member.index) for member in members if member.succeeded}
    active = {int(member.index) for member in members if member.active}
    n_lacking = min(job.spec.parallelism, completions - len(completed)) - sum(member.active for member in members)
    free = [index for index in range(completions) if index not in done | completed | active]
    return free[: max(0, n_lacking)]


@hypothesis.given(data=strategies.data())
def test_missing_indexes_are_those_of_the_reference(data):
    completions = data.draw(strategies.integers(1, 12))
    fate = data.draw(strategies.lists(strategies.sampled_from("ocfsa"), min_size=completions, max_size=completions))
    completed = [index for index in range(completions) if fate[index] == "c"]
    failed = [index for index in range(completions) if fate[index] == "f"]
    members = [
        PodEntry(f"p{index}", index=str(index), active=one == "a", succeeded=one == "s")
        for index, one in enumerate(fate)
        if one in "as"
    ]
    found = msgspec.convert(
        {
            "metadata": {"name": "j"},
            "spec": {
                "parallelism": data.draw(strategies.integers(0, 14)),
                "completions": completions,
                "completionMode": "Indexed",
            },
            "status": {"completedIndexes": intervals(completed), "failedIndexes": ",".join(map(str, failed))},
        },
        Controller,
    )
    assert jobs.missing_indexes(found, members) == listed_indexes(found, members)
    assert jobs.n_missing(found, members) == len(listed_indexes(found, members))


def intervals(indexes):
    """The indexes as the controller writes them."""
    found = []
    for index in indexes:
        if found and found[-1][1] == index - 1:
            found[-1][1] = index
        else:
            found.append([index, index])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in found)
