import json

NODE = {"metadata": {"name": "a1"}, "status": {"allocatable": {"cpu": "2", "memory": "8Gi", "pods": "10"}}}


def pod(name, **spec):
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    return {"metadata": {"name": name, "namespace": "n"}, "spec": {"containers": [container], **spec}}


def write(folder):
    content = {"nodes": [NODE], "init": [pod("old", nodeName="a1")], "pods": [pod("first"), pod("second")]}
    (folder / "input.json").write_text(json.dumps(content))
    return folder / "input.json"


def test_the_last_line_is_the_result(run, tmp_path):
    result = run("bench", "pods", write(tmp_path), "--repeat", 3)
    last = json.loads(result.stdout.splitlines()[-1])
    assert set(last) == {"ok", "fail", "seconds", "pods_per_s"}
    assert (last["ok"], last["fail"]) == (1, 1)
    assert result.exit_code == 0


def test_each_placement_sees_the_earlier_ones(run, tmp_path):
    out = tmp_path / "out.jsonl"
    run("bench", "pods", write(tmp_path), "--placements", out, "--repeat", 2)
    assert [json.loads(line) for line in out.read_text().splitlines()] == [
        {"pod": "n/first", "node": "a1"},
        {"pod": "n/second", "node": ""},
    ]


def test_bad_benchmark_input_ends_with_2(run, tmp_path):
    assert run("bench", "pods", tmp_path / "none.json").exit_code == 2
    (tmp_path / "bad.json").write_text("{}")
    result = run("bench", "pods", tmp_path / "bad.json")
    assert result.exit_code == 2
    assert "bad.json: nodes: expected a list, got nothing" in result.stderr
    (tmp_path / "bad.json").write_text("\n")
    assert "bad.json: the file is empty" in run("bench", "pods", tmp_path / "bad.json").stderr
