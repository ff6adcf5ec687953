// A table of everything that is drawn, in pages, so that thousands of rows stay usable: for screen readers, and to copy from.

import { app, levelsOf, select, showTable } from "./app.js";
import { shortKey, usage, valueOf } from "./scene.js";
import { el, percent } from "./text.js";

const PAGE_ROWS = 200;
let first = 0;

export function tablePanel(area) {
  const { scene, view } = app;
  const which = view.table === "targets" ? "targets" : "items";
  const rows = which === "items" ? app.matching ?? scene.items : scene.targets.map((_, position) => position);
  if (first >= rows.length) first = 0;
  const { head, row } = which === "items" ? itemTable() : targetTable();
  const last = Math.min(rows.length, first + PAGE_ROWS);
  const turn = (to) => {
    first = Math.max(0, to);
    tablePanel(area);
    area.scrollTop = 0;
  };
  const title = which === "items" ? (scene.isFleet ? "Workloads" : "Pods") : (scene.isFleet ? "Clusters" : "Nodes");
  const filtered = which === "items" && app.matching ? " that match the search" : "";
  const kept = document.activeElement?.dataset?.table;
  area.replaceChildren(
    el("div", { class: "actions", role: "group", "aria-label": "Table" },
      [["items", scene.isFleet ? "Workloads" : "Pods"], ["targets", scene.isFleet ? "Clusters" : "Nodes"]].map(([name, text]) => el("button", { type: "button", "data-table": name, "aria-pressed": String(which === name), onclick: () => { first = 0; showTable(name); } }, text)),
      el("button", { type: "button", "data-table": "before", disabled: first === 0, onclick: () => turn(first - PAGE_ROWS) }, "Previous rows"),
      el("button", { type: "button", "data-table": "next", disabled: last >= rows.length, onclick: () => turn(first + PAGE_ROWS) }, "Next rows")),
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": title },
      el("table", {}, el("caption", {}, `${title}${filtered}: ${rows.length ? `${(first + 1).toLocaleString("en")} to ${last.toLocaleString("en")}` : "none"} of ${rows.length.toLocaleString("en")}`),
        el("thead", {}, el("tr", {}, head.map((text) => el("th", { scope: "col" }, text)))), el("tbody", {}, rows.slice(first, last).map(row)))),
  );
  if (kept) area.querySelector(`[data-table="${CSS.escape(kept)}"]:not(:disabled)`)?.focus();
}

function button(what, text) {
  return el("button", { type: "button", class: "link", onclick: () => select(what, { reveal: true, focus: true }) }, text);
}

function itemTable() {
  const { scene, view, drawing } = app;
  const levels = levelsOf(view.levels);
  const state = (item) => [item.target < 0 ? "pending" : "", item.mark === "waiting" ? "" : item.mark, item.terminating ? "terminating" : "", drawing.marks.violated.has(item.key) ? "in a violation" : ""].filter(Boolean).join(", ");
  const head = ["namespace", "name", scene.noun, ...levels.map(shortKey), document.getElementById("colour").selectedOptions[0]?.text ?? "colour", ...(scene.isFleet ? ["replicas"] : ["controller"]), "state", "message"];
  const row = (item) => {
    const target = scene.targets[item.target];
    return el("tr", {}, el("td", {}, item.namespace), el("th", { scope: "row" }, button(`item ${item.key}`, item.name)), el("td", {}, target ? button(`target ${target.name}`, target.name) : ""),
      levels.map((key) => el("td", {}, target ? valueOf(scene, target, key) ?? "" : "")), el("td", {}, item.value), el("td", {}, scene.isFleet ? item.replicas || "" : item.owner), el("td", {}, state(item)), el("td", {}, item.why));
  };
  return { head, row };
}

function targetTable() {
  const { scene, view } = app;
  const levels = levelsOf(view.levels);
  const resources = scene.resources.filter((one) => scene.targets.some((target) => target.allocatable[one] > 0));
  const head = [scene.noun, ...levels.map(shortKey), scene.isFleet ? "workloads" : "pods", ...resources, "taints", "state"];
  const row = (position) => {
    const target = scene.targets[position];
    const share = (resource) => {
      const { used, offered } = usage(scene, position, resource);
      return offered > 0 ? percent(used / offered) : "–";
    };
    return el("tr", {}, el("th", { scope: "row" }, button(`target ${target.name}`, target.name)), levels.map((key) => el("td", {}, valueOf(scene, target, key) ?? "")), el("td", { class: "number" }, String(scene.itemsOf[position].length)),
      resources.map((resource) => el("td", { class: "number" }, share(resource))), el("td", {}, target.taints.join(", ")), el("td", {}, [{ removed: "lost" }[target.mark] ?? target.mark, target.unschedulable ? "cordoned" : ""].filter(Boolean).join(", ")));
  };
  return { head, row };
}
