"""The cost of a decision as the number of pods and the number of nodes grow."""

from contextlib import ExitStack

from measuring import best, generated, per_second, placed

TITLE = "Cost of a decision in growing clusters"
HEAD = ("largest over smallest", "goal", "µs each", "inputs")
TURNS = 5  # inputs of a row are measured in turns, so that a slow phase of the machine affects all of them

CASES = [
    (1.2, [f"gen_pods.py mixed 5000 {existing} 1000" for existing in (5000, 50000, 150000)]),
    (1.2, [f"gen_pods.py aff 5000 {existing} 1000" for existing in (5000, 50000, 150000)]),
    (1.2, [f"gen_templates.py 2000 5000 {existing} 2000" for existing in (5000, 50000, 150000)]),
    *((2, [f"gen_pods.py {kind} {nodes} 1000 1000" for nodes in (5000, 15000)]) for kind in ("anti", "aff", "mixed")),
    (2, [f"gen_templates.py 2000 {nodes} 5000 2000" for nodes in (5000, 15000)]),
]


def rows(scale):
    for goal, texts in CASES:
        inputs = [scale(text) for text in texts]
        with ExitStack() as files:
            paths = [files.enter_context(generated(*words)) for words in inputs]
            turns = [[placed("pods", path) for path in paths] for _ in range(TURNS)]
        rates = [per_second(best(runs)) for runs in zip(*turns, strict=True)]
        yield {
            "inputs": [" ".join(words) for words in inputs],
            "goal": goal,
            "rates": rates,
            "ratio": round(max(rates) / min(rates), 3),
        }


def cells(row):
    each = " · ".join(f"{1e6 / rate:,.0f}" for rate in row["rates"])
    return f"{row['ratio']:.2f}", row["goal"], each, " · ".join(f"`{text}`" for text in row["inputs"])
