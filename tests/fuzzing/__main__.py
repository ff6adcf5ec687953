"""`python -m fuzzing SEED COUNT`: run cases, show failures as files, and record the result."""

import argparse
import functools
import json
import pathlib
import sys

from fuzzing import campaign

COMPARED = 2000  # cases that run under two hash seeds


def main():
    if sys.argv[1:2] == ["--worker"]:
        mode, seed, first, end, folder = sys.argv[2:]
        campaign.work(mode, seed, int(first), int(end), folder)
        return 0
    parser = argparse.ArgumentParser(prog="fuzzing", description=__doc__)
    parser.add_argument("seed")
    parser.add_argument("count", type=int)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--failures", type=pathlib.Path, default=pathlib.Path("fuzz-failures"))
    parser.add_argument("--record", type=pathlib.Path, help="a JSON file with the results by seed, kept up to date")
    options = parser.parse_args()
    record = functools.partial(_record, options.record) if options.record else lambda _: None
    result = campaign.run(options.seed, options.count, options.failures.absolute(), options.workers, record)
    compared = min(COMPARED, options.count)
    differing = campaign.compare_hash_seeds(options.seed, compared)
    result |= {"comparedUnderTwoHashSeeds": compared, "differUnderAnotherHashSeed": differing}
    record(result)
    for failure in result["failures"]:
        sys.stdout.write(f"\n{failure['failure']} (case {failure['case']})\n")
        for file in sorted(pathlib.Path(failure.get("written", "/nowhere")).glob("*")):
            sys.stdout.write(f"--- {file}\n{file.read_text(errors='backslashreplace')[:2000]}\n")
    sys.stdout.write(json.dumps(result, indent=2) + "\n")
    return 1 if result["failures"] or result["differUnderAnotherHashSeed"] else 0


def _record(path, result):
    known = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**known, result["seed"]: result}, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
