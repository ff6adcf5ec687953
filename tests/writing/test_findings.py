from bayplan.errors import Fault
from bayplan.writing import findings, tables, validation_formats
from bayplan.writing.findings import ValidationFinding, ValidationReport

REPORT = ValidationReport(
    [
        ValidationFinding(Fault("Invalid value: 0", "a.yaml", 3, "Pod shop/x", "spec.maxSkew"), "FieldValueInvalid"),
        ValidationFinding(Fault("a binary file", "b.yaml"), findings.UNREADABLE),
        ValidationFinding(Fault("deprecated", "a.yaml", 5, "Pod shop/x", "spec"), "Warning", findings.WARNING),
    ],
    n_objects=1,
    n_files=2,
)


def test_the_table_has_the_errors():
    assert tables.rendered(findings.table(REPORT), None) == (
        "FILE      OBJECT      FIELD         PROBLEM\n"
        "a.yaml:3  Pod shop/x  spec.maxSkew  Invalid value: 0\n"
        "b.yaml    <none>      <none>        a binary file\n"
    )


def test_the_summary_counts_objects_and_errors():
    assert findings.summary(REPORT) == "1 object in 2 files: 2 errors"
    assert findings.summary(ValidationReport([], 2, 1)) == "2 objects in 1 file: all valid"


def test_what_has_warnings_is_not_called_all_valid():
    (warning,) = REPORT.warnings
    assert findings.summary(ValidationReport([warning], 2, 1)) == "2 objects in 1 file: no errors, 1 warning"


def test_the_summary_counts_unchecked_objects():
    assert findings.summary(ValidationReport([], 2, 1, {"Foo": 1, "ConfigMap": 2})).splitlines() == [
        "2 objects in 1 file: all valid",
        "3 objects of other kinds were not checked: ConfigMap 2, Foo 1",
    ]
    assert findings.summary(ValidationReport([], 0, 1, {"Foo": 1})).splitlines() == [
        "0 objects in 1 file: nothing was checked",
        "1 object of another kind was not checked: Foo 1",
    ]


def test_the_document_has_all_findings():
    document = findings.document(REPORT, "1.36")
    counted = {"objects": 1, "files": 2, "errors": 2, "warnings": 1, "unchecked": {}, "skipped": {}, "ignored": 0}
    assert document["summary"] == counted
    assert [f["severity"] for f in document["findings"]] == ["error", "error", "warning"]


def test_sarif_has_a_line_for_every_result():
    results = validation_formats.sarif(REPORT, "1")["runs"][0]["results"]
    lines = [r["locations"][0]["physicalLocation"]["region"]["startLine"] for r in results]
    assert lines == [3, 1, 5]
    assert [r["level"] for r in results] == ["error", "error", "warning"]
    assert results[0]["message"]["text"] == "Pod shop/x: spec.maxSkew: Invalid value: 0"


def test_sarif_describes_its_rules():
    driver = validation_formats.sarif(REPORT, "1")["runs"][0]["tool"]["driver"]
    described = {rule["id"]: rule["shortDescription"]["text"] for rule in driver["rules"]}
    assert described.keys() == {"FieldValueInvalid", "Unreadable", "Warning"}
    assert described["Unreadable"] == "The file cannot be read"
