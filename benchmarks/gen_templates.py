"""
Generate pods of many distinct templates, each with two affinity terms of its own.

usage: gen_templates.py TEMPLATES NODES INIT PODS   prints one input for `bayplan bench pods`.

Every template keeps its replicas on different nodes and likes to be in the zone of its partner, the next template.
"""

import json
import sys

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def node(i):
    room = {"cpu": "32", "memory": "128Gi", "pods": "250"}
    labels = {HOST: f"node-{i:05d}", ZONE: f"zone{i % 3 + 1}"}
    return {"metadata": {"name": f"node-{i:05d}", "labels": labels}, "status": {"allocatable": room}}


def pod(i, template, n_templates):
    def selects(other):
        return {"matchLabels": {"app": f"app-{other % n_templates}"}}

    apart = {"labelSelector": selects(template), "topologyKey": HOST}
    near = {"weight": 10, "podAffinityTerm": {"labelSelector": selects(template + 1), "topologyKey": ZONE}}
    affinity = {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]},
        "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [near]},
    }
    requests = {"cpu": "10m", "memory": "16Mi"}
    spec = {"containers": [{"name": "c", "image": "app", "resources": {"requests": requests}}], "affinity": affinity}
    labels = {"app": f"app-{template}", "pod-template-hash": f"h{template}"}
    return {"metadata": {"name": f"pod-{i}", "namespace": "default", "labels": labels}, "spec": spec}


def main():
    n_templates, n_nodes, n_init, n_pods = map(int, sys.argv[1:5])
    init = []
    for i in range(n_init):
        running = pod(i, i % n_templates, n_templates)
        running["spec"]["nodeName"] = f"node-{i * 7 % n_nodes:05d}"
        init.append(running)
    waiting = [pod(n_init + i, i % n_templates, n_templates) for i in range(n_pods)]
    json.dump({"nodes": [node(i) for i in range(n_nodes)], "init": init, "pods": waiting}, sys.stdout)


if __name__ == "__main__":
    main()
