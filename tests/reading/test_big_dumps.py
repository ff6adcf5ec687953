"""A dump of any size is read in bounded memory, mapped pages included."""

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
    import sys
    from bayplan.reading import documents, files
    from bayplan.wire import kinds

    def resident():
        with open("/proc/self/status") as lines:
            memory = dict(line.split(":") for line in lines if line.startswith("Rss"))
        return [int(memory[name].split()[0]) for name in ("RssAnon", "RssFile")]

    documents.MIN_STREAMED_BYTES = documents.RELEASED_BYTES = 4_000_000
    peaks, count = [0, 0], 0
    def sink(pod):
        global peaks, count
        count += 1
        if count % 200 == 0:
            peaks = list(map(max, peaks, resident()))

    before = resident()
    found = files.load(files.ReadOptions([sys.argv[1]], sinks={kinds.POD: sink}))
    grown = [(peak - start) // 1024 for peak, start in zip(peaks, before)]
    print(count, *grown, len(found.inventory.names))
"""


def measure(path):
    """How many pods a fresh process read, by how many MB it grew, alone and with mapped files, and the names it kept."""
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
    n_pods, grown, mapped, n_names = measure(path)
    assert (n_pods, n_names) == (N_PODS, N_PODS)
    assert path.stat().st_size > 65_000_000
    assert grown < 30
    assert mapped < 15  # what was read is released


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_yaml_list_in_bounded_memory(tmp_path):
    path = tmp_path / "dump.yaml"
    with path.open("w") as file:
        file.write("apiVersion: v1\nitems:\n")
        file.writelines(f"- {json.dumps(big_pod(index))}\n" for index in range(N_PODS // 4))
        file.write("kind: List\n")
    n_pods, grown, mapped, _ = measure(path)
    assert n_pods == N_PODS // 4
    assert path.stat().st_size > 16_000_000
    assert grown < 12
    assert mapped < 15
