// One workload: why it is there, every rule on every node, its peers with the terms, and what would make it fit.

import { ask } from "./api.js";
import { addStep, app, busy, problem, selectedItem } from "./app.js";
import { fleetWorkload } from "./fleet.js";
import { itemButton, listed, targetButton } from "./overview.js";
import { amount, counted, el } from "./text.js";
import { whatIfBody } from "./whatif.js";

const MAX_ROWS = 100;

export function workloadPanel() {
  const item = selectedItem();
  const found = app.explanation;
  const key = app.view.sel.slice(5);
  if (!item) return [el("h2", {}, key), el("p", {}, found?.problem ?? "It is not in what is shown: it is gone, or was renamed.")];
  const head = [el("h2", {}, item.key), facts(item)];
  if (!found) return [...head, el("p", { class: "quiet" }, "Asking why…")];
  if (found.problem) return [...head, el("p", { class: "bad" }, found.problem)];
  const about = found.workload === item.key ? [] : [el("p", { class: "warn" }, `The explanation is of ${found.workload}.`)];
  return [
    ...head, ...about, ...answer(item, found), ...(found.warnings ?? []).map((one) => el("p", { class: "warn" }, one)),
    ...(app.scene.isFleet ? fleetWorkload(item, found) : []), ...fixes(item, found), ...peers(found), ...matrix(found),
  ];
}

