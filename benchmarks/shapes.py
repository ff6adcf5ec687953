"""
A hunt for bad shapes: inputs on which Bayplan is slow beside the real code, or slower the more pods exist.

    .venv/bin/python benchmarks/shapes.py list
    .venv/bin/python benchmarks/shapes.py generate SHAPE NODES INIT PODS     prints an input for `bayplan bench`
    .venv/bin/python benchmarks/shapes.py measure SHAPE [--full]
    .venv/bin/python benchmarks/shapes.py search --seconds 1800 --seed 1     adds its results to shapes.json

SHAPE is the name of a shape, or `pods` or `fleet` and the axes that differ from the defaults: `pods by=tier apps=each`.
The axes are in shape_pods.py and shape_fleets.py. After a name, further axes change the named shape.
"""

import argparse
import json
import sys

import shape_fleets
import shape_pods
from shape_fleets import FleetShape
from shape_pods import PodShape

KINDS = {"pods": PodShape, "fleet": FleetShape}
GENERATORS = {PodShape: shape_pods.generate, FleetShape: shape_fleets.generate}

NAMED = {
    # Every release of a chart has the chart's name and component, and its own instance.
    "helm": "pods shared=5 by=shared+own anti_required=1 apps=size-3",
    "helm-affinity": "pods shared=5 by=shared+own required=1 preferred=1 toward=next keys=zone apps=size-3",
    "helm-new": "pods shared=5 by=shared+own anti_required=1 apps=size-3 new=100",
    "statefulset": "pods per_pod=statefulset by=own anti_required=1 apps=size-10 spread=soft-zone",
    "ordinals": "pods per_pod=statefulset by=index preferred=1 keys=zone apps=size-10",
    "job-index": "pods per_pod=job by=own anti_preferred=1 apps=size-100 requests=app",
    "exclusive": "pods by=own operator=exists+notin anti_required=1 scope=all share=1 empty=20 apps=size-10",
    "tenants": "pods namespaces=app by=shared shared=2 anti_required=1 preferred=1 keys=host+zone apps=size-3",
    "teams": "pods namespaces=app by=shared shared=2 anti_required=1 preferred=1 scope=label keys=host apps=size-3",
    "own-kind": "pods apps=each new=100 anti_required=1 preferred=1 toward=self requests=pod",
    "many-keys": "pods preferred=8 anti_preferred=8 keys=host+rack+zone+region weights=varied apps=size-10 zones=10",
    "rollouts": "pods template_hash=1 spread=hash by=hash anti_preferred=1 apps=size-10 new=50",
    "few-nodes": "pods nodes=few by=tier preferred=1 anti_preferred=1 keys=host+zone apps=size-10 tiers=100",
    # Terms of one app that match the pods of all others, so that no label finds them.
    "not-own": "pods preferred=1 operator=notin apps=size-3",
    "not-own-near": "pods required=4 operator=exists+notin toward=next namespaces=app scope=list keys=zone apps=size-3",
    "not-own-common": "pods by=tier preferred=1 operator=notin-common apps=size-3",
    "not-own-key": "pods preferred=1 operator=absent-own apps=size-3",
    "own-common": "pods by=tier preferred=1 operator=in-common apps=size-3",
    "near-own-common": "pods by=tier required=2 operator=in-common keys=zone apps=size-3",
    # Five values that everybody names, in the own namespace and in one that everybody names.
    "common-5": "pods namespaces=app required=2 preferred=2 anti_preferred=8 operator=in-5 toward=one weights=varied",
    # Tenants away from each other, by the labels of their namespaces.
    "isolated-tenants": "pods namespaces=app by=shared anti_required=1 scope=not-label empty=20 apps=size-3",
    "apart-tenants": "pods namespaces=app by=shared anti_preferred=1 scope=exists+not-label apps=size-3",
    "common-stage": "pods namespaces=app by=shared preferred=1 anti_preferred=1 scope=label-common apps=size-3",
    "not-common-stage": "pods namespaces=app by=shared anti_preferred=1 scope=not-label-common apps=size-3",
    "not-tenant-key": "pods namespaces=app by=shared anti_preferred=1 scope=absent-own apps=size-3",
    # A few apps name so many pods that almost every pod has a label value of its own in a term.
    "named-pods": "pods share=1 preferred=8 by=pod operator=notin-100 keys=host+zone spread=hard-host apps=size-3",
    # Every pod has a label of its own, and the selector of a spread constraint one that many pods share.
    "spread-shared": "pods per_pod=job share=10 preferred=8 scope=all empty=20 spread=soft-zone spread_by=shared",
    "taints": "pods taints=many-soft apps=each new=100",
    # The policy of Karmada's proposal: labelSelector and matchLabelKeys, two pipelines to a group.
    "flink": "fleet policies=one affinity=none terms=anti select=both spread=one group_size=pair new=50",
    "not-group": "fleet policies=one affinity=none terms=preferred select=not-selector group_size=pair new=50",
    # Away from all others of a namespace but the own group.
    "alone": "fleet regions=1 spread=one groups=anti terms=both select=not-selector topology=zone namespaces=10",
    "policies": "fleet policies=each affinity=names division=dynamic requests=policy replicas=varied",
    "fleet-groups": "fleet policies=of-1000 groups=anti group_size=ten spread=one namespaces=10",
}


