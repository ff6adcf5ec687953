"""
Damage to a document as plain values: one small change at a random place.

Changes are made in copies, so that seeds stay as they are; a subtree that is put in a second place is shared, which YAML
spells as an anchor and an alias.
"""

import copy
import json
import re

from fuzzing.vocabulary import ANNOTATIONS, API_VERSIONS, FLOATS, INTEGERS, KINDS, QUANTITIES, TEXTS, TIMES, hostile

MAX_LIST = 60
_QUANTITY = re.compile(r"[0-9.]+(m|[kMGTPE]i?)?")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT")


def mutated(document, vocabulary, chance):
    """The document with one to six changes; half of the documents keep the types of all values, to get past the first check."""
    document = copy.deepcopy(document)
    changes = _PLAUSIBLE if chance.random() < 0.5 else _CHANGES
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 4, 6))):
        document = _changed(document, vocabulary, chance, changes)
    return document


def places(value, name="", above=None, key=None):
    """Every value within, with its field name, the container it is in and its key there."""
    yield value, name, above, key
    if isinstance(value, dict):
        for inner_key, inner in value.items():
            yield from places(inner, inner_key, value, inner_key)
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from places(inner, name, value, position)


def _changed(document, vocabulary, chance, changes):
    found = list(places(document))
    # Most scalars are names and labels; containers are where structure is.
    containers = [place for place in found if isinstance(place[0], dict | list)]
    value, name, above, key = chance.choice(containers if containers and chance.random() < 0.35 else found)
    if above is None:
        if chance.random() > 0.02:
            return _within(document, found, vocabulary, chance)
        return hostile(chance)
    new = chance.choice(changes)(value, name, vocabulary, chance, found)
    if isinstance(new, dict | list) and _holds(new, above):  # no document contains itself
        new = copy.deepcopy(new)
    if new is _REMOVED:
        del above[key]
    elif new is _AGAIN:
        _repeat(above, key, value, chance)
    elif new is _RENAMED:
        _rename(above, key, chance)
    else:
        above[key] = new
    return document


def _within(document, found, vocabulary, chance):
    """A change to the list of objects itself."""
    if not isinstance(document, list) or not document:
        return document
    position = chance.randrange(len(document))
    match chance.randrange(5):
        case 0:
            del document[position]
        case 1:
            document.insert(position, copy.deepcopy(chance.choice(document)))
        case 2:
            document.insert(position, vocabulary.object(chance))
        case 3 if isinstance(document[position], dict):
            document[position] = {
                "apiVersion": "v1",
                "kind": chance.choice(("List", "PodList", "NodeList")),
                "items": [document[position]],
            }
        case 4:
            chance.shuffle(document)
    return document


_REMOVED, _AGAIN, _RENAMED = object(), object(), object()


def _hostile(value, name, vocabulary, chance, found):
    if name in ("apiVersion", "kind") and chance.random() < 0.8:
        return chance.choice(API_VERSIONS if name == "apiVersion" else KINDS)
    if name.lower().endswith(("time", "timestamp")) and chance.random() < 0.8:
        return chance.choice(TIMES)
    if isinstance(value, str) and chance.random() < 0.2:
        place = chance.randint(0, len(value))
        inserted = hostile(chance)
        return value[:place] + (inserted if isinstance(inserted, str) else str(inserted)[:50]) + value[place:]
    return hostile(chance)


def _removed(value, name, vocabulary, chance, found):
    return _REMOVED


def _again(value, name, vocabulary, chance, found):
    return _AGAIN


def _renamed(value, name, vocabulary, chance, found):
    return _RENAMED


def _swapped(value, name, vocabulary, chance, found):
    """What another place of the document has, in half of the cases shared with it."""
    other = chance.choice(found)[0]
    return copy.deepcopy(other) if isinstance(other, dict | list) and chance.random() < 0.5 else other


def _holds(container, value):
    return any(inner is value for inner, *_ in places(container))


def _known(value, name, vocabulary, chance, found):
    """Another value that this field may have, or a field that this mapping may have."""
    if isinstance(value, dict):
        field = chance.choice(vocabulary.names_in(name))
        return {**value, field: copy.deepcopy(vocabulary.value(field, chance))}
    return copy.deepcopy(vocabulary.value(name, chance))


