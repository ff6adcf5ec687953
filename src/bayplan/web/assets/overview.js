// The overview: what waits, what is violated, how full everything is, and what could not be read or shown.

import { app, select } from "./app.js";
import { usage } from "./scene.js";
import { amount, counted, el, percent } from "./text.js";

const MAX_LISTED = 50;

export function overviewPanel() {
  const { scene } = app;
  if (!scene.targets.length) {
    return [el("h2", {}, "Nothing to draw"), el("p", {}, `The input has no ${scene.noun}s. Workloads are in the table; they wait for a ${scene.noun}.`), ...waiting(), ...notes()];
  }
  return [el("h2", {}, "Overview"), ...waiting(), ...violations(), ...resources(), ...notJudged(), ...notes()];
}

export function itemButton(key, text = key) {
  return el("button", { type: "button", class: "link", onclick: () => select(`item ${key}`, { reveal: true, focus: true }) }, text);
}

export function targetButton(name) {
  return el("button", { type: "button", class: "link", onclick: () => select(`target ${name}`, { reveal: true, focus: true }) }, name);
}

export function listed(entries, make, most = MAX_LISTED) {
  const shownNow = entries.slice(0, most).map((one) => el("li", {}, make(one)));
  const rest = entries.length - shownNow.length;
  const list = el("ul", {}, shownNow);
  if (rest > 0) {
    const more = el("li", {}, el("button", { type: "button", class: "link", onclick: () => {
      more.remove();
      list.append(...entries.slice(most, most + 1000).map((one) => el("li", {}, make(one))));
      if (rest > 1000) list.append(el("li", { class: "quiet" }, `and ${(rest - 1000).toLocaleString("en")} more, in the table`));
    } }, `${rest.toLocaleString("en")} more`));
    list.append(more);
  }
  return list;
}

function waiting() {
  const { scene } = app;
  if (!scene.waiting.length) return [el("p", { class: "good" }, `Every ${scene.itemNoun} is placed.`)];
  return [
    el("h3", { class: "bad" }, `Pending: ${scene.waiting.length.toLocaleString("en")}`),
    listed(scene.waiting, (item) => [itemButton(item.key), item.why ? el("div", { class: "quiet" }, item.why) : null]),
    ...(app.difference ? [] : [el("p", { class: "quiet" }, "“Show: after placing” tells where each would be placed.")]),
  ];
}

function violations() {
  const found = app.violations;
  if (!found) return [];
  if (!found.rules.length) return [el("p", { class: "good" }, "No execution-time rule is violated.")];
  return [
    el("h3", { class: "bad" }, `Violations: ${found.rules.length}`),
    listed(found.rules, (one) => [
      itemButton(one.owner), el("div", {}, one.rule),
      el("div", { class: "quiet" }, `${one.topologyKey}: ${one.domain}`),
      one.peers.length ? el("div", {}, "with ", ...one.peers.slice(0, 5).flatMap((peer, i) => [i ? ", " : "", itemButton(peer)])) : null,
      Object.keys(one.evicted).length ? el("div", { class: "warn" }, `would be evicted: ${Object.keys(one.evicted).join(", ")}`) : null,
    ]),
    ...found.summary.map((line) => el("p", { class: "quiet" }, line)),
  ];
}

export function meterOf(used, offered, label) {
  const share = offered > 0 ? used / offered : 0;
  return el("meter", { min: 0, max: 1, low: 0.6, high: 0.9, optimum: 0, value: Math.min(1, share), "aria-label": label });
}

function resources() {
  const { scene } = app;
  const rows = scene.resources.map((resource) => {
    let [used, offered] = [0, 0];
    scene.targets.forEach((target, position) => {
      if (target.mark === "removed") return;
      const one = usage(scene, position, resource);
      used += one.used;
      offered += one.offered;
    });
    return { resource, used, offered };
  }).filter((one) => one.offered > 0);
  if (!rows.length) return [];
  return [el("h3", {}, scene.isFleet ? "Allocated" : "Requested"), usageList(rows)];
}

export function usageList(rows) {
  return el("dl", {}, rows.map(({ resource, used, offered }) => [
    el("dt", {}, resource),
    el("dd", {}, meterOf(used, offered, `${resource} requested`), ` ${percent(used / offered)}`, el("span", { class: "quiet" }, ` ${amountOf(resource, used)} of ${amountOf(resource, offered)}`)),
  ]));
}

function amountOf(resource, value) {
  return app.scene.isFleet ? value.toLocaleString("en", { notation: "compact", maximumFractionDigits: 1 }) : amount(resource, value);
}

function notJudged() {
  const entries = Object.entries(app.scene.notJudged ?? {});
  if (!entries.length) return [];
  return [el("h3", { class: "warn" }, `Not judged: ${entries.length}`), listed(entries, ([key, why]) => [itemButton(key), el("div", { class: "quiet" }, why)])];
}

function notes() {
  const { scene } = app;
  const found = [...scene.notes];
  if (scene.rollouts) found.push(`${counted(scene.rollouts, "rollout")} of the change: “Show: after placing” has their result`);
  return found.length ? [el("h3", {}, "Notes"), el("ul", {}, found.map((note) => el("li", {}, note)))] : [];
}