def parse(words):
    """The shape that these words name or describe; ValueError if there is none."""
    first, *axes = words
    if first in NAMED:
        first, *named = NAMED[first].split()
        axes = [
            *(word for word in named if word.partition("=")[0] not in {one.partition("=")[0] for one in axes}),
            *axes,
        ]
    if first not in KINDS:
        raise ValueError(f"{first}: expected pods, fleet or one of {', '.join(NAMED)}")
    return KINDS[first].read(axes)


def written(shape):
    """The words that `parse` reads as this shape."""
    return f"{kind_of(shape)} {shape}".strip()


def kind_of(shape):
    return next(kind for kind, one in KINDS.items() if isinstance(shape, one))


def generate(shape, n_targets, n_existing, n_pending, n_known=None):
    return GENERATORS[type(shape)](shape, n_targets, n_existing, n_pending, n_known)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = arguments.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="list the named shapes")
    generating = commands.add_parser("generate", help="print an input for `bayplan bench`")
    generating.add_argument("words", nargs="+", metavar="SHAPE ... NODES INIT PODS")
    generating.add_argument("--known", type=int, help="known kinds are those of the first so many existing pods")
    measuring = commands.add_parser("measure", help="compare with the real code, and measure growth")
    measuring.add_argument("words", nargs="+", metavar="SHAPE")
    measuring.add_argument("--full", action="store_true", help="at full size, best of three")
    searching = commands.add_parser("search", help="climb towards worse shapes, and measure the worst at full size")
    searching.add_argument("--seconds", type=float, default=1800, help="for the climbs; the worst shapes take longer")
    searching.add_argument("--seed", type=int, default=1)
    searching.add_argument("--kind", choices=[*KINDS], help="only pods or only fleets")
    searching.add_argument("--finalists", type=int, default=3, help="measured at full size, for each objective")
    given = arguments.parse_args()
    try:
        run(given)
    except ValueError as error:
        sys.exit(str(error))


def run(given):
    if given.command == "list":
        for name, text in NAMED.items():
            print(f"{name:14} {text}")
    elif given.command == "generate":
        *words, n_targets, n_existing, n_pending = given.words
        json.dump(generate(parse(words), int(n_targets), int(n_existing), int(n_pending), given.known), sys.stdout)
    else:
        # Only these need the real code and a running interpreter of the virtual environment.
        import shape_search

        if given.command == "measure":
            shape = parse(given.words)
            size = shape_search.FULL if given.full else shape_search.SMALL
            print(json.dumps(shape_search.measured(shape, size), indent=2))
        else:
            shape_search.search(given.seconds, given.seed, given.kind, given.finalists)


if __name__ == "__main__":
    main()
