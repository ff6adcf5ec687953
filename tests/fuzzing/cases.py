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


def _workload(documents, chance):
    """The name of something that the documents have, if it can be an argument."""
    document, _ = documents.get("doc", ([], None))
    named = [
        f"{one['kind']}/{one['metadata']['name']}"
        for one in (document if isinstance(document, list) else [])
        if isinstance(one, dict) and isinstance(one.get("metadata"), dict) and isinstance(one.get("kind"), str)
        if isinstance(one["metadata"].get("name"), str) and one["kind"] not in ("Node", "Cluster", "Namespace")
    ]
    texts = [name for name in named if name.isprintable() and not name.startswith("-")]
    return chance.choice(texts) if texts else "pod/web-4"


def spelled(document, spell):
    return spelling.encoded(spell(document))


def arguments(door, documents, chance):
    found = []
    for word in door.arguments:
        chosen = chance.choice(word) if isinstance(word, tuple) else word
        if chosen == doors.ANY_WORKLOAD:
            chosen = _workload(documents, chance)
        found += [chosen] if isinstance(chosen, str) else chosen
    return found
