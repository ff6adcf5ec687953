"""The format of log lines, as text or JSON: the message, then its facts as key=value."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

_STANDARD_ATTRIBUTES = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class LogFormatter(logging.Formatter):
    """Writes JSON if `as_json`; else the time, the level and the message, then the facts as key=value."""

    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        facts = {name: value for name, value in vars(record).items() if name not in _STANDARD_ATTRIBUTES}
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if record.exc_info:
            facts["traceback"] = self.formatException(record.exc_info)
        if self._as_json:
            line = {"time": at, "level": record.levelname.lower(), "logger": record.name, "msg": record.getMessage()}
            return json.dumps(line | facts, default=str, ensure_ascii=False)
        trace = facts.pop("traceback", "")
        pairs = "".join(f" {name}={_quoted(value)}" for name, value in facts.items())
        return f"{at} {record.levelname.lower():7} {record.getMessage()}{pairs}" + (f"\n{trace}" if trace else "")


def _quoted(value: object) -> str:
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if not text or any(c in text for c in ' "=\n') else text


def to_standard_error(level: int, *, as_json: bool) -> None:
    """Write the logs of Bayplan to standard error, from this level on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogFormatter(as_json=as_json))
    own = logging.getLogger("bayplan")
    own.handlers[:] = [handler]
    own.setLevel(level)
    own.propagate = False
