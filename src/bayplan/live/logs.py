"""Log lines for people and for machines: one line each, the facts beside the message."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class LogFormatter(logging.Formatter):
    """`as_json` for machines; else time, level and message, then the facts as name=value."""

    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        facts = {name: value for name, value in vars(record).items() if name not in _STANDARD}
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if record.exc_info:
            facts["traceback"] = self.formatException(record.exc_info)
        if self._as_json:
            line = {"time": at, "level": record.levelname.lower(), "logger": record.name, "msg": record.getMessage()}
            return json.dumps(line | facts, default=str, ensure_ascii=False)
        trace = facts.pop("traceback", "")
        told = "".join(f" {name}={_shown(value)}" for name, value in facts.items())
        return f"{at} {record.levelname.lower():7} {record.getMessage()}{told}" + (f"\n{trace}" if trace else "")


def _shown(value: object) -> str:
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if not text or any(c in text for c in ' "=\n') else text


def to_standard_error(level: int, *, as_json: bool) -> None:
    """Send what Bayplan logs to standard error, from this level on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogFormatter(as_json=as_json))
    own = logging.getLogger("bayplan")
    own.handlers[:] = [handler]
    own.setLevel(level)
    own.propagate = False
