"""The page for everybody: assistive technology, sizes, dark and light, fleets, labels that mean harm, odd input."""

import json
import random

import pytest
from axe_playwright_python.sync_playwright import Axe

from bayplan.errors import ArgumentError
from bayplan.library.inputs import parse_selector

from . import pages
from .pages import settled, until
from .test_page import click_box, click_item, text

EXAMPLE = "examples/01-first-pod"
FLEET = ("examples/10-fleet-idc-first/fleet", "examples/10-fleet-idc-first/shop-30.yaml")
SERIOUS = ("serious", "critical")
WIDTHS = (320, 375, 768, 1280, 1920, 3840)
# Markup, a script, a change of direction, an escape sequence, a property of every object, and what is too long.
EVIL = {
    "markup": "<img src=x onerror=globalThis.hacked=1><script>globalThis.hacked=2</script>",
    "bidi": "safe\u202egpj.exe\u2066",
    "escape": "\x1b]0;owned\x07\x1b[31mred",
    "constructor": "toString",
    "__proto__": "polluted",
    "long": "x" * 2**20,
    "quote": "\"'`${globalThis.hacked=3}{{7*7}}",
}


@pytest.fixture(scope="module")
def url():
    with pages.served(pages.manifests(EXAMPLE)) as found:
        yield found


@pytest.fixture(scope="module")
def fleet():
    with pages.served(pages.manifests(*FLEET)) as found:
        yield found


