// A box: what is in it, how full it is, and what happens if it is lost, drained, cordoned or gets another node.

import { addStep, app, selectedBox } from "./app.js";
import { itemButton, listed, targetButton, usageList } from "./overview.js";
import { titleOf, usage, valueOf } from "./scene.js";
import { counted, el } from "./text.js";

const FIELDS = ["provider", "region", "zone"];

export function domainPanel() {
  const box = selectedBox();
  if (!box) return [el("h2", {}, "Not found"), el("p", {}, "What was selected is not in what is shown.")];
  if (box.tray) return trayPanel();
  return box.target !== undefined ? targetPanel(box) : groupPanel(box);
}

function trayPanel() {
  const { scene } = app;
  return [el("h2", {}, `Pending: ${scene.waiting.length.toLocaleString("en")}`), listed(scene.waiting, (item) => [itemButton(item.key), item.why ? el("div", { class: "quiet" }, item.why) : null])];
}

function usageOf(positions) {
  const { scene } = app;
  return scene.resources.map((resource) => {
    let [used, offered] = [0, 0];
    for (const position of positions) {
      const one = usage(scene, position, resource);
      used += one.used;
      offered += one.offered;
    }
    return { resource, used, offered };
  }).filter((one) => one.offered > 0);
}

function targetPanel(box) {
  const { scene } = app;
  const target = scene.targets[box.target];
  const items = scene.itemsOf[box.target];
  const state = { removed: "lost", added: "added by the what-if", changed: "changed by the what-if" }[target.mark] ?? "";
  const rows = [];
  if (state) rows.push(["state", state]);
  if (target.unschedulable) rows.push(["state", "cordoned"]);
  for (const [name, value] of Object.entries(target.fields ?? {})) if (value) rows.push([name, value]);
  if (target.taints.length) rows.push(["taints", target.taints.map((one) => el("div", {}, one))]);
  const labels = Object.entries(target.labels);
  if (labels.length) rows.push(["labels", labels.map(([name, value]) => el("div", {}, `${name}=${value}`))]);
  const what = `${scene.isFleet ? "cluster" : "node"}/${target.name}`;
  return [
    el("h2", {}, target.name), ...(target.mark === "removed" ? [] : [actions([what], target.name, target)]), el("dl", {}, rows.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])),
    el("h3", {}, scene.isFleet ? "Allocated" : "Requested"), usageList(usageOf([box.target])),
    el("h3", {}, counted(items.length, scene.itemNoun)), listed(items, (item) => [itemButton(item.key), scene.isFleet && item.replicas ? ` ${counted(item.replicas, "replica")}` : ""]),
  ];
}

function groupPanel(box) {
  const { scene } = app;
  const n = box.members.reduce((sum, position) => sum + scene.itemsOf[position].length, 0);
  const title = titleOf(box.key, box.value);
  return [
    el("h2", {}, title), el("p", { class: "quiet" }, box.key), el("p", {}, `${counted(box.members.length, scene.noun)}, ${counted(n, scene.itemNoun)}`),
    actions(namesOf(box), title), el("h3", {}, scene.isFleet ? "Allocated" : "Requested"), usageList(usageOf(box.members)),
    el("h3", {}, scene.isFleet ? "Clusters" : "Nodes"), listed(box.members, (position) => [targetButton(scene.targets[position].name), ` ${counted(scene.itemsOf[position].length, scene.itemNoun)}`]),
  ];
}

// How the library is told of a box: by the label if every target that has it is in the box, else target by target.
function namesOf(box) {
  const { scene } = app;
  const members = new Set(box.members);
  const alive = box.members.filter((position) => scene.targets[position].mark !== "removed");
  const hasOthers = scene.targets.some((target, position) => target.mark !== "removed" && !members.has(position) && valueOf(scene, target, box.key) === box.value);
  const isZoneList = scene.isFleet && box.key === "zone" && String(box.value).includes(", ");
  const isLabel = box.value !== undefined && !hasOthers && !isZoneList && alive.length === box.members.length;
  if (isLabel && (!scene.isFleet || FIELDS.includes(box.key) || box.key)) return [`${box.key}=${box.value}`];
  return alive.map((position) => `${scene.isFleet ? "cluster" : "node"}/${scene.targets[position].name}`);
}

function actions(names, title, target = null) {
  const { scene } = app;
  const step = (verb, body) => el("button", { type: "button", onclick: () => addStep({ ...body, title: `${verb} ${title}` }) }, verb);
  const found = [step("Lose", { lose: names }), step("Drain", { drain: names })];
  if (scene.isFleet) {
    found.push(step("Recover", { recover: names }));
  } else {
    found.push(step("Cordon", { cordon: names }));
    if (target && target.mark !== "added") found.push(step("Add a node like", { addNodeLike: [target.name] }));
  }
  return el("div", { class: "actions", role: "group", "aria-label": `What if: ${title}` }, found);
}
