"""
Measure everything that needs no server: `python benchmarks/run.py [SECTION...] [--quick]` prints tables, ratios first.

Sections are decisions, growth, loading, incremental, rollouts, volumes and webhook; all of them unless some are named.
Results go to results.json and the tables into README.md, section by section: what is not measured anew stays as it was.
`--quick` uses small inputs to see that everything runs, and writes nothing.
"""

import argparse
import json
import pathlib
import platform
import sys

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]

import decisions  # noqa: E402
import growth  # noqa: E402
import incremental  # noqa: E402
import loading  # noqa: E402
import reviews  # noqa: E402
import rollouts  # noqa: E402
import volumes  # noqa: E402

SECTIONS = {
    "decisions": decisions,
    "growth": growth,
    "loading": loading,
    "incremental": incremental,
    "rollouts": rollouts,
    "volumes": volumes,
    "webhook": reviews,
}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    arguments.add_argument("sections", nargs="*", metavar="SECTION", help=f"of {', '.join(SECTIONS)}; default: all")
    arguments.add_argument("--quick", action="store_true", help="small inputs, to see that everything runs")
    given = arguments.parse_args()
    unknown = set(given.sections) - set(SECTIONS)
    if unknown:
        arguments.error(f"no such section: {', '.join(sorted(unknown))}")
    for name in given.sections or SECTIONS:
        rows = measured(SECTIONS[name], smaller if given.quick else str.split)
        if not given.quick:
            keep(name, rows)


def measured(section, scale):
    """All rows of a section, each shown when it is there."""
    print(f"\n## {section.TITLE}\n\n{line(section.HEAD)}\n{rule(section.HEAD)}", flush=True)
    rows = []
    for row in section.rows(scale):
        rows.append(row)
        print(line(section.cells(row)), flush=True)
    return rows


def smaller(text):
    """The words of an input's name, every size a fiftieth."""
    return [str(max(1, int(word) // 50)) if word.isdigit() else word for word in text.split()]


def keep(name, rows):
    """Put a section's rows into results.json and its table into README.md."""
    results, page = HERE / "results.json", HERE / "README.md"
    report = json.loads(results.read_text()) if results.exists() else {}
    report = {**report, "python": platform.python_version(), "machine": platform.machine()}
    report["sections"] = {**report.get("sections", {}), name: rows}
    results.write_text(json.dumps(report, indent=1) + "\n")
    section = SECTIONS[name]
    table = "\n".join([line(section.HEAD), rule(section.HEAD), *(line(section.cells(row)) for row in rows)])
    begin, end = f"<!-- {name}: written by run.py -->", f"<!-- end of {name} -->"
    text = page.read_text()
    before, _, rest = text.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        sys.exit(f"{page}: expected {begin} and {end}")
    page.write_text(f"{before}{begin}\n{table}\n{end}{after}")


def line(cells):
    return f"| {' | '.join(map(str, cells))} |"


def rule(cells):
    return "|" + "---|" * len(cells)


if __name__ == "__main__":
    main()
