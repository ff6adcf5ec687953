"""5,000 nodes with 50,000 pods, and 10,000 distinct apps: what a frame draws is bounded wherever one looks."""

import json

import pytest

from . import pages
from .pages import settled, until
from .test_page import text

N_NODES, N_PODS = 5_000, 50_000
MAX_CALLS, MAX_ITEMS = 4_000, 15_000  # of one frame
MAX_HEAP_MB = 300


def large_state(n_nodes=N_NODES, n_pods=N_PODS, n_apps=400):
    """Nodes in three regions of three zones with racks of forty, and pods of which every tenth requests most."""
    items = []
    for i in range(n_nodes):
        labels = {
            "topology.kubernetes.io/region": f"region-{i % 3}",
            "topology.kubernetes.io/zone": f"zone-{i % 9}",
            "rack": f"rack-{i // 40 % 14}",
        }
        items.append(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": f"node-{i:04d}", "labels": labels},
                "status": {"allocatable": {"cpu": "32", "memory": "128Gi", "pods": "110"}},
            }
        )
    for i in range(n_pods):
        app = f"app-{i * i % n_apps}"
        requests = {"cpu": "2" if i % 10 == 0 else "100m", "memory": "1Gi"}
        metadata = {"name": f"{app}-{i:05d}", "namespace": f"team-{i % 20}", "labels": {"app": app, "pod": f"pod-{i}"}}
        items.append(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": metadata,
                "spec": {
                    "nodeName": f"node-{i * 7 % n_nodes:04d}",
                    "containers": [{"name": "c", "image": "x", "resources": {"requests": requests}}],
                },
            }
        )
    return {"apiVersion": "v1", "kind": "List", "items": items}


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    file = tmp_path_factory.mktemp("large") / "state.json"
    file.write_text(json.dumps(large_state()), encoding="utf-8")
    with pages.served(pages.state(file)) as url:
        yield url


def test_a_frame_draws_a_bounded_number_of_things_at_every_zoom(chromium, large):
    with pages.opened(chromium, large) as page:
        assert page.inner_text("#status") == "5,000 nodes, 50,000 pods"
        frames = page.evaluate("""() => {
          const { drawing } = bayplan, found = [];
          for (const [x, y] of [[100, 100], [500, 300]]) {
            drawing.fit();
            for (let i = 0; i < 60; i += 1) {
              drawing.draw();
              found.push({ ...drawing.stats, scale: drawing.camera.scale });
              drawing.zoom(1.12, x, y);
            }
          }
          return found;
        }""")  # fmt: skip
        assert max(one["calls"] for one in frames) <= MAX_CALLS
        assert max(one["items"] for one in frames) <= MAX_ITEMS
        assert any(
            one["items"] > 1_000 for one in frames
        )  # pods are drawn one by one as soon as they can be told apart
        assert frames[0]["items"] == 0
        assert page.evaluate("performance.memory.usedJSHeapSize") < MAX_HEAP_MB * 2**20


def test_a_pod_among_many_is_found_and_explained(chromium, large):
    with pages.opened(chromium, large) as page:
        page.fill("#search", "pod=pod-49999")
        until(page, "document.getElementById('search-result').textContent === '1 of 50,000'")
        page.get_by_role("button", name="Table", exact=True).click()
        page.locator("#table-area th button").click()
        until(page, "bayplan.explanation")
        settled(page)
        assert page.locator("table.matrix tbody tr").count() == 100
        assert "Show more of 5,000 nodes" in text(page)


def test_ten_thousand_apps_share_grey_and_the_table_has_pages(chromium, tmp_path):
    file = tmp_path / "state.json"
    file.write_text(json.dumps(large_state(200, 10_000, 99_999_999)), encoding="utf-8")
    with pages.served(pages.state(file)) as url, pages.opened(chromium, url) as page:
        n_apps = page.evaluate("bayplan.ranked.length")
        assert n_apps > 9_000
        assert f"{n_apps - 11:,} others, in grey" in page.inner_text("#legend")
        page.get_by_role("button", name="Table", exact=True).click()
        assert page.locator("#table-area tbody tr").count() == 200
        page.get_by_role("button", name="Next rows").click()
        assert "201 to 400 of 10,000" in page.inner_text("#table-area caption")