function facts(item) {
  const { scene } = app;
  const shares = scene.isFleet ? scene.items.filter((one) => one.key === item.key && one.target >= 0) : [item].filter((one) => one.target >= 0);
  const where = shares.length ? shares.map((one) => el("div", {}, targetButton(scene.targets[one.target].name), scene.isFleet && one.replicas ? ` ${counted(one.replicas, "replica")}` : ""))
    : el("span", { class: "bad" }, "pending");
  const rows = [["on", where]];
  if (item.from >= 0) rows.push(["before", targetButton(scene.targets[item.from].name)]);
  if (item.owner) rows.push(["controller", item.owner]);
  if (item.group) rows.push([scene.isFleet ? "cluster affinity" : "group", item.group]);
  if (item.policy) rows.push(["policy", item.policy]);
  if (item.priority) rows.push(["priority", item.priority]);
  if (item.terminating) rows.push(["state", "terminating"]);
  const requests = Object.entries(item.requests).map(([name, value]) => `${name} ${amount(name, value)}`).join(", ");
  if (requests) rows.push(["requests", requests]);
  const labels = Object.entries(item.labels);
  if (labels.length) rows.push(["labels", labels.map(([name, value]) => el("div", {}, `${name}=${value}`))]);
  return el("dl", {}, rows.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

function answer(item, found) {
  const verdicts = Object.values(found.verdicts);
  const fitting = verdicts.filter((one) => one.fits).length;
  const noun = app.scene.noun;
  const lines = [el("h3", {}, found.target ? "Why here" : "Why pending")];
  if (found.current) lines.push(el("p", {}, `It runs on ${found.current}. If it were scheduled again:`));
  if (found.nominated) lines.push(el("p", { class: "warn" }, `It would preempt ${found.victims.join(", ")} on ${found.nominated}.`));
  if (found.target) {
    const best = found.verdicts[found.target];
    lines.push(el("p", {}, el("strong", {}, found.target), best?.score === undefined || best.score === null ? "" : ` has the highest score, ${best.score}`,
      `; ${counted(fitting, noun)} of ${verdicts.length} fit${fitting === 1 ? "s" : ""}.`));
  }
  if (found.message) lines.push(el("p", { class: "bad" }, found.message));
  if (found.groupWait) lines.push(el("p", { class: "warn" }, `Group ${found.groupWait.group}: ${found.groupWait.placed} of ${found.groupWait.members} members fit, ${found.groupWait.minMembers} are needed. ${found.groupWait.problem ?? ""}`));
  return lines;
}

function fixes(item, found) {
  if (!found.fixes.length) return found.noFix ? [el("h3", {}, "What would make it fit"), el("p", {}, "No change of the pod, of other pods or of nodes was found that makes it fit.")] : [];
  return [
    el("h3", {}, "What would make it fit"),
    el("ol", {}, found.fixes.map((fix, i) => el("li", {},
      fix.change, el("div", { class: "quiet" }, `fits on ${fix.fitsOn.slice(0, 5).join(", ")}${fix.fitsOn.length > 5 ? ` and ${fix.fitsOn.length - 5} more` : ""}`,
        (fix.moved ?? []).map((one) => `; ${one.pod} then on ${one.fitsOn}`)),
      app.scene.isFleet ? null : el("button", { type: "button", onclick: () => tryFix(item, i + 1, fix.change) }, "Try this fix")))),
  ];
}

async function tryFix(item, number, change) {
  try {
    const body = { namespace: item.namespace, name: item.name, fix: number, whatIf: whatIfBody(app.view.steps) };
    const { manifests, deleted } = await busy(ask("fix", body));
    if (deleted.length) {
      const names = deleted.map((one) => `${one.kind} ${one.namespace ? `${one.namespace}/` : ""}${one.name}`).join(", ");
      problem(`This fix also deletes ${names}, which the page cannot try. \`bayplan explain --apply-fix ${number}\` writes its manifests.`);
      return;
    }
    await addStep({ apply: manifests, title: `Fix of ${item.key}: ${change}` });
    if (app.itemOf.get(item.key)?.target < 0) {
      problem(`${item.key} is still pending. Manifests are merged as kubectl apply does: what a fix removes stays in objects without the annotation of their last manifest.`);
    }
  } catch (error) {
    problem(error.message);
  }
}

function peers(found) {
  const relations = found.relations.filter((one) => one.peers.length);
  const without = found.relations.filter((one) => !one.peers.length);
  if (!found.relations.length) return [];
  const sentence = (one) => {
    const whose = one.ofPeer ? "Their term" : "Its term";
    const how = one.weight ? `prefers, weight ${one.weight}` : "requires";
    return `${whose} ${how}: ${one.effect === "repels" ? "apart" : "together"} in ${one.topologyKeys.join(", ")}`;
  };
  return [
    el("h3", {}, "Peers"),
    ...relations.map((one) => el("details", { open: relations.length < 4 },
      el("summary", { class: one.effect === "repels" ? "bad" : "good" }, `${one.effect === "repels" ? "↔ repels" : "→← attracts"} ${counted(one.nPeers, "peer")}`),
      el("p", {}, sentence(one)), el("p", { class: "quiet" }, one.term), listed(one.peers, (peer) => itemButton(peer), 8),
      one.nPeers > one.peers.length ? el("p", { class: "quiet" }, `${one.nPeers - one.peers.length} more are not listed`) : null)),
    ...without.map((one) => el("p", { class: "quiet" }, `${sentence(one)}: no peer is placed (${one.term})`)),
  ];
}

// The lines of the drawing: to peers that repel it or are in the way, and to those that attract it.
export function peerLines(item, found) {
  const { drawing, itemOf } = app;
  for (const one of found.relations ?? []) {
    for (const key of one.peers) {
      const peer = itemOf.get(key);
      if (!peer || peer === item) continue;
      drawing.marks.peers.set(key, one.effect);
      const line = { colour: one.effect === "repels" ? "bad" : "good", dash: one.weight > 0 };
      drawing.lines.push(one.ofPeer ? { ...line, from: peer, to: item } : { ...line, from: item, to: peer });
    }
  }
  if (item.from >= 0 && item.target >= 0) drawing.lines.push({ fromBox: drawing.boxOf[item.from], to: item, colour: "move" });
}

function matrix(found) {
  const verdicts = Object.entries(found.verdicts);
  if (!verdicts.length) return [];
  const { scene } = app;
  const raw = new Map(found.rules.map((one) => [one.rule, one]));
  const idOf = new Map(found.rules.map((one) => [one.name, one.rule])); // scores have the scheduler's name of a rule
  const nameOf = new Map();
  const rules = new Set();
  for (const [, one] of verdicts) {
    for (const name of Object.keys(one.scores)) {
      const id = idOf.get(name) ?? name;
      rules.add(id);
      nameOf.set(id, name);
    }
    one.failures.forEach((failure) => rules.add(failure.rule));
  }
  const columns = [...rules].sort();
  const chosen = (name) => name === found.target || Boolean(found.clusters?.some((one) => one.name === name));
  verdicts.sort(([a, x], [b, y]) => chosen(b) - chosen(a) || y.fits - x.fits || (y.score ?? 0) - (x.score ?? 0) || (a < b ? -1 : 1));
  const cell = (rule, name, one) => {
    if (one.failures.some((failure) => failure.rule === rule)) return el("td", { class: "bad" }, "✗");
    const weighted = one.scores[nameOf.get(rule)];
    if (weighted === undefined) return el("td", { class: "quiet" }, one.fits ? "–" : "");
    const score = raw.get(rule)?.raw[name];
    return el("td", { class: "number" }, String(weighted), score === undefined ? "" : el("span", { class: "quiet" }, ` (${[score].flat().join(", ")})`));
  };
  const row = ([name, one]) => el("tr", {},
    el("th", { scope: "row" }, targetButton(name)), el("td", { class: one.fits ? "good" : "bad" }, chosen(name) ? "chosen" : one.fits ? "fits" : "rejected"),
    scene.isFleet ? [el("td", { class: "number" }, one.tier ?? ""), el("td", { class: "number" }, availableOf(one))] : null,
    el("td", { class: "number" }, one.score ?? ""), columns.map((rule) => cell(rule, name, one)),
    el("td", { class: "why" }, one.failures.map((failure) => el("div", {}, failure.detail || failure.reason, failure.term ? el("span", { class: "quiet" }, ` by ${failure.term}`) : null))));
  const body = el("tbody", {}, verdicts.slice(0, MAX_ROWS).map(row));
  const head = el("tr", {}, [scene.noun, "verdict", ...(scene.isFleet ? ["tier", "available"] : []), "total", ...columns.map((rule) => (raw.has(rule) ? `${rule} ×${raw.get(rule).weight}` : rule)), "why"]
    .map((title) => el("th", { scope: "col" }, title)));
  const legend = raw.size ? "Weighted scores, with raw scores in parentheses; the heading has the weight of a rule." : "Weighted scores.";
  const table = el("table", { class: "matrix" }, el("caption", {}, `${legend} ✗: the rule rejects it.`), el("thead", {}, head), body);
  const more = verdicts.length > MAX_ROWS ? el("button", { type: "button", onclick: (event) => {
    const n = body.children.length;
    body.append(...verdicts.slice(n, n + 500).map(row));
    if (body.children.length >= verdicts.length) event.target.remove();
  } }, `Show more of ${verdicts.length.toLocaleString("en")} ${scene.noun}s`) : null;
  return [el("h3", {}, `Every ${scene.noun}, every rule`), el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `${scene.noun}s and rules` }, table), more].filter(Boolean);
}

function availableOf(one) {
  return one.available === null || one.available === undefined ? "" : one.available >= 2 ** 31 - 1 ? "unlimited" : one.available.toLocaleString("en");
}
