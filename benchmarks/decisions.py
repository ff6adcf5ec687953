"""Decisions per second, and those of kube-scheduler and karmada-scheduler on the same inputs."""

import peers
from measuring import best, generated, per_second, placed

TITLE = "Decisions per second"
HEAD = ("times the peer", "decisions/s", "goal", "µs each", "peer's decisions/s", "placed", "unschedulable", "input")

# The generator with its arguments, the goal, and whether upstream is measured too: some inputs would take it minutes.
PODS = [
    ("gen_pods.py anti 5000 1000 1000", 20_000, True),
    ("gen_pods.py aff 5000 5000 1000", 12_000, True),
    ("gen_pods.py pref 5000 5000 1000", 12_000, True),
    ("gen_pods.py prefanti 5000 5000 1000", 12_000, True),
    ("gen_pods.py mixed 5000 10000 1000", 7_500, True),
    ("gen_pods.py mixed 5000 50000 1000", 6_400, True),
    ("gen_pods.py spread 5000 5000 1000", 10_500, True),
    ("gen_pods.py plain 5000 1000 1000", 12_000, True),
    ("gen_templates.py 2000 5000 5000 2000", 1_500, True),
    ("shapes.py generate helm 5000 50000 1000", 5_000, True),
    ("gen_refusals.py 500 5000 5000 5000", 2_000, False),
]
FLEET = [
    ("gen_fleet.py ha 1000 10000 300", 4_700, True),
    ("gen_fleet.py agg 1000 10000 300", 7_500, True),
    ("gen_fleet.py dyn 1000 10000 300", 5_900, True),
    ("gen_fleet.py overflow 1000 10000 300", 4_300, True),
    ("gen_fleet.py mixed 1000 10000 300", 5_200, True),
    # karmada-scheduler ignores the annotations of this input, so it decides less than Bayplan.
    ("shapes.py generate flink 1000 10000 300", 5_000, True),
    ("gen_fleet.py mixed 5000 200000 300", 500, False),
]


def rows(scale):
    for kind, cases in (("pods", PODS), ("fleet", FLEET)):
        for text, goal, beside_upstream in cases:
            generator, *arguments = scale(text)
            with generated(generator, *arguments) as path:
                ours, theirs = measured(kind, path, beside_upstream)
            yield {
                "input": " ".join([generator, *arguments]),
                "goal": goal,
                "rate": per_second(ours),
                "placed": ours["ok"],
                "refused": ours["fail"],
                "peer": per_second(theirs) if theirs else None,
            }


def measured(kind, path, beside_upstream):
    """The best run of Bayplan and of the peer, in turns, so that a slow phase of the machine affects both."""
    ours, theirs = [], []
    for _ in range(3):
        ours.append(placed(kind, path))
        theirs.append(peers.measured(kind, path) if beside_upstream else None)
    return best(ours), None if None in theirs else best(theirs)


def cells(row):
    peer = row["peer"]
    ratio = f"{row['rate'] / peer:,.0f}" if peer else "–"
    return (
        ratio,
        f"{row['rate']:,.0f}",
        f"{row['goal']:,}",
        f"{1e6 / row['rate']:,.0f}",
        f"{peer:,.0f}" if peer else "–",
        row["placed"],
        row["refused"],
        f"`{row['input']}`",
    )
