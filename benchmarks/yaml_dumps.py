"""
Reading a dump in YAML as kubectl writes it, with managed fields: objects per second of processor time.

As a program, `python benchmarks/yaml_dumps.py READER FILE` reads one dump and prints the time. The peers read fewer
objects of the same kind, because they take long.
"""

import gc
import json
import pathlib
import sys
import time

from measuring import best, generated, last_line

TITLE = "Reading a dump in YAML"
HEAD = (
    "times libyaml's events",
    "times PyYAML's CSafeLoader",
    "objects/s",
    "goal",
    "objects/s into an index",
    "peers' objects/s",
    "bytes each",
    "input",
)
GOAL = 5_000


def rows(scale):
    words, few = scale("gen_dump.py 500 10000 500 yaml"), scale("gen_dump.py 100 1000 100 yaml")
    with generated(*words) as path, generated(*few) as short:
        rates = {name: rate(name, path) for name in ("lines", "index")}
        rates |= {name: rate(name, short) for name in ("events", "safe_loader")}
        n_bytes = pathlib.Path(path).stat().st_size / (int(words[1]) + int(words[2]))
    yield {"input": " ".join(words), "goal": GOAL, "bytes_each": n_bytes, **rates}


def rate(reader, path):
    """Objects per second, the best of three runs."""
    found = best([last_line(pathlib.Path(__file__), reader, path) for _ in range(3)])
    return found["objects"] / found["seconds"]


def cells(row):
    return (
        f"{row['lines'] / row['events']:.1f}",
        f"{row['lines'] / row['safe_loader']:.0f}",
        f"{row['lines']:,.0f}",
        f"{row['goal']:,}",
        f"{row['index']:,.0f}",
        f"{row['events']:,.0f} · {row['safe_loader']:,.0f}",
        f"{row['bytes_each']:,.0f}",
        f"`{row['input']}`",
    )


def lines(path):
    from bayplan.reading import documents, yaml_dumps

    return sum(1 for _ in yaml_dumps.read(documents.Source(path, pathlib.Path(path).read_bytes())))


def events(path):
    from bayplan.reading import documents, yaml_documents

    return sum(1 for _ in yaml_documents.read(documents.Source(path, pathlib.Path(path).read_bytes())))


def safe_loader(path):
    import yaml

    return len(yaml.load(pathlib.Path(path).read_bytes(), yaml.CSafeLoader)["items"])


def index(path):
    from bayplan.reading import cluster
    from bayplan.reading.files import ReadOptions

    found = cluster.load(ReadOptions([path])).index
    return len(found.records) + len(found.slots)


READERS = {reader.__name__: reader for reader in (lines, events, safe_loader, index)}


def main():
    reader, path = sys.argv[1:]
    gc.disable()
    READERS[reader](path)  # imports are not part of the measurement
    start = time.process_time()
    n_objects = READERS[reader](path)
    print(json.dumps({"seconds": time.process_time() - start, "objects": n_objects}))


if __name__ == "__main__":
    main()
