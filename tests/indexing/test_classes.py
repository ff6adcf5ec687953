"""Whatever terms come into use and are released, classes agree with the labels of their members, and counts are correct."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.indexing import term_sums
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.labels import DOES_NOT_EXIST, EXISTS, IN, NOT_IN, Selector, requirement
from bayplan.model.targets import Target
from bayplan.model.terms import TARGET, AffinityTerms, PeerTerm, PodTerm, TermPart
from bayplan.model.workloads import Needs, Workload
from term_usage import ChosenUsage

KEYS, VALUES, NODES = ("app", "tier", "unique"), ("a", "b", "c"), ("n0", "n1", "n2")


class ChangingPeers:
    """Pods that are added and removed, and terms that are held and released, with the reach of each term."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.index = PlacementIndex(lost_targets_count=True)
        for name in NODES:
            self.index.add_target(Target(name=name, labels={"zone": name}))
        self.pod_table = self.index.pod_table  # created now, so that it follows all changes
        self.held = []
        self.serial = 0

    def step(self):
        peer_index, chance = self.index.peer_index, self.chance
        match chance.choice(("add", "add", "remove", "hold", "hold", "release", "relabel")):
            case "add":
                self.add()
            case "remove" if self.index.records:
                self.index.remove(chance.choice(list(self.index.records)))
            case "hold":
                entry = peer_index.hold(self.term())
                self.held.append((entry, peer_index.match_reach(entry, (TARGET,))))
            case "release" if self.held:
                peer_index.release(self.held.pop(chance.randrange(len(self.held)))[0])
            case "relabel":
                labels = {key: chance.choice(VALUES) for key in KEYS if chance.random() < 0.6}
                self.index.set_namespace(chance.choice("de"), labels)

    def add(self):
        chance, self.serial = self.chance, self.serial + 1
        labels = {key: chance.choice(VALUES) for key in KEYS if chance.random() < 0.6}
        if chance.random() < 0.3:
            labels["unique"] = str(self.serial)
        terms = AffinityTerms(anti_required=(PodTerm(self.selector(), "zone"),)) if chance.random() < 0.2 else None
        needs = Needs(affinity=terms or AffinityTerms())
        workload = Workload(namespace=chance.choice("de"), name=f"p{self.serial}", labels=labels, needs=needs)
        self.index.add(workload, *chance.sample((*NODES, "lost"), chance.choice((1, 1, 1, 2))))

    def term(self):
        """A term, or what counts in its place."""
        chance = self.chance
        namespaces = chance.choice((None, None, (), ("d",), ("d", "e")))
        term = PeerTerm((TermPart(self.selector(), namespaces, self.selector() if namespaces == () else None),))
        summands = term_sums.summands(
            term, ChosenUsage(lambda _: chance.random() < 0.5, lambda _: chance.random() < 0.5)
        )
        return chance.choice((term, *(one for one, _ in summands)))

    def selector(self):
        def drawn_requirement(key):
            operator = self.chance.choice((IN, IN, NOT_IN, EXISTS, DOES_NOT_EXIST))
            values = (*VALUES, str(self.serial))
            drawn = self.chance.sample(values, self.chance.choice((1, 2))) if operator in (IN, NOT_IN) else ()
            return requirement(key, operator, drawn)

        return Selector(
            tuple(drawn_requirement(key) for key in self.chance.sample(KEYS, self.chance.choice((1, 1, 2))))
        )


def selected(term, index):
    """The records that a term selects, by their own labels."""
    for record in index.records.values():
        workload = record.workload
        if index.peer_index.matches(term, workload.labels, workload.namespace):
            yield record


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_classes_agree_with_the_labels_of_their_members(seed):
    scene = ChangingPeers(seed)
    index, peer_index = scene.index, scene.index.peer_index
    for _ in range(40):
        scene.step()
        for entry, reach in scene.held:
            found = list(selected(entry.term, index))
            assert peer_index.all_peers(entry.term) == tuple(sorted(record.key for record in found))
            assert reach.counter.anywhere == len(found)
            for slot in index.slots.by_name.values():
                assert reach.count_at(slot) == sum(slot in record.slots for record in found)
    for record in index.records.values():
        cls = record.member_of
        assert peer_index.classes.by_key[cls.key] is cls
        assert record.key in cls.label_sets[record.label_set]
        assert all(record.key in cls.members[slot] for slot in record.slots)
        assert record.row < 0 or scene.pod_table.class_id[record.row] == cls.id
    for cls in peer_index.classes.by_id.values():
        assert cls.n_members == len(cls.keys) == sum(r.member_of is cls for r in index.records.values())
        assert cls.n_spread == sum(len(index.records[key].slots) > 1 for key in cls.keys)
        assert cls.nowhere == {key for key in cls.keys if not index.records[key].slots}


@pytest.mark.parametrize("seed", range(5))
def test_an_emptied_peer_index_keeps_nothing(seed):
    scene = ChangingPeers(seed)
    for _ in range(60):
        scene.step()
    for key in list(scene.index.records):
        scene.index.remove(key)
    for entry, _ in scene.held:
        scene.index.peer_index.release(entry)
    peer_index = scene.index.peer_index
    assert (len(peer_index.classes), len(peer_index.terms), len(peer_index.label_sets)) == (0, 0, 0)
    assert not peer_index.terms.mentioned
