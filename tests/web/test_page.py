# ruff: noqa: RUF001  # the page has signs of multiplication on purpose
"""The page in a real browser: what a user sees of a cluster, and what happens when they ask."""

import json

import pytest

from . import pages
from .pages import settled, until

EXAMPLE = "examples/01-first-pod"
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: api, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: api}}
    spec: {containers: [{name: c, image: api, resources: {requests: {cpu: 100m}}}]}
"""


@pytest.fixture(scope="module")
def url():
    with pages.served(pages.manifests(EXAMPLE)) as found:
        yield found


@pytest.fixture
def page(chromium, url):
    with pages.opened(chromium, url) as found:
        yield found


def text(page):
    return page.inner_text("#panel")


def click_item(page, key):
    """Click a pod on the canvas."""
    x, y = page.evaluate("""(key) => {
      const { drawing, itemOf } = bayplan, { x, y } = drawing.centreOf(itemOf.get(key)), { camera, canvas } = drawing;
      const area = canvas.getBoundingClientRect();
      return [area.left + (x - camera.x) * camera.scale, area.top + (y - camera.y) * camera.scale];
    }""", key)  # fmt: skip
    page.mouse.click(x, y)
    settled(page)


def click_box(page, title):
    """Click the head of a box on the canvas: a domain by its title, or a node by its name."""
    x, y = page.evaluate("""(title) => {
      const { drawing, scene } = bayplan, { camera, canvas } = drawing;
      const box = drawing.all.find((one) => (one.target !== undefined ? scene.targets[one.target].name : one.value) === title);
      const area = canvas.getBoundingClientRect();
      return [area.left + (box.x + box.w / 2 - camera.x) * camera.scale, area.top + (box.y + 6 - camera.y) * camera.scale];
    }""", title)  # fmt: skip
    page.mouse.click(x, y)
    settled(page)


def nodes_of(page):
    """The node of each pod as it is drawn; empty for those in the box of pending ones."""
    return page.evaluate(
        "Object.fromEntries(bayplan.scene.items.map((one) => [one.key, bayplan.scene.targets[one.target]?.name ?? '']))"
    )


def pixel(page, key):
    """The colour that is drawn in the middle of a pod."""
    return page.evaluate("""(key) => {
      const { drawing, itemOf } = bayplan, { x, y, size } = drawing.centreOf(itemOf.get(key)), { camera, ratio } = drawing;
      const at = [(x + size * 0.35 - camera.x) * camera.scale * ratio, (y + size * 0.35 - camera.y) * camera.scale * ratio];
      return [...drawing.context.getImageData(...at.map(Math.round), 1, 1).data].slice(0, 3);
    }""", key)  # fmt: skip


def test_the_drawing_has_nodes_in_their_zones_with_their_pods(page):
    assert page.inner_text("#status") == "5 nodes, 6 pods · 4 pending"
    assert page.evaluate("bayplan.drawing.boxes.root.children.map((zone) => [zone.value, zone.members.length])") == [
        ["zone-a", 1],
        ["zone-b", 2],
        ["zone-c", 2],
    ]
    assert page.evaluate("bayplan.drawing.stats.items") == 6
    assert pixel(page, "shop/cache-1") != pixel(page, "shop/report-1")
    assert "web (4)" in page.inner_text("#legend")
    overview = text(page)
    assert "Pending: 4" in overview
    assert "No execution-time rule is violated." in overview
    assert "4 pods were created for controllers whose pods are not in the input" in overview


def test_colours_groups_and_pressure_can_be_chosen(page):
    page.select_option("#colour", "namespace")
    assert page.inner_text("#legend").startswith("shop (6)")
    assert pixel(page, "shop/cache-1") == pixel(page, "shop/report-1")
    page.select_option("#levels", "-")
    assert page.evaluate("bayplan.drawing.boxes.root.children.length") == 5
    page.select_option("#pressure", "memory")
    assert "memory from 90 %" in page.inner_text("#legend")
    assert page.evaluate("bayplan.drawing.shares[2]") < 0.5  # cpu of node-b2 is 95 % requested


def test_placing_what_waits_is_shown_step_by_step(page):
    page.select_option("#moment", "after")
    settled(page)
    placed = nodes_of(page)
    assert [placed[f"shop/web-{i}"] for i in (1, 2, 3, 4)] == ["node-a1", "node-c1", "node-b1", ""]
    assert "Step 3 of 3. shop/web-3: node-b1" in page.inner_text("#stepper")
    page.get_by_role("button", name="Previous step").click()
    assert nodes_of(page)["shop/web-3"] == ""
    page.get_by_role("slider", name="Step of 3 moves").fill("0")
    assert set(nodes_of(page).values()) == {"node-a1", "node-b2", ""}
    assert "Before anything is placed" in page.inner_text("#stepper")


def test_a_search_dims_what_does_not_match(page):
    before = pixel(page, "shop/cache-1")
    page.fill("#search", "app=web,!old")
    until(page, "document.getElementById('search-result').textContent === '4 of 6'")
    settled(page)
    assert pixel(page, "shop/cache-1") != before
    page.fill("#search", "REPORT")
    until(page, "document.getElementById('search-result').textContent === '1 of 6'")
    page.fill("#search", "app in (web")
    until(page, "document.getElementById('search-result').textContent.startsWith('expected requirements')")
    page.fill("#search", "")
    until(page, "document.getElementById('search-result').textContent === ''")
    settled(page)
    assert pixel(page, "shop/cache-1") == before


def test_a_click_on_a_pending_pod_says_why_with_peers_and_fixes(page):
    page.select_option("#moment", "after")
    settled(page)
    click_item(page, "shop/web-4")
    shown = text(page)
    assert "0/5 nodes are available: 1 Insufficient cpu" in shown
    assert "requests 500m cpu, 200m of 4 is free" in shown
    assert "tolerate dedicated=batch:NoSchedule" in shown
    assert "repels 3 peers" in shown
    assert "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]" in shown
    lines = page.evaluate("bayplan.drawing.lines.map((one) => [one.from.key, one.to.key, one.colour])")
    assert ["shop/web-4", "shop/web-1", "bad"] in lines
    assert ["shop/web-1", "shop/web-4", "bad"] in lines  # the term of the other pod
    assert ["shop/web-4", "shop/cache-1", "good"] in lines


def test_the_matrix_has_every_node_and_rule_with_raw_and_weighted_scores(page):
    page.select_option("#moment", "after")
    settled(page)
    click_item(page, "shop/web-1")
    table = page.locator("table.matrix")
    heads = table.locator("thead th").all_inner_texts()
    assert "pod-affinity ×2" in heads
    rows = {
        row.locator("th").inner_text(): row.locator("td").all_inner_texts() for row in table.locator("tbody tr").all()
    }
    assert sorted(rows) == ["node-a1", "node-b1", "node-b2", "node-c1", "node-c2"]
    assert rows["node-a1"][0] == "chosen"
    assert rows["node-a1"][heads.index("pod-affinity ×2") - 1] == "200 (100)"
    assert rows["node-c2"][0] == "rejected"
    assert rows["node-c2"][heads.index("taint ×3") - 1] == "✗"
    assert "dedicated=batch:NoSchedule is not tolerated" in rows["node-c2"][-1]


def test_a_fix_is_tried_on_a_copy_and_undone(page):
    page.select_option("#moment", "after")
    settled(page)
    click_item(page, "shop/web-4")
    page.get_by_role("button", name="Try this fix").first.click()
    settled(page)
    assert "Fix of shop/web-4: tolerate dedicated=batch:NoSchedule" in text(page)
    assert nodes_of(page)["shop/web-4"] != ""
    page.get_by_role("button", name="Undo", exact=True).click()
    settled(page)
    assert nodes_of(page)["shop/web-4"] == ""


@pytest.mark.parametrize("box, verb, expected", [
    ("zone-b",  "Lose",            "Nodes lost: node-b1, node-b2"),
    ("node-a1", "Drain",           "shop/cache-1"),
    ("node-b1", "Cordon",          "Nodes changed: node-b1"),
    ("node-b2", "Add a node like", "Nodes added: node-b2-more"),
])  # fmt: skip
def test_a_click_on_a_box_offers_what_may_happen_to_it(page, box, verb, expected):
    click_box(page, box)
    page.get_by_role("group", name="What if").get_by_role("button", name=verb).click()
    settled(page)
    assert expected in text(page)
    assert page.inner_text("#tab-whatif") == "What if (1)"
    page.get_by_role("button", name="Undo all").click()
    settled(page)
    assert "Nothing is supposed" in text(page)


def test_what_ifs_add_up_and_each_can_be_taken_back(page):
    for box, verb in (("zone-b", "Lose"), ("node-a1", "Add a node like")):
        click_box(page, box)
        page.get_by_role("group", name="What if").get_by_role("button", name=verb).click()
        settled(page)
    assert page.evaluate("bayplan.scene.targets.map((one) => one.mark)") == ["", "removed", "removed", "", "", "added"]
    page.get_by_role("button", name="Remove: Lose zone-b").click()
    settled(page)
    assert page.evaluate("bayplan.scene.targets.map((one) => one.mark)") == ["", "", "", "", "", "added"]
    assert nodes_of(page)["shop/web-4"] != ""


def test_a_lost_pod_is_gone_and_not_pending(page):
    click_box(page, "node-a1")
    page.get_by_role("button", name="Lose").click()
    settled(page)
    assert "no controller creates it again" in text(page)
    assert "shop/cache-1" not in nodes_of(page) or nodes_of(page)["shop/cache-1"] == "node-a1"
    assert "shop/cache-1" not in page.evaluate("bayplan.scene.waiting.map((one) => one.key)")


def test_a_manifest_that_is_dropped_shows_where_it_lands(page):
    page.evaluate("""(text) => {
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File([text], "api.yaml"));
      for (const type of ["dragover", "drop"]) document.body.dispatchEvent(new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true }));
    }""", DEPLOYMENT)  # fmt: skip
    until(page, "bayplan.view.steps.length === 1")
    settled(page)
    assert "Apply api.yaml" in text(page)
    new = {key: node for key, node in nodes_of(page).items() if key.startswith("shop/api-")}
    assert len(new) == 2
    assert all(new.values())
    click_item(page, next(iter(new)))
    assert "has the highest score" in text(page)


def test_a_manifest_that_is_pasted_and_wrong_is_refused_with_its_place(page):
    page.expected.append("400")
    page.click("#tab-whatif")
    page.get_by_text("Apply a manifest", exact=True).click()
    page.get_by_label("Manifest in YAML or JSON").fill(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: []}\n"
    )
    page.get_by_role("button", name="Apply on a copy").click()
    until(page, "!document.getElementById('problem').hidden")
    assert "spec.containers" in page.inner_text("#problem")
    settled(page)
    assert page.evaluate("bayplan.view.steps.length") == 0
    assert len(nodes_of(page)) == 6


def test_a_link_restores_the_view(page, chromium, url):
    page.select_option("#colour", "owner")
    click_box(page, "zone-b")
    page.get_by_role("button", name="Lose").click()
    settled(page)
    page.fill("#search", "app=web")
    until(page, "document.getElementById('search-result').textContent.startsWith('4 of')")
    click_item(page, "shop/web-1")
    link = page.url
    with pages.opened(chromium, link) as other:
        until(other, "bayplan.explanation")
        settled(other)
        assert text(other) == text(page)
        assert other.evaluate("[bayplan.view.colour, bayplan.view.q, bayplan.view.steps.length]") == [
            "owner",
            "app=web",
            1,
        ]
        assert nodes_of(other) == nodes_of(page)


def test_the_table_has_everything_that_is_drawn(page):
    page.select_option("#moment", "after")
    settled(page)
    page.get_by_role("button", name="Table", exact=True).click()
    rows = page.locator("#table-area tbody tr").all_inner_texts()
    assert len(rows) == 6
    web_4 = next(row for row in rows if "web-4" in row)
    assert "pending" in web_4
    assert "0/5 nodes are available" in web_4
    page.locator("#table-area").get_by_role("button", name="Nodes").click()
    assert page.locator("#table-area caption").inner_text() == "Nodes: 1 to 5 of 5"
    assert "node-b2" in page.locator("#table-area tbody").inner_text()
    page.fill("#search", "web-4")
    page.locator("#table-area").get_by_role("button", name="Pods").click()
    until(page, "document.querySelectorAll('#table-area tbody tr').length === 1")


def test_everything_works_with_the_keyboard_alone(page):
    page.keyboard.press("/")
    page.keyboard.type("web-4")
    until(page, "document.getElementById('search-result').textContent === '1 of 6'")
    for _ in range(20):
        if page.evaluate("document.activeElement.id") == "drawing":
            break
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "drawing"
    page.keyboard.press("ArrowRight")  # the box of pending pods
    assert page.inner_text("#announcement") == "pending: 4 pods"
    page.keyboard.press("ArrowDown")
    said = page.inner_text("#announcement")
    assert said.startswith("zone-")
    page.keyboard.press("Enter")  # its first node
    assert page.inner_text("#announcement").startswith("node node-")
    page.keyboard.press("Escape")
    assert page.inner_text("#announcement") == said
    page.keyboard.press("Space")
    settled(page)
    zone = said.split(",")[0]
    assert zone in text(page)
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "Lose":
            break
    page.keyboard.press("Enter")
    until(page, "bayplan.view.steps.length === 1")
    settled(page)
    assert f"Lose {zone}" in text(page)
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("u")
    until(page, "bayplan.view.steps.length === 0")
    page.keyboard.press("?")
    assert "Keys of the drawing" in page.inner_text("dialog")
    page.keyboard.press("Escape")
    page.keyboard.press("t")
    assert page.is_visible("#table-area table")


def test_a_pod_is_reached_by_keys_and_explained(page):
    page.focus("#drawing")
    for key in ("ArrowDown", "Enter", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    until(page, "bayplan.explanation")
    settled(page)
    assert "shop/web-2" in text(page)


def test_the_wheel_zooms_and_dragging_moves(page):
    scale = page.evaluate("bayplan.drawing.camera.scale")
    page.hover("#drawing")
    page.mouse.wheel(0, -500)
    until(page, f"bayplan.drawing.camera.scale > {scale * 1.5}")
    x = page.evaluate("bayplan.drawing.camera.x")
    page.mouse.down()
    page.mouse.move(200, 300, steps=4)
    page.mouse.up()
    assert page.evaluate("bayplan.drawing.camera.x") != x
    assert page.evaluate("bayplan.view.sel") == ""  # no click
    page.get_by_role("button", name="Show everything").click()
    assert page.evaluate("bayplan.drawing.camera.scale") == pytest.approx(scale)


def test_a_server_that_is_gone_is_said_and_the_drawing_stays(chromium):
    with pages.served(pages.manifests(EXAMPLE)) as url:
        context = pages.opened(chromium, url)
        page = context.__enter__()
        page.expected += ["net::ERR", "Failed to load"]
    until(page, "document.getElementById('status').textContent.includes('not heard')")
    assert page.evaluate("bayplan.scene.items.length") == 6
    page.select_option("#moment", "after")
    until(page, "!document.getElementById('problem').hidden")
    assert "Is `bayplan ui` still running?" in page.inner_text("#problem")
    context.__exit__(None, None, None)


def test_a_file_that_changes_is_drawn_again(chromium, tmp_path):
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name},
            "status": {"allocatable": {"cpu": "4", "pods": "9"}},
        }
        for name in ("a", "b")
    ]
    file = tmp_path / "state.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes[:1]}), encoding="utf-8")
    with pages.served(pages.state(file), follows=True) as url, pages.opened(chromium, url) as page:
        assert page.inner_text("#status").startswith("1 node,")
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes}), encoding="utf-8")
        until(page, "document.getElementById('status').textContent.startsWith('2 nodes,')")


def test_the_token_of_the_address_is_used_and_forgotten_there(chromium):
    rules = pages.AccessRules(is_loopback=True, token="secret-token")
    with pages.served(pages.manifests(EXAMPLE), rules=rules) as url:
        with pages.opened(chromium, f"{url}#token=secret-token") as page:
            assert "secret-token" not in page.url
            assert page.inner_text("#status").startswith("5 nodes")
        context = chromium.new_context()
        without = context.new_page()
        without.goto(url)
        until(without, "!document.getElementById('problem').hidden")
        assert "the token is missing or wrong" in without.inner_text("#problem")
        context.close()
