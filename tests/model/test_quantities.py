import pytest

from bayplan.model import quantities


@pytest.mark.parametrize(
    "written, milli, whole",
    [
        ("1", 1000, 1),
        (2, 2000, 2),
        ("500m", 500, 1),  # rounded up to a whole unit
        ("0.1", 100, 1),
        ("1.5Gi", 1_610_612_736_000, 1_610_612_736),
        ("1500M", 1_500_000_000_000, 1_500_000_000),
        ("1e3", 1_000_000, 1000),
        ("1E3", 1_000_000, 1000),
        ("1E", 10**21 if 10**21 < 2**63 else 2**63 - 1, 10**18),  # a lone E is exa, not an exponent
        ("1n", 1, 1),
        ("100u", 1, 1),
        ("-1", -1000, -1),
        (".5", 500, 1),
        ("16Ei", 2**63 - 1, 2**63 - 1),  # capped at 64 bits
    ],
)
def test_quantities_are_rounded_up(written, milli, whole):
    assert quantities.milli(written) == milli
    assert quantities.units(written) == whole


@pytest.mark.parametrize("written", ["", "1 Gi", "Gi", "1gi", "1KiB", "one", "1e", "--1", "0x10", "1e3Mi", "٣"])
def test_an_invalid_quantity_is_rejected(written):
    with pytest.raises(ValueError, match="expected a quantity"):
        quantities.parse(written)


@pytest.mark.parametrize("exact, binary, written", [
    ("1500m", False, "1500m"), ("2000m", False, "2"), ("1000", False, "1k"), ("1200000", False, "1200k"),
    ("1n", False, "1n"), ("0", False, "0"), ("0.0000000001", False, "1n"), ("-1500m", False, "-1500m"),
    ("1Gi", True, "1Gi"), ("1.5Gi", True, "1536Mi"), ("2G", True, "1953125Ki"), ("1025", True, "1025"),
    ("1023", True, "1023"), ("1000", True, "1k"), ("2048m", True, "2048m"), ("1024.5", True, "1025"),
])  # fmt: skip
def test_quantities_are_written_as_by_an_api_server(exact, binary, written):
    assert quantities.canonical(quantities.parse(exact), binary=binary) == written


@pytest.mark.parametrize(
    "resource, amount, shown",
    [
        ("cpu", 1500, "1500m"),
        ("cpu", 2000, "2"),
        ("memory", 2**30, "1Gi"),
        ("memory", 1_500_000_000, "1430.5Mi"),
        ("pods", 3, "3"),
    ],
)
def test_amounts_are_shown_in_the_usual_notation(resource, amount, shown):
    assert quantities.show(resource, amount) == shown
