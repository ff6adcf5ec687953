"""
Writes docs/reference/python.md from the signatures and docstrings of the library.

    PYTHONPATH=src .venv/bin/python tests/library/reference_page.py
"""

import inspect
import pathlib
import re
import textwrap

import msgspec

import bayplan
from bayplan import testing

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "reference" / "python.md"
SECTIONS = {
    "Clusters and fleets": ("Cluster", "Fleet", "load", "Settings"),
    "Plans": ("Plan", "PlannedPod", "PlannedRollout", "Room", "RoomForPod"),
    "Plans of fleets": ("FleetPlan", "PlannedBinding", "FleetScaling"),
    "Explanations": ("Explanation", "Verdict", "RuleFailure", "SuggestedFix", "FixedManifests"),
    "Validation": ("validate", "Validation", "Problem"),
    "What runs": (
        "Violations", "ViolatedRule", "MovePlan", "PlannedMove", "QuotaReport", "ChargedNamespace", "StateSnapshot"
    ),
    "Audits": (
        "AuditSettings", "ClusterAudit", "AuditCheck", "AuditReport", "node_labels", "NodeLabels", "NodeLabelChange"
    ),
    "Simulations": (
        "SimulationRun", "ComparedRuns", "JudgedExpectation", "TimelineEvent", "WorkloadOutcome", "ClusterMoment"
    ),
    "Reasons, recordings and single decisions": (
        "explain_rule", "Reasons", "ReasonPage", "replay", "Replay", "ReplayedDecision", "explain_decision", "decide"
    ),
    "Errors": ("BayplanError", "InputError", "ArgumentError", "ClusterError", "Fault"),
}  # fmt: skip
INTRODUCTION = """\
# Python library

`import bayplan` answers what the commands answer, as values. [Use it from Python](../how-to/use-from-python.md) is the introduction,
[test manifests with pytest](../how-to/test-manifests-with-pytest.md) shows the assertions. This page is made from the docstrings by
`tests/library/reference_page.py`.

**Objects.** Where `Objects` is given, it is a path, an object as a dictionary, or several of both.

**Answers** are frozen. Each has

- `to_dict()`, the document of `-o json` with its `apiVersion` ([schemas](schemas)), made anew for each call;
- `to_text(output="", *, width=None, headers=True, sort_by="")`, the output formats of the command line; `str()` is the default one;
- `to_frame()`, a pandas DataFrame with a row for each item, if pandas is installed; Bayplan does not install it;
- a `repr()` of one line.

They are neither true nor false: `assert bayplan.validate("web.yaml").ok`, not `assert bayplan.validate("web.yaml")`.

Most have `ok`: the exit code of the command is 0. Where an answer has many items, they are a mapping by name, or iterating gives them. Answers can be
pickled and copied.

**States** never change, and are read once: the content of files is kept in memory, so that later answers are about the same state. They can be pickled; one of
a live cluster takes its lists with it, and no token.

**Threads** may share states and answers. Questions about one state are answered one after another, questions about different ones at the same time.

**Stability.** The names on this page, their arguments and what is said of them here are stable: before 1.0 they change only in a version with a new minor
number, with a line in the changelog, and what is renamed keeps its old name with a warning for one such version. New names, fields, arguments with a default and output formats
may come with any version. The text of messages, tables and `repr()` may change with any version; documents have a version of their own. Everything else
is private, whatever its name: modules of `bayplan` other than `bayplan.testing` are not to be imported, and names that begin with an underscore are not to be used.
"""


class Raw:
    """An annotation as it is written."""

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text


def signature(name, thing):
    """The call as it is typed."""
    found = inspect.signature(thing)
    parameters = [
        one.replace(annotation=written(one.annotation))
        for one in found.parameters.values()
        if one.name not in ("self", "cls")
    ]
    returned = written(found.return_annotation) if not inspect.isclass(thing) else inspect.Signature.empty
    return f"{name}{found.replace(parameters=parameters, return_annotation=returned)}".replace(" = <factory>", " = …")


def written(annotation):
    if annotation is inspect.Parameter.empty:
        return annotation
    if isinstance(annotation, str):
        return Raw(annotation)
    return Raw(annotation.__name__ if inspect.isclass(annotation) and not hasattr(annotation, "__args__") else str(annotation).replace("typing.", "").replace("collections.abc.", ""))  # fmt: skip


def prose(thing):
    """The docstring, reflowed: one line for each paragraph, code blocks as they are."""
    parts = []
    for part in re.split(r"\n\s*\n", inspect.getdoc(thing) or ""):
        is_code = all(line.startswith("    ") for line in part.splitlines())
        text = textwrap.dedent(part).strip()
        parts.append(f"```python\n{text}\n```" if is_code else " ".join(text.split()))
    return "\n\n".join(parts)


def members(cls):
    """The public methods and properties, inherited ones of the library too, in the order of the source."""
    found = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("bayplan.") and base.__name__ not in ("Answer", "Unchanging"):
            found |= {name: one for name, one in vars(base).items() if not name.startswith("_")}
    skipped = {"to_dict", "to_text", "to_frame"} if hasattr(cls, "to_text") else set()
    return {name: one for name, one in found.items() if name not in skipped}


def fields(cls):
    """The public fields with their types."""
    if issubclass(cls, msgspec.Struct):
        return {name: cls.__annotations__[name] for name in cls.__struct_fields__ if not name.startswith("_")}
    return {}


def of_class(name, cls):
    yield f"### {name}"
    if name in ("Settings", "AuditSettings", "AuditReport", "Fault"):
        yield f"```python\n{signature(name, cls)}\n```"
    yield prose(cls)
    listed = fields(cls) if name not in ("Settings", "AuditSettings", "Fault") else {}
    if listed:
        yield "\n".join(f"- `{field}: {written(kind)!r}`" for field, kind in listed.items())
    for member, one in members(cls).items():
        if member in fields(cls):
            continue
        if isinstance(one, property):
            returned = written(inspect.signature(one.fget).return_annotation)
            yield f"**`{name}.{member}: {returned!r}`**\n\n{prose(one)}"
        elif isinstance(one, classmethod | staticmethod) or callable(one):
            bound = getattr(cls, member)
            yield f"**`{signature(f'{name}.{member}', bound)}`**\n\n{prose(bound)}"


def of_name(name):
    thing = getattr(bayplan, name)
    if inspect.isclass(thing):
        yield from of_class(name, thing)
    else:
        yield f"### {name}"
        yield f"```python\n{signature(name, thing)}\n```"
        yield prose(thing)


def page():
    """The whole page."""
    parts = [INTRODUCTION.strip()]
    for title, names in SECTIONS.items():
        parts.append(f"## {title}")
        for name in names:
            parts += of_name(name)
    parts += ["## Assertions", "`bayplan.testing`. " + prose(testing).partition("\n\n")[0]]
    for name in testing.__all__:
        thing = getattr(testing, name)
        parts += [f"### {name}", f"```python\n{signature(name, thing)}\n```", prose(thing)]
    return "\n\n".join(filter(None, parts)) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
