"""Case number N of a seed: which command, which documents with which damage, and how they are spelled."""

import random

import msgspec

from fuzzing import doors, mutations, seeds, spelling

_SHARE_DAMAGED_TEXT = 0.12
_SHARE_VALID = 0.01


class Case(msgspec.Struct):
    """`files` are bytes by name; `documents` are plain values by name where the bytes are nothing else than those, spelled."""

    door: str
    arguments: list
    files: dict
    documents: dict
    stdin: str

    @property
    def input(self):
        return self.files[self.stdin] if self.stdin else b""


def case(seed, number):
    chance = random.Random(f"{seed}/{number}")
    door = chance.choices(doors.DOORS, [door.weight for door in doors.DOORS])[0]
    files = door.files()
    hit = chance.choice(sorted(files))
    contents, documents = {}, {}
    for name, several in files.items():
        document = chance.choice(several)
        spell = chance.choice(door.spellings.get(name, spelling.ONE))
        if name == hit and chance.random() > _SHARE_VALID:
            document = mutated(door, name, document, chance)
        contents[name] = spelled(document, spell)
        documents[name] = (document, spell)
        if name == hit and chance.random() < _SHARE_DAMAGED_TEXT:
            contents[name] = spelling.damaged(contents[name], chance)
            del documents[name]
    return Case(door.name, arguments(door, documents, chance), contents, documents, door.stdin)


def mutated(door, name, document, chance):
    vocabulary = seeds.vocabulary()
    if door.spellings.get(name) is spelling.SEVERAL and chance.random() < 0.08:
        document = [*document, *(vocabulary.object(chance) for _ in range(3))]
    if door.spellings.get(name) is spelling.SEVERAL and chance.random() < 0.4:
        document = list(map(_as_stored, document))
    if door.arguments[0] == "decide":
        # Good lines around a bad one are answered as usual.
        other = chance.choice(door.files()["doc"])
        found = mutations.mutated(document, vocabulary, chance)
        return [*(found if isinstance(found, list) else [found]), *(other if chance.random() < 0.3 else [])]
    return mutations.mutated(document, vocabulary, chance)


def _as_stored(one):
    """As an API server returns it: such objects are not checked as those that people write are."""
    if not isinstance(one, dict) or not isinstance(one.get("metadata"), dict):
        return one
    status = {"phase": "Pending"} if one.get("kind") == "Pod" else {}
    metadata = {**one["metadata"], "uid": one["metadata"].get("name", "u"), "resourceVersion": "1"}
    return {**one, "metadata": metadata, "status": one.get("status") or status}


def _named(documents):
    """Kind, name and object of everything that the documents have and an argument can name."""
    for document, _ in documents.values():
        for one in document if isinstance(document, list) else ():
            kind, name = _text(one, "kind"), _text(one, "metadata", "name")
            if kind and name and not kind.startswith("-"):
                yield kind, name, one


def _text(value, *path):
    """The text at the end of the path, if there is one that an argument can hold."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) and value.isprintable() else ""


def _workload(documents, chance):
    """KIND/NAME of something that the documents have; bindings are named by their resources."""
    found = [
        (_text(one, "spec", "resource", "kind"), _text(one, "spec", "resource", "name"))
        if kind.endswith("ResourceBinding")
        else (kind, name)
        for kind, name, one in _named(documents)
        if kind not in ("Node", "Cluster", "Namespace")
    ]
    named = [f"{kind}/{name}" for kind, name in found if kind and name and not kind.startswith("-")]
    return chance.choice(named) if named else "pod/web-4"


def _name_of(kind, *path):
    """Chooses a name of an object of this kind, or else what stands at this path in it."""

    def choose(documents, chance):
        found = [_text(one, *path) or name for one_kind, name, one in _named(documents) if one_kind == kind]
        return chance.choice(found) if found else "a"

    return choose


_CHOICES = {
    doors.ANY_WORKLOAD: _workload,
    doors.ANY_NODE: _name_of("Node"),
    doors.ANY_ZONE: _name_of("Node", "metadata", "labels", "topology.kubernetes.io/zone"),
    doors.ANY_CLUSTER: _name_of("Cluster"),
    doors.ANY_REGION: _name_of("Cluster", "spec", "region"),
}


def spelled(document, spell):
    return spelling.encoded(spell(document))


def arguments(door, documents, chance):
    found = []
    for word in door.arguments:
        chosen = chance.choice(word) if isinstance(word, tuple) else word
        for one in (chosen,) if isinstance(chosen, str) else chosen:
            found += _filled(one, documents, chance)
    return found


def _filled(word, documents, chance):
    """The words that the word stands for, with names of the documents."""
    if word == doors.ANY_TWO_WORDS:
        kind, _, name = _workload(documents, chance).partition("/")
        return [f"{kind}/{name}"] if "/" in name or name.startswith("-") else [kind, name]
    for mark, name_in in _CHOICES.items():
        if mark in word:
            word = word.replace(mark, name_in(documents, chance))
    return [word]
