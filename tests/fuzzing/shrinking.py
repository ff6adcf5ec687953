"""The smallest files that still fail for the same cause."""

import copy
import time

from fuzzing import cases, running

MAX_RUNS = 600
MAX_SECONDS = 120  # of processor time, which few runs take if each is too slow


def shrunk(case, failure):
    """The files of the case, with everything taken away that the failure does not need."""
    search = _Search(case, failure)
    for name in case.files:
        search.shrink(name)
    return search.files


class _Search:
    def __init__(self, case, failure):
        self.case, self.failure, self.files, self.runs_left = case, failure, dict(case.files), MAX_RUNS
        self.ends = time.process_time() + MAX_SECONDS

    def shrink(self, name):
        if name not in self.case.documents:
            self.files[name] = _shorter(self.files[name], lambda tried: self.fails(name, tried))
            return
        document, spell = self.case.documents[name]
        smaller = _smaller(document, lambda tried: self.fails(name, cases.spelled(tried, spell)))
        self.files[name] = cases.spelled(smaller, spell)

    def fails(self, name, content):
        self.runs_left -= 1
        if self.runs_left < 0 or time.process_time() > self.ends:
            return False
        files = {**self.files, name: content}
        given = files[self.case.stdin] if self.case.stdin else b""
        return running.run(self.case.arguments, files, given).failure == self.failure


def _smaller(document, fails):
    """Take away keys and items as long as that is possible, large ones first."""
    document, is_smaller = copy.deepcopy(document), True
    while is_smaller:
        is_smaller = False
        for path in sorted(_paths(document), key=len):
            try:
                tried = _without(document, path)
            except (KeyError, IndexError, TypeError):
                continue  # it went with something larger
            if fails(tried):
                document, is_smaller = tried, True
    return document


def _paths(value, path=()):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from _paths(inner, (*path, key))


def _without(document, path):
    tried = copy.deepcopy(document)
    container = tried
    for key in path[:-1]:
        container = container[key]
    del container[path[-1]]
    return tried


def _shorter(data, fails):
    """Take away lines, then characters."""
    for separator in (b"\n", b""):
        size = max(1, len(data) // 2)
        while size and len(data) < 100_000:
            parts = data.split(separator) if separator else [data[i : i + 1] for i in range(len(data))]
            size = min(size, len(parts))
            start = 0
            while start < len(parts):
                tried = separator.join(parts[:start] + parts[start + size :])
                if fails(tried):
                    parts = parts[:start] + parts[start + size :]
                    data = tried
                else:
                    start += size
            size //= 2
    return data
