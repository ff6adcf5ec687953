"""
Twice as large a pod takes twice as much work, whatever it is that the pod has much of: counted in executed lines.

A sum over containers that was begun anew for each of them once took 59 s for one valid pod.
"""

import functools
import json
import sys

import pytest

import large_pods
from fuzzing import running
from watching.test_setting_aside import Watching, node

N = 80
OURS = "bayplan"
HOST = "kubernetes.io/hostname"


def n_lines(run):
    """How many lines of Bayplan are executed."""
    counted = 0

    def in_frame(_frame, event, _):
        nonlocal counted
        counted += event == "line"
        return in_frame

    def trace(frame, _event, _):
        return in_frame if OURS in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return counted


@pytest.fixture(scope="module")
def watching():
    found = Watching()
    for name in ("n0", "n1", "n2"):
        found.put("nodes", node(name))
    return found


def counted(watching, written):
    """The pod is reported on its node, and deleted."""
    bound = {**written, "spec": {**written["spec"], "nodeName": "n0"}, "status": {"phase": "Running"}}
    uid = written["metadata"]["uid"]
    watching.put("pods", bound)
    assert "shop/large" in watching.index.records
    watching.delete("pods", "large", "shop", uid)


def explained(_watching, written):
    """The manifest is validated, decided about and explained by the program."""
    del written["metadata"]["uid"]
    objects = [{"apiVersion": "v1", "kind": "Node", **node(name)} for name in ("n0", "n1", "n2")]
    content = "\n".join(map(json.dumps, [*objects, written])).encode()
    outcome = running.run(["place", "-f", "doc", "--explain"], {"doc": content})
    assert outcome.failure == "", outcome.detail
    assert outcome.code in (0, 1), outcome.stderr


@pytest.mark.parametrize("door", [counted, explained], ids=lambda door: door.__name__)
@pytest.mark.parametrize("kind", large_pods.SPECS)
def test_the_work_grows_with_the_size_of_the_pod(kind, door, watching, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    work = {}
    for prefix, n in (("warm", N), ("small", N), ("twice", 2 * N)):
        work[prefix] = n_lines(functools.partial(door, watching, large_pods.pod(kind, n, prefix, uid=prefix)))
    assert work["twice"] < 2.3 * work["small"], work
