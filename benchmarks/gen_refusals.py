"""
Generate pods that fit nowhere, of many kinds.

usage: gen_refusals.py KINDS NODES INIT PODS   prints one input for `bayplan bench pods`.

A third of the kinds ask for more processors than any node has, a third for a label that no node carries, and a third
for the company of a pod that runs nowhere; the existing pods are of as many templates, each kept on different nodes.
"""

import json
import sys

from gen_templates import ZONE, node, pod


def refused(i, kind, n_kinds):
    asked = pod(i, kind, n_kinds)
    spec = asked["spec"]
    if kind % 3 == 0:
        spec["containers"][0]["resources"]["requests"]["cpu"] = str(100 + kind)
    elif kind % 3 == 1:
        spec["nodeSelector"] = {"disk": f"disk-{kind}"}
    else:
        absent = {"labelSelector": {"matchLabels": {"app": f"absent-{kind}"}}, "topologyKey": ZONE}
        spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = [absent]
    return asked


def main():
    n_kinds, n_nodes, n_init, n_pods = map(int, sys.argv[1:5])
    init = [pod(i, i % n_kinds, n_kinds) for i in range(n_init)]
    for i, running in enumerate(init):
        running["spec"]["nodeName"] = f"node-{i * 7 % n_nodes:05d}"
    waiting = [refused(n_init + i, i % n_kinds, n_kinds) for i in range(n_pods)]
    json.dump({"nodes": [node(i) for i in range(n_nodes)], "init": init, "pods": waiting}, sys.stdout)


if __name__ == "__main__":
    main()
