"""Measure the page of `bayplan ui` in Chromium with 5,000 nodes and 50,000 pods; results in benchmarks/page.json."""

import json
import pathlib
import statistics
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE.parent / "tests")]

from web import pages, test_scale  # noqa: E402

N_FRAMES = 120
ZOOM = """async (n) => {
  const { drawing } = bayplan, script = [];
  const started = performance.now();
  for (let i = 0; i < n; i += 1) {
    drawing.zoom(i % 60 < 30 ? 1.12 : 1 / 1.12, 400, 300);
    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
    script.push(drawing.stats.scriptMs);
  }
  return { seconds: (performance.now() - started) / 1000, script };
}"""


def main():
    """Open the page a few times and write what was measured."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "state.json")
        file.write_text(json.dumps(test_scale.large_state()))
        with pages.served(pages.state(file)) as url, pages.browser() as chromium:
            for _ in range(5):
                with pages.opened(chromium, url) as page:
                    painted = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
                    drawn = page.evaluate("bayplan.drawing.stats.firstMs")
                    heap = page.evaluate("performance.memory.usedJSHeapSize") / 1e6
                    zoomed = page.evaluate(ZOOM, N_FRAMES)
                found.append({
                    "first_paint_ms": round(painted),
                    "first_drawing_ms": round(drawn),
                    "heap_mb": round(heap),
                    "frames_per_second": round(N_FRAMES / zoomed["seconds"], 1),
                    "script_ms_per_frame": round(statistics.median(zoomed["script"]), 1),
                })  # fmt: skip
    result = {"nodes": test_scale.N_NODES, "pods": test_scale.N_PODS, "runs": found}
    (HERE / "page.json").write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
