"""
Measure everything that needs no server: `python benchmarks/run.py [SECTION...] [--quick]` prints tables, ratios first.

Sections are decisions, growth, loading, state, large, fleet-loading, yaml, start-up, incremental, updates, rollouts,
volumes and webhook; all of them unless some are named.
Results are written to results.json and the tables to README.md, section by section: other sections stay unchanged.
`--quick` uses small inputs to check that everything runs, and writes nothing.
"""

import argparse
import json
import pathlib
import platform
import sys

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]

import decisions  # noqa: E402
import fleet_loading  # noqa: E402
import growth  # noqa: E402
import incremental  # noqa: E402
import large  # noqa: E402
import loading  # noqa: E402
import reviews  # noqa: E402
import rollouts  # noqa: E402
import start_up  # noqa: E402
import state_reading  # noqa: E402
import tables  # noqa: E402
import updates  # noqa: E402
import volumes  # noqa: E402
import yaml_dumps  # noqa: E402

SECTIONS = {
    "decisions": decisions,
    "growth": growth,
    "loading": loading,
    "state": state_reading,
    "large": large,
    "fleet-loading": fleet_loading,
    "yaml": yaml_dumps,
    "start-up": start_up,
    "incremental": incremental,
    "updates": updates,
    "rollouts": rollouts,
    "volumes": volumes,
    "webhook": reviews,
}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    arguments.add_argument("sections", nargs="*", metavar="SECTION", help=f"of {', '.join(SECTIONS)}; default: all")
    arguments.add_argument("--quick", action="store_true", help="small inputs, to check that everything runs")
    given = arguments.parse_args()
    unknown = set(given.sections) - set(SECTIONS)
    if unknown:
        arguments.error(f"no such section: {', '.join(sorted(unknown))}")
    for name in given.sections or SECTIONS:
        rows = measured(SECTIONS[name], smaller if given.quick else str.split)
        if not given.quick:
            keep(name, rows)


def measured(section, scale):
    """All rows of a section, each printed when it is complete."""
    print(f"\n## {section.TITLE}\n\n{tables.table(section.HEAD, ())}", flush=True)
    rows = []
    for row in section.rows(scale):
        rows.append(row)
        print(tables.line(section.cells(row)), flush=True)
    return rows


def smaller(text):
    """The words of an input's name, with every size divided by fifty."""
    return [str(max(1, int(word) // 50)) if word.isdigit() else word for word in text.split()]


def keep(name, rows):
    """Write a section's rows to results.json and its table to README.md."""
    results = HERE / "results.json"
    report = json.loads(results.read_text()) if results.exists() else {}
    report = {**report, "python": platform.python_version(), "machine": platform.machine()}
    report["sections"] = {**report.get("sections", {}), name: rows}
    results.write_text(json.dumps(report, indent=1) + "\n")
    section = SECTIONS[name]
    tables.write(name, "run.py", tables.table(section.HEAD, map(section.cells, rows)))


if __name__ == "__main__":
    main()
