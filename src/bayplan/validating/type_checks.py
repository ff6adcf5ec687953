"""
Whether a decoded object has the types that its wire Structs declare, in an API server's words.

An API server cannot decode an object with a value of the wrong type and reports that before anything else; so does
Bayplan. Null is valid everywhere: Go reads it as the zero value. The meaning of the values is not known here.
"""

from __future__ import annotations

from bayplan.validating import go_text, structure
from bayplan.validating.fields import Cause, Field
from bayplan.validating.structure import Finding, Problem, Record


def validate_types(field: Field, wire: type, *, closed: bool = False) -> list[Cause]:
    """Where the field departs from the wire type; `closed` also rejects fields that the type does not have."""
    found = structure.walk(field.value, structure.shape_of(wire), field.path, closed=closed)
    return [cause_of(finding) for finding in found]


def cause_of(finding: Finding) -> Cause:
    """The finding as a cause in a Status."""
    field, expected = Field(finding.path, finding.got), structure.expected_text(finding, text="text")
    match finding.problem, *finding.expected:
        case Problem.UNKNOWN_FIELD, Record(fields=known):
            near = structure.nearest(field.text(), known, cutoff=0.5, fold_case=False)
            hint = f"did you mean {go_text.quoted(near)}?" if near else f"known are {', '.join(known)}"
            return field.invalid(f"unknown field; {hint}")
        case Problem.OUT_OF_RANGE, *_:
            return field.wrong_type(f"expected {expected}", str(field.value))
    return wrong_type(field, expected)


def wrong_type(field: Field, expected: str) -> Cause:
    """The cause for a value of another type; a list or a mapping is shown by its type, as the API server does."""
    value, got = field.value, structure.type_text(field.value, text="text")
    shown = go_text.as_json(value) if isinstance(value, bool | int | float) else go_text.quoted(got)
    return field.wrong_type(
        f"expected {expected}, got {got}", go_text.quoted(value) if isinstance(value, str) else shown
    )