def check_accessible(page):
    results = Axe().run(page)
    serious = [one for one in results.response["violations"] if one["impact"] in SERIOUS]
    assert [(one["id"], [node["html"][:200] for node in one["nodes"]][:3]) for one in serious] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_in_any_view(chromium, url, scheme):
    with pages.opened(chromium, url, color_scheme=scheme) as page:
        check_accessible(page)
        page.select_option("#moment", "after")
        settled(page)
        click_item(page, "shop/web-4")
        check_accessible(page)
        click_item(page, "shop/web-1")
        check_accessible(page)
        click_box(page, "zone-b")
        check_accessible(page)
        page.get_by_role("button", name="Lose").click()
        settled(page)
        check_accessible(page)
        page.get_by_role("button", name="Table", exact=True).click()
        check_accessible(page)
        page.click("#open-help")
        check_accessible(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_in_a_fleet(chromium, fleet, scheme):
    with pages.opened(chromium, fleet, color_scheme=scheme) as page:
        page.select_option("#moment", "after")
        settled(page)
        click_item(page, "shop/shop-deployment")
        check_accessible(page)


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_wider_than_the_window(chromium, url, width):
    with pages.opened(chromium, url, width=width, height=max(600, width * 9 // 16)) as page:
        page.select_option("#moment", "after")
        settled(page)
        page.fill("#search", "web-4")
        until(page, "document.getElementById('search-result').textContent.startsWith('1 of')")
        for view in ("", "item shop/web-4", "domain topology.kubernetes.io/zone=zone-b", "whatif"):
            page.evaluate("""async (view) => {
              const { select } = await import("/assets/app.js");
              if (view === "whatif") document.getElementById("tab-whatif").click();
              else await select(view);
            }""", view)  # fmt: skip
            settled(page)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.evaluate("document.getElementById('drawing').clientWidth") >= min(300, width - 20)
            clipped = page.evaluate("""() => [...document.querySelectorAll("button, label, h2, h3, dd, p")]
              .filter((one) => one.offsetParent && one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflowX !== "visible" && !one.closest(".visually-hidden"))
              .map((one) => one.textContent.slice(0, 80))""")  # fmt: skip
            assert clipped == []


def test_nothing_moves_by_itself_where_less_motion_is_wanted(chromium, url):
    with pages.opened(chromium, url, reduced_motion="reduce") as page:
        assert page.evaluate("document.getAnimations().length") == 0
        assert page.evaluate("getComputedStyle(document.getElementById('open-help')).transitionDuration") == "0s"
        frames = page.evaluate("bayplan.drawing.stats.frames")
        page.wait_for_timeout(300)
        assert page.evaluate("bayplan.drawing.stats.frames") == frames


def test_a_fleet_shows_its_tiers_and_follows_the_load(chromium, fleet):
    with pages.opened(chromium, fleet) as page:
        assert page.inner_text("#status") == "4 clusters, 1 workload · 1 pending"
        page.select_option("#moment", "after")
        settled(page)
        click_item(page, "shop/shop-deployment")
        assert "Groups in order" in text(page)
        rows = page.locator("#load-result tbody tr").all_inner_texts()
        assert [row.split() for row in rows] == [["idc-1", "0", "12"], ["idc-2", "0", "8"], ["cloud-1", "1", "10"]]
        page.get_by_role("spinbutton", name="Replicas").fill("6")
        until(page, "document.querySelector('#load-result caption')?.textContent === '6 replicas'")
        settled(page)
        assert not any(
            row.split()[0] == "cloud-1" and row.split()[2] != "0"
            for row in page.locator("#load-result tbody tr").all_inner_texts()
        )
        page.get_by_role("slider", name="Replicas").fill("100")
        until(page, "document.querySelector('#load-result caption')?.textContent === '100 replicas'")
        assert any(
            row.split()[0] == "cloud-1" and int(row.split()[2]) > 50
            for row in page.locator("#load-result tbody tr").all_inner_texts()
        )


def test_a_cluster_of_a_fleet_is_lost_and_its_replicas_move(chromium, fleet):
    with pages.opened(chromium, fleet) as page:
        click_box(page, "idc-1")
        page.get_by_role("button", name="Lose").click()
        settled(page)
        on = page.evaluate("bayplan.scene.items.map((one) => bayplan.scene.targets[one.target]?.name)")
        assert "idc-1" not in on
        assert "cloud-1" in on
        assert "Lose idc-1" in text(page)


def hostile_state():
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": EVIL["markup"], "labels": {**EVIL, "topology.kubernetes.io/zone": EVIL["bidi"]}},
        "status": {"allocatable": {"cpu": "4", "pods": "9", "<b>x</b>/y": "3"}},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": EVIL["quote"], "namespace": EVIL["bidi"], "labels": {**EVIL, "app": EVIL["markup"]}},
        "spec": {"nodeName": EVIL["markup"], "containers": [{"name": "c", "image": "x"}]},
    }
    waiting = {
        **pod,
        "metadata": {**pod["metadata"], "name": EVIL["markup"]},
        "spec": {"containers": pod["spec"]["containers"], "nodeSelector": {"nope": "x"}},
    }
    return {"apiVersion": "v1", "kind": "List", "items": [node, pod, waiting]}


def test_labels_that_mean_harm_are_text(chromium, tmp_path):
    file = tmp_path / "state.json"
    file.write_text(json.dumps(hostile_state()), encoding="utf-8")
    with pages.served(pages.state(file)) as url, pages.opened(chromium, url) as page:
        assert page.inner_text("#status").startswith("1 node, 2 pods")
        views = [
            "",
            "waiting",
            *page.evaluate(
                "[...bayplan.scene.items.map((one) => `item ${one.key}`), `target ${bayplan.scene.targets[0].name}`, ...bayplan.drawing.all.filter((one) => one.key).map((one) => `domain ${one.id}`)]"
            ),
        ]
        for view in views:
            page.expected.append("400")  # what has such a name cannot always be explained
            page.evaluate("async (view) => (await import('/assets/app.js')).select(view)", view)
            settled(page)
            shown = page.inner_text("body")
            assert "\u202e" not in shown
            assert "\x1b" not in shown
            assert len(shown) < 60_000
        page.get_by_role("button", name="Table", exact=True).click()
        assert "<img src=x" in page.inner_text("#table-area")
        assert page.evaluate("document.querySelectorAll('img, script:not([src]), iframe, object, b').length") == 0
        assert page.evaluate(
            "globalThis.hacked === undefined && {}.polluted === undefined && ({}).toString instanceof Function"
        )
        page.fill("#search", "constructor=toString")
        until(page, "document.getElementById('search-result').textContent === '2 of 2'")
        page.fill("#search", "hasOwnProperty")
        until(page, "document.getElementById('search-result').textContent === '0 of 2'")


def test_a_cluster_without_nodes_says_so_and_shows_the_rest(chromium, tmp_path):
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "n"},
        "spec": {"containers": [{"name": "c", "image": "x"}]},
    }
    file = tmp_path / "state.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [pod]}), encoding="utf-8")
    with pages.served(pages.state(file)) as url, pages.opened(chromium, url) as page:
        assert "Nothing to draw" in text(page)
        assert "n/p" in text(page)
        assert "the input has no nodes" in text(page)


