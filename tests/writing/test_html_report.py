from bayplan.model.workloads import Needs, Workload
from bayplan.placing.place_cluster import ClusterPlacement
from bayplan.placing.place_pods import PodPlacement
from bayplan.writing import html_report

NASTY = '<script>alert("x")</script>'


def page_of(placements, texts):
    return html_report.page(ClusterPlacement(placements, []), texts)


def placement(name, target="", message="", **reasons):
    workload = Workload(namespace="shop", name=name, labels={}, needs=Needs())
    return PodPlacement(workload, target, 12, message, reasons)


def test_names_are_escaped_everywhere():
    page = page_of([placement(NASTY, NASTY), placement("b", "", NASTY, **{NASTY: 1})], {f"shop/{NASTY}": NASTY})
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 5


def test_names_cannot_end_an_attribute():
    page = page_of([placement('"onload="x')], {'shop/"onload="x': "why"})
    assert 'id="why-shop/&quot;onload=&quot;x"' in page


def test_the_page_shows_counts_reasons_and_explanations():
    page = page_of([placement("a", "n1"), placement("b", "", "0/1 …", full=1)], {"shop/b": "why\nnot"})
    assert "1 of 2 placed." in page
    assert "<td>full</td>" in page
    assert '<pre tabindex="0">why\nnot</pre>' in page
    assert '<a href="#why-shop/b">b</a>' in page


def test_the_page_loads_and_runs_nothing():
    page = page_of([], {})
    assert "default-src 'none'" in page
    assert "://" not in page
