"""Finding what belongs to which controller takes steps in proportion to the objects, counted and not timed."""

import functools

import msgspec
import pytest

from bayplan.controllers import desired_state
from bayplan.controllers.created_objects import Roots
from bayplan.controllers.desired_state import DesiredState, PodOwnership
from bayplan.model.labels import Selector
from bayplan.wire.controllers import Controller
from bayplan.wire.pods import Pod

FEW, MANY = 50, 400


def controller(kind, name, labels, owner=None):
    owners = [{"kind": owner[0], "name": owner[1], "uid": "u", "controller": True}] if owner else []
    metadata = {"name": name, "namespace": "shop", "ownerReferences": owners}
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}}, "replicas": 0}
    return msgspec.convert({"kind": kind, "metadata": metadata, "spec": spec}, Controller)


def deployments_with_replica_sets(n):
    state = DesiredState()
    for i in range(n):
        state.controllers["Deployment"].append(controller("Deployment", f"d{i}", {"app": f"d{i}"}))
        for j in range(5):
            owner = ("Deployment", f"d{i}")
            state.controllers["ReplicaSet"].append(controller("ReplicaSet", f"d{i}-{j}", {"app": f"d{i}"}, owner))
    return state


def deployments_beside_bare_pods(n):
    state = DesiredState()
    for i in range(n):
        state.controllers["Deployment"].append(controller("Deployment", f"d{i}", {"app": f"d{i}"}))
        metadata = {"name": f"p{i}", "namespace": "shop", "labels": {"app": f"p{i}"}}
        state.inventory.add(msgspec.convert({"metadata": metadata}, Pod))
    return state


def chain(n):
    state = DesiredState()
    for i in range(n):
        state.controllers["Deployment"].append(
            controller("Deployment", f"d{i}", {"app": f"d{i}"}, ("Deployment", f"d{i + 1}"))
        )
    return state


@pytest.fixture
def counted(monkeypatch):
    """How often a method or function is called while `act` runs."""

    def counted(owner, name, act):
        n_calls, original = 0, getattr(owner, name)

        def counting(*arguments):
            nonlocal n_calls
            n_calls += 1
            return original(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(owner, name, counting)
            act()
        return n_calls

    return counted


@pytest.mark.parametrize("scene", [deployments_with_replica_sets, deployments_beside_bare_pods])
def test_members_of_deployments(scene, counted):
    def find(state):
        ownership = PodOwnership(state.inventory, state.controllers["ReplicaSet"])
        for deployment in state.controllers["Deployment"]:
            ownership.replica_sets(deployment)
            ownership.members_by_set(deployment)

    for owner, name in ((desired_state, "_belongs_to"), (Selector, "matches")):
        few, many = (counted(owner, name, functools.partial(find, scene(n))) for n in (FEW, MANY))
        assert many <= few * MANY / FEW + 1


def test_a_chain_of_owners_is_followed_once():
    state = chain(MANY)
    roots, n_steps = Roots(state), 0
    assert {roots.of(one).name for one in state.controllers["Deployment"]} == {f"d{MANY - 1}"}

    class Counted(dict):
        def get(self, *arguments):
            nonlocal n_steps
            n_steps += 1
            return super().get(*arguments)

    roots._owner_of, roots._roots = Counted(roots._owner_of), {}
    for key in roots._known:
        roots._follow(key)
    assert n_steps == MANY
