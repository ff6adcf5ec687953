"""The cost of a decision, in processor time, as the number of pods, nodes, bindings and clusters grows."""

from contextlib import ExitStack

from measuring import best, generated, per_second, placed_in_processor_time

TITLE = "Cost of a decision in growing clusters"
HEAD = ("largest over smallest", "goal", "µs each", "inputs")
TURNS = 5  # inputs of a row are measured in turns, so that a slow phase of the machine affects all of them

EXISTING = (5000, 50000, 150000)
SCHEDULED = (1000, 10000, 100000)
PODS = [
    (1.2, [f"gen_pods.py mixed 5000 {existing} 1000" for existing in EXISTING]),
    (1.2, [f"gen_pods.py aff 5000 {existing} 1000" for existing in EXISTING]),
    (1.2, [f"gen_templates.py 2000 5000 {existing} 2000" for existing in EXISTING]),
    # The pending pods are of the same kinds however many exist: more kinds would be more work by themselves.
    (1.2, [f"shapes.py generate helm 5000 {existing} 1000 --known 5000" for existing in EXISTING]),
    *((2, [f"gen_pods.py {kind} {nodes} 1000 1000" for nodes in (5000, 15000)]) for kind in ("anti", "aff", "mixed")),
    (2, [f"gen_templates.py 2000 {nodes} 5000 2000" for nodes in (5000, 15000)]),
]
FLEET = [
    (1.2, [f"shapes.py generate flink 1000 {scheduled} 300 --known 1000" for scheduled in SCHEDULED]),
    (1.2, [f"gen_fleet.py mixed 1000 {scheduled} 300" for scheduled in SCHEDULED]),
    (5, [f"shapes.py generate flink {clusters} 10000 300" for clusters in (1000, 5000)]),
    (5, [f"gen_fleet.py mixed {clusters} 10000 300" for clusters in (1000, 5000)]),
]


def rows(scale):
    for kind, cases in (("pods", PODS), ("fleet", FLEET)):
        for goal, texts in cases:
            yield row(kind, goal, [scale(text) for text in texts])


def row(kind, goal, inputs):
    with ExitStack() as files:
        paths = [files.enter_context(generated(*words)) for words in inputs]
        turns = [[placed_in_processor_time(kind, path) for path in paths] for _ in range(TURNS)]
    rates = [per_second(best(runs)) for runs in zip(*turns, strict=True)]
    names = [" ".join(words) for words in inputs]
    return {"inputs": names, "goal": goal, "rates": rates, "ratio": round(max(rates) / min(rates), 3)}


def cells(row):
    each = " · ".join(f"{1e6 / rate:,.0f}" for rate in row["rates"])
    return f"{row['ratio']:.2f}", row["goal"], each, " · ".join(f"`{text}`" for text in row["inputs"])
