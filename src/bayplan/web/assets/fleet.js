// A workload of a fleet: its replicas by cluster and tier, the groups in order, and a slider for the load.

import { ask } from "./api.js";
import { app, busy, problem } from "./app.js";
import { targetButton } from "./overview.js";
import { el } from "./text.js";
import { whatIfBody } from "./whatif.js";

let answered = 0;
let waiting = 0;

export function fleetWorkload(item, found) {
  const binding = app.scene.bindings.find((one) => one.key === item.key);
  if (!binding) return [];
  return [...groups(binding, found), ...load(binding, found)];
}

function groups(binding, found) {
  if (binding.groups.length < 2 && !binding.groups[0]) return [];
  const failed = new Map((found.failedAffinities ?? []).map((one) => [one.affinity, one.message]));
  const state = (name) => (name === found.affinity && found.target ? el("span", { class: "good" }, " chosen") : failed.has(name) ? el("span", { class: "bad" }, ` failed: ${failed.get(name)}`) : el("span", { class: "quiet" }, " not tried"));
  return [el("h3", {}, "Groups in order"), el("ol", {}, binding.groups.map((name) => el("li", {}, name || "(unnamed)", state(name))))];
}

function load(binding, found) {
  if (!binding.divisible) return [el("p", { class: "quiet" }, "It has no replicas to divide: it is propagated as it is to every selected cluster.")];
  const most = Math.max(10, 4 * binding.replicas, app.load?.key === binding.key ? app.load.replicas : 0);
  const now = app.load?.key === binding.key ? app.load.replicas : binding.replicas;
  const result = el("div", { id: "load-result", role: "status" });
  const number = el("input", { type: "number", min: 0, max: 2 ** 31 - 1, value: now, "aria-label": "Replicas" });
  const range = el("input", { type: "range", min: 0, max: most, "aria-label": "Replicas" });
  range.value = String(now);
  const set = (value) => {
    if (!Number.isInteger(value) || value < 0 || value >= 2 ** 31) return;
    app.load = { key: binding.key, replicas: value };
    number.value = String(value);
    range.value = String(value);
    clearTimeout(waiting);
    waiting = setTimeout(() => scale(binding, value, found, result), 60);
  };
  range.addEventListener("input", () => set(Number(range.value)));
  number.addEventListener("input", () => set(number.valueAsNumber));
  const clusters = app.load?.key === binding.key && app.load.step ? app.load.step : { clusters: binding.clusters, placed: !binding.pending, message: "" };
  result.replaceChildren(...outcome(clusters, found));
  return [el("h3", {}, "Replicas by cluster as the load changes"), el("div", { class: "range" }, range, number), result];
}

async function scale(binding, replicas, found, result) {
  const asked = (answered += 1);
  try {
    const { steps } = await busy(ask("scale", { namespace: binding.namespace, name: binding.name, replicas: [replicas], whatIf: whatIfBody(app.view.steps) }));
    if (asked !== answered) return;
    const [step] = steps;
    app.load = { key: binding.key, replicas, step };
    result.replaceChildren(...outcome(step, found));
  } catch (error) {
    problem(error.message);
  }
}

// A table with a bar for each cluster, those of the first tier first.
function outcome(step, found) {
  if (!step.placed) return [el("p", { class: "bad" }, step.message || "It is placed on no cluster.")];
  const tier = (name) => found.verdicts[name]?.tier ?? "";
  const names = [...new Set([...Object.keys(found.verdicts).filter((name) => found.verdicts[name].fits), ...Object.keys(step.clusters)])];
  names.sort((a, b) => (tier(a) === "" ? 99 : tier(a)) - (tier(b) === "" ? 99 : tier(b)) || (a < b ? -1 : 1));
  const total = Math.max(1, ...Object.values(step.clusters));
  return [el("table", {}, el("caption", {}, `${Object.values(step.clusters).reduce((a, b) => a + b, 0)} replicas`), el("thead", {}, el("tr", {}, ["cluster", "tier", "replicas"].map((one) => el("th", { scope: "col" }, one)))),
    el("tbody", {}, names.map((name) => el("tr", {}, el("th", { scope: "row" }, targetButton(name)), el("td", {}, String(tier(name))),
      el("td", {}, el("meter", { min: 0, max: total, value: step.clusters[name] ?? 0, "aria-label": `Replicas on ${name}` }), ` ${step.clusters[name] ?? 0}`)))))];
}