def _field(value, name, vocabulary, chance, found):
    """A mapping gets a field that some mapping has; an annotation of ours gets a text."""
    if not isinstance(value, dict):
        return _wrapped(value, name, vocabulary, chance, found)
    if name == "annotations" or (name == "metadata" and chance.random() < 0.5):
        content = vocabulary.value(chance.choice(("affinity", "placement", "labels", "podAntiAffinity")), chance)
        text = json.dumps(content) if chance.random() < 0.7 else hostile(chance)
        added = {chance.choice(ANNOTATIONS): text}
        return {**value, **added} if name == "annotations" else {**value, "annotations": added}
    field = chance.choice(vocabulary.names)
    return {**value, field: copy.deepcopy(vocabulary.value(field, chance))}


def _same_type(value, name, vocabulary, chance, found):
    """Another value of the same type, the extremes included."""
    match value:
        case bool():
            return not value
        case int():
            return chance.choice(INTEGERS[:10])
        case float():
            return chance.choice(FLOATS)
        case str():
            return _same_form(value, name, vocabulary, chance)
        case list():
            return chance.choice((value[1:], value[:1], value[::-1], value * 2))
        case dict() if value:
            return {key: inner for key, inner in value.items() if chance.random() < 0.8}
    return value


def _same_form(value, name, vocabulary, chance):
    if _QUANTITY.fullmatch(value):
        return chance.choice(QUANTITIES)
    if _TIME.match(value):
        return chance.choice(TIMES)
    known = [one for one in vocabulary.values.get(name, ()) if isinstance(one, str)]
    return chance.choice(known) if known and chance.random() < 0.6 else chance.choice(TEXTS)


def _wrapped(value, name, vocabulary, chance, found):
    match chance.randrange(6):
        case 0:
            return [value]
        case 1:
            return {chance.choice(("", "a", "name", "items", "0")): value}
        case 2 if isinstance(value, list):
            return dict(enumerate_as_text(value))
        case 2 if isinstance(value, dict):
            return list(value.values())
        case 3 if isinstance(value, list | dict) and value:
            return next(iter(value.values() if isinstance(value, dict) else value))
        case 4:
            return value if isinstance(value, dict | list) else str(value)
    return json.dumps(value) if isinstance(value, dict | list) else [value, value]


def enumerate_as_text(values):
    return ((str(position), value) for position, value in enumerate(values))


def _inside_text(value, name, vocabulary, chance, found):
    """A text that is JSON or YAML, as annotations are, is changed within."""
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return _hostile(value, name, vocabulary, chance, found)
    try:
        content = json.loads(value)
    except ValueError:
        return value[: chance.randint(0, len(value))]
    changed = mutated({"": content}, vocabulary, chance)
    return json.dumps(changed.get("") if isinstance(changed, dict) else changed)


def _long(value, name, vocabulary, chance, found):
    if isinstance(value, list):
        return (value or [hostile(chance)]) * chance.choice((2, 3, MAX_LIST))
    if isinstance(value, dict):
        return {**value, **{f"{chance.choice('abc')}{i}": hostile(chance) for i in range(chance.choice((2, MAX_LIST)))}}
    if isinstance(value, int | float):
        return chance.choice((value * 10, -value, value + 0.5, value + 1)) if abs(value) < 2**60 else 0
    return str(value) * 2


_CHANGES = (
    _hostile, _hostile, _hostile, _hostile, _removed, _again, _renamed, _swapped, _swapped, _known, _known, _known, _field,
    _wrapped, _inside_text, _long,
)  # fmt: skip


_PLAUSIBLE = (_same_type, _same_type, _same_type, _known, _known, _removed, _again, _inside_text)


def _repeat(above, key, value, chance):
    if isinstance(above, list):
        above.insert(chance.randint(0, len(above)), value if chance.random() < 0.5 else copy.deepcopy(value))
    else:
        above[chance.choice((f"{key}s", f"{key} ", key.upper(), key.capitalize(), f"x-{key}"))] = value


def _rename(above, key, chance):
    if isinstance(above, list):
        above.reverse()
        return
    content = above.pop(key)
    new = chance.choice((key.upper(), key.lower(), f"{key}s", key[1:], "", f" {key}", hostile(chance)))
    above[new if isinstance(new, str) else str(new)[:60]] = content
