"""Completion on a real API server: namespaces and names as it has them."""

from bayplan.cli import completion


def test_namespaces_and_names_are_those_of_the_server(kube_server, sync_admin, namespace):
    sync_admin.create_pod("web-1", namespace)
    sync_admin.create_pod("db-0", namespace)
    cluster = ("--kubeconfig", str(kube_server.kubeconfig()))
    assert namespace in completion.candidates(["place", *cluster, "-n", ""]).splitlines()
    assert completion.candidates(["explain", *cluster, "-n", namespace, "po/w"]) == "po/web-1\n:4\n"
    assert completion.candidates(["explain", *cluster, "-n", namespace, ""]) == "pod/db-0\npod/web-1\n:4\n"


def test_a_user_without_rights_gets_no_candidates(kube_server, namespace):
    cluster = ("--kubeconfig", str(kube_server.kubeconfig("restricted")))
    assert completion.candidates(["explain", *cluster, "-n", namespace, ""]) == ":4\n"
