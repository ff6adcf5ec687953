"""
Measure decisions per second on the benchmark inputs: `python benchmarks/run.py [--quick]` prints a table.

Each input is generated, placed three times by `bayplan bench`, and the best run counts. Results also go to
benchmarks/results.json. Figures of other schedulers were measured elsewhere and are quoted in README.md, not here.
"""

import argparse
import json
import pathlib
import platform
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
PODS = [
    ("anti", 5000, 1000, 1000),
    ("aff", 5000, 5000, 1000),
    ("pref", 5000, 5000, 1000),
    ("prefanti", 5000, 5000, 1000),
    ("mixed", 5000, 10000, 1000),
    ("spread", 5000, 5000, 1000),
    ("plain", 5000, 1000, 1000),
    ("mixed", 5000, 5000, 1000),
    ("mixed", 5000, 20000, 1000),
    ("mixed", 5000, 100000, 1000),
    ("aff", 5000, 20000, 1000),
    ("aff", 5000, 100000, 1000),
]
TEMPLATES = [(2000, 5000, init, 2000) for init in (5000, 50000)]
FLEET = [(kind, 1000, 10000, 300) for kind in ("ha", "agg", "dyn", "overflow", "mixed")]


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    arguments.add_argument("--quick", action="store_true", help="smaller inputs, to see that everything runs")
    quick = arguments.parse_args().quick
    results = []
    print("| input | decisions/s | µs per decision | placed | refused |\n|---|---|---|---|---|")
    for generator, kind, unit, cases in (
        ("gen_pods.py", "pods", "pods", PODS),
        ("gen_templates.py", "pods", "pods", TEMPLATES),
        ("gen_fleet.py", "fleet", "bindings", FLEET),
    ):
        for case in cases:
            case = tuple(max(1, size // 50) if quick and isinstance(size, int) else size for size in case)
            result = measured(generator, kind, case)
            rate = result[f"{unit}_per_s"]
            name = f"{generator} {' '.join(map(str, case))}"
            print(f"| `{name}` | {rate:,.0f} | {1e6 / rate:,.0f} | {result['ok']} | {result['fail']} |", flush=True)
            results.append({"input": name, **result})
    report = {"python": platform.python_version(), "machine": platform.machine(), "results": results}
    (HERE / "results.json").write_text(json.dumps(report, indent=1) + "\n")


def measured(generator, kind, case):
    """The best of three runs on one input."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run([sys.executable, HERE / generator, *map(str, case)], stdout=file, check=True)
        file.flush()
        runs = [bench(kind, file.name) for _ in range(3)]
    return min(runs, key=lambda run: run["seconds"])


def bench(kind, path):
    command = [sys.executable, "-m", "bayplan", "bench", kind, path]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