def test_nodes_without_the_label_are_in_a_box_of_their_own_and_counted(chromium, tmp_path):
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"n{i}", "labels": {"topology.kubernetes.io/zone": "a"} if i % 2 else {}},
            "status": {"allocatable": {"cpu": "4", "pods": "9"}},
        }
        for i in range(6)
    ]
    file = tmp_path / "state.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes}), encoding="utf-8")
    with pages.served(pages.state(file)) as url, pages.opened(chromium, url) as page:
        assert "3 nodes without the zone label: dashed box" in page.inner_text("#legend")
        assert page.evaluate(
            "bayplan.drawing.boxes.root.children.map((one) => [one.value ?? '', one.members.length])"
        ) == [["a", 3], ["", 3]]
        page.evaluate("async () => (await import('/assets/app.js')).select('domain topology.kubernetes.io/zone=')")
        page.get_by_role("button", name="Lose").click()
        settled(page)
        assert "Nodes lost: n0, n2, n4" in text(page)


SELECTORS = ["", " ", "app=web", "app==web", "app = web", "app!=web", "app", "!app", "! app", "app in (web,db)", "app in (web, db)", "app notin (web)", "app in ()", "app notin ()", "a/b=c", "app=", "app!=",
             "app=web,tier=db", "app=web,", ",", "app in (web", "app=web db", "app>1", "-a=b", "a=-b", "a.b/c_d-e=f", "app in (web),!tier,zone notin (a,b)", "App=Web", "app=wéb", "in in (in)", "app\tin\t(web)"]  # fmt: skip


def test_selectors_are_read_as_the_command_line_reads_them(chromium, url):
    chance = random.Random(26)
    label_sets = [
        {},
        {"app": "web"},
        {"app": ""},
        {"app": "db", "tier": "db"},
        {"in": "in"},
        {"a/b": "c"},
        {"app": "Web", "zone": "a"},
    ]
    pieces = [
        "app",
        "tier",
        "=",
        "==",
        "!=",
        "!",
        " in ",
        " notin ",
        "(",
        ")",
        ",",
        "web",
        "db",
        " ",
        "a/b",
        "-",
        ".",
        "/",
    ]
    typed = [*SELECTORS, *("".join(chance.choices(pieces, k=chance.randint(1, 9))) for _ in range(3000))]

    def read(selector):
        try:
            found = parse_selector(selector)
        except ArgumentError:
            return None
        return [found.matches(labels) for labels in label_sets]

    with pages.opened(chromium, url) as page:
        in_page = page.evaluate("""async ([typed, labelSets]) => {
          const { parse } = await import("/assets/selectors.js");
          return typed.map((text) => { try { const found = parse(text); return labelSets.map((one) => found(one)); } catch { return null; } });
        }""", [typed, label_sets])  # fmt: skip
    different = [
        (selector, there, here)
        for selector, there in zip(typed, in_page, strict=True)
        if there != (here := read(selector))
    ]
    assert different == []
    assert sum(one is not None for one in in_page) > 100
