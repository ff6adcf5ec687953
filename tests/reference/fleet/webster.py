"""Webster's method: each replica is assigned to the cluster with the largest claim. Knows nothing of clusters."""


def seats(number, votes, uid):
    """{name: seats} for {name: votes}, in the order of names."""
    won = dict.fromkeys(sorted(votes), 0)
    for _ in range(number if votes else 0):
        best = None
        for name in won:
            if best is None or ahead(name, best, won, votes, uid):
                best = name
        won[best] += 1
    return won


def ahead(one, other, won, votes, uid):
    """Of equal claims fewer seats win, then the name, in the direction that the template's uid gives."""
    claim, rival = float(votes[one]) / (2 * won[one] + 1), float(votes[other]) / (2 * won[other] + 1)
    if claim != rival:
        return claim > rival
    if won[one] != won[other]:
        return won[one] < won[other]
    return one > other if descending(uid) else one < other


def descending(uid):
    return bool(uid) and fnv1a(uid.encode()) & 1 == 1


def fnv1a(data):
    """The 32-bit FNV-1a hash."""
    value = 0x811C9DC5
    for byte in data:
        value = (value ^ byte) * 0x01000193 % 2**32
    return value
