"""
The page of every reason for rejecting a target, collected from the rules: what it means, and what to do.

The texts stand in the rules, with <placeholders> where a rule inserts a name.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence

import msgspec

from bayplan.assigning import failures
from bayplan.model.reasons import PLACEHOLDER, DocumentedReason
from bayplan.rules import fleet_profile, profiles
from bayplan.rules.rule import AnyRule

_MIN_FRAGMENT_LENGTH = 9


class ReasonPage(msgspec.Struct, frozen=True):
    """
    The page of one reason for rejecting a node or a cluster: what it means, and what to do.

    `id` and `rule` are stable names of Bayplan; `plugin` is the scheduler's name, `text` its message, with
    <placeholders> where names are inserted.
    """

    id: str
    rule: str
    plugin: str
    text: str
    means: str
    to_do: str

    def has_id(self, code: str) -> bool:
        """Whether the code is the id of the reason, with any value for its placeholders."""
        return re.fullmatch(_pattern(self.id, ".+"), code) is not None

    def says(self, message: str) -> bool:
        """Whether the message contains the text of the reason, or is a sufficiently long part of it."""
        if not PLACEHOLDER.sub("", self.text):  # only a placeholder: it would match any message
            return False
        ending = self.text.removesuffix(".")  # people leave it out
        return re.search(_pattern(ending, ".+?"), message, re.IGNORECASE) is not None or (
            len(message) >= _MIN_FRAGMENT_LENGTH and message.casefold() in self.text.casefold()
        )


def _pattern(text: str, value: str) -> str:
    """A regular expression for the text, with `value` in place of each placeholder."""
    return value.join(map(re.escape, PLACEHOLDER.split(text)))


@functools.cache
def all_pages() -> tuple[ReasonPage, ...]:
    """The pages in the order in which the rules are evaluated, those for nodes before those for clusters."""
    stages = (
        (failures.SELECT, failures.SELECTING),
        (failures.ASSIGN, failures.ASSIGNING),
        (failures.EVICT, failures.EVICTING),
    )
    of_stages = [_page_of(page, stage, "") for stage, pages in stages for page in pages]
    return (*pages_of((*profiles.pod_rules(), *fleet_profile.fleet_rules())), *of_stages)


def pages_of(rules: Iterable[AnyRule]) -> tuple[ReasonPage, ...]:
    """The pages of these rules in their order, those of a rule once."""
    by_id = {rule.id: rule for rule in rules}
    return tuple(
        _page_of(page, rule.id, page.plugin or rule.name) for rule in by_id.values() for page in rule.documented
    )


def _page_of(page: DocumentedReason, rule: str, plugin: str) -> ReasonPage:
    return ReasonPage(page.reason.id, rule, plugin, page.reason.text, page.means, page.to_do)


def find(code: str) -> Sequence[ReasonPage]:
    """The pages for an id, a rule, a plugin or a message; an id has exactly one page."""
    text = code.strip()
    if not text:  # it would be the plugin of what no plugin does
        return ()
    name = text.casefold()
    pages = all_pages()
    by_id = [page for page in pages if page.has_id(name)]
    by_rule = [page for page in pages if name in (page.rule.casefold(), page.plugin.casefold())]
    if by_id or by_rule:
        return by_id or by_rule
    by_text = [page for page in pages if page.says(text)]
    # Without pages whose text is only the beginning of another match.
    return [page for page in by_text if not any(page.text in other.text for other in by_text if other is not page)]
