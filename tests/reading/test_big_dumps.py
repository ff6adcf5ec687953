"""A dump of any size is read in bounded memory."""

import json
import subprocess
import sys
import textwrap

import pytest

N_PODS = 20_000


def big_pod(index):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"pod-{index}",
            "namespace": "shop",
            "uid": f"u-{index}",
            "annotations": {"note": "x" * 3000},
        },
        "spec": {"nodeName": f"node-{index % 50}", "containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Running"},
    }


MEASURE = """
    import resource, sys
    from bayplan.reading import files
    from bayplan.wire import kinds

    def anonymous():
        with open("/proc/self/status") as lines:
            return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))

    peak = count = 0
    def sink(pod):
        global peak, count
        count += 1
        if count % 200 == 0:
            peak = max(peak, anonymous())

    before = anonymous()
    found = files.load(files.ReadOptions([sys.argv[1]], sinks={kinds.POD: sink}))
    print(count, (peak - before) // 1024, len(found.inventory.names))
"""


def measure(path):
    """How many pods a fresh process read, by how many MB it grew, and how many names it kept."""
    pytest.importorskip("resource")
    command = [sys.executable, "-c", textwrap.dedent(MEASURE), str(path)]
    environment = {"PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return tuple(map(int, done.stdout.split()))


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_json_list_in_bounded_memory(tmp_path):
    path = tmp_path / "dump.json"
    with path.open("w") as file:
        file.write('{\n    "apiVersion": "v1",\n    "items": [\n')
        file.writelines(("," if index else "") + json.dumps(big_pod(index), indent=4) for index in range(N_PODS))
        file.write('],\n    "kind": "List"\n}\n')
    n_pods, grown, n_names = measure(path)
    assert (n_pods, n_names) == (N_PODS, N_PODS)
    assert path.stat().st_size > 65_000_000
    assert grown < 30


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_yaml_list_in_bounded_memory(tmp_path):
    path = tmp_path / "dump.yaml"
    with path.open("w") as file:
        file.write("apiVersion: v1\nitems:\n")
        file.writelines(f"- {json.dumps(big_pod(index))}\n" for index in range(N_PODS // 4))
        file.write("kind: List\n")
    n_pods, grown, _ = measure(path)
    assert n_pods == N_PODS // 4
    assert path.stat().st_size > 16_000_000
    assert grown < 12
