// What if: the steps that are supposed, in order, with undo; what moves where and what stays pending; manifests to apply.

import { addStep, app, problem, setStep, undo, undoAll } from "./app.js";
import { itemButton, listed, targetButton } from "./overview.js";
import { stepsOf } from "./scene.js";
import { counted, el, shown } from "./text.js";

const MAX_MANIFEST = 3 * 2 ** 20;
const LISTS = ["lose", "drain", "cordon", "addNodeLike", "recover", "taint", "apply"];

// The body that the server is asked with.
export function whatIfBody(steps) {
  const body = {};
  for (const step of steps) {
    for (const name of LISTS) if (Array.isArray(step[name])) body[name] = [...(body[name] ?? []), ...step[name]];
  }
  return body;
}

export function stepName(step) {
  return shown(step.title ?? LISTS.filter((name) => step[name]).map((name) => `${name} ${name === "apply" ? "a manifest" : step[name].join(", ")}`).join("; "), 160);
}

export function whatIfPanel() {
  const { view, difference } = app;
  const steps = view.steps.map((step, i) => el("li", {}, stepName(step), " ", el("button", { type: "button", class: "link", "aria-label": `Remove: ${stepName(step)}`, onclick: () => undo(i) }, "remove")));
  return [
    el("h2", {}, "What if"),
    ...(steps.length ? [el("ol", {}, steps), el("div", { class: "actions" }, el("button", { type: "button", onclick: () => undo() }, "Undo"), el("button", { type: "button", onclick: undoAll }, "Undo all"))]
      : [el("p", {}, `Nothing is supposed. Select a ${app.scene.noun} or a box around it, or apply a manifest.`)]),
    ...manifestForm(), ...(difference ? (app.scene.isFleet ? fleetOutcome(difference) : outcome(difference)) : []),
  ];
}

function manifestForm() {
  const text = el("textarea", { id: "manifest", "aria-label": "Manifest in YAML or JSON", spellcheck: "false", placeholder: "apiVersion: apps/v1\nkind: Deployment\n…", value: app.manifest ?? "", oninput: (event) => { app.manifest = event.target.value; } });
  const file = el("input", { type: "file", multiple: true, "aria-label": "Manifest files", accept: ".yaml,.yml,.json,text/plain", onchange: (event) => applyFiles([...event.target.files]) });
  const apply = () => {
    if (!text.value.trim()) return problem("The manifest is empty.");
    app.manifest = "";
    return addStep({ apply: [text.value], title: "Apply a manifest" });
  };
  return [el("details", { open: Boolean(app.manifest), ontoggle: (event) => { app.isManifestOpen = event.target.open; } },
    el("summary", {}, "Apply a manifest"), el("p", { class: "quiet" }, "Drop files on the page, choose them, or paste. They are merged as kubectl apply does; nothing is written."),
    file, text, el("div", { class: "actions" }, el("button", { type: "button", class: "primary", onclick: apply }, "Apply on a copy")))].map((one) => {
    if (app.isManifestOpen) one.open = true;
    return one;
  });
}

async function applyFiles(files) {
  const large = files.filter((file) => file.size > MAX_MANIFEST);
  if (large.length) {
    problem(`${large.map((file) => file.name).join(", ")}: larger than ${MAX_MANIFEST / 2 ** 20} MiB. Start \`bayplan ui\` with it instead: -f FILE.`);
    return;
  }
  if (!files.length) return;
  const apply = await Promise.all(files.map((file) => file.text()));
  await addStep({ apply, title: `Apply ${files.map((file) => file.name).join(", ")}` });
}

export function acceptDrops() {
  const hasFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    document.body.classList.add("dropping");
  });
  addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) document.body.classList.remove("dropping");
  });
  addEventListener("drop", (event) => {
    document.body.classList.remove("dropping");
    if (!hasFiles(event)) return;
    event.preventDefault();
    applyFiles([...event.dataTransfer.files]);
  });
}

function outcome({ pods, nodes, blocked, rollouts, summary, warnings, notes }) {
  const n = pods.moved.length;
  const where = (move) => [itemButton(move.pod), el("div", { class: "quiet" }, move.from ? [`from ${shown(move.from)} to `, targetButton(move.to)] : [move.new ? "new on " : "placed on ", targetButton(move.to)])];
  return [
    el("h3", {}, "What happens"), el("p", {}, summary.join(", ") || "Nothing is different."),
    ...[["added", "Nodes added"], ["removed", "Nodes lost"], ["changed", "Nodes changed"]].filter(([name]) => nodes[name].length)
      .map(([name, title]) => el("p", {}, `${title}: `, listedNames(nodes[name].map((one) => one.name ?? one)))),
    ...(blocked.length ? [el("h3", { class: "bad" }, "Evictions that are blocked"), listed(blocked, (one) => [itemButton(one.pod), ` on ${one.node}: ${one.why}`])] : []),
    ...(pods.waiting.length ? [el("h3", { class: "bad" }, `Without a node: ${pods.waiting.length.toLocaleString("en")}`), listed(pods.waiting, (one) => [itemButton(one.pod), el("div", { class: "quiet" }, one.why)])] : []),
    ...(n ? [el("h3", {}, `Placed or moved: ${n.toLocaleString("en")}`), listed(pods.moved, where)] : []),
    ...(pods.gone.length ? [el("h3", {}, `Gone: ${pods.gone.length.toLocaleString("en")}`), listed(pods.gone, (one) => [`${one.pod} from ${one.from || "the queue"}`, one.why ? el("div", { class: "quiet" }, one.why) : null])] : []),
    ...(rollouts.length ? [el("h3", {}, "Rollouts"), listed(rollouts, (one) => [one.workload, ": ", el("span", { class: one.result === "complete" ? "good" : "bad" }, one.result), one.why ? el("div", { class: "quiet" }, one.why) : null])] : []),
    ...warnings.map((one) => el("p", { class: "warn" }, one)),
    ...(notes.length ? [el("details", {}, el("summary", {}, "Notes"), el("ul", {}, notes.map((one) => el("li", {}, one))))] : []),
  ];
}

function fleetOutcome({ bindings, summary, unselected, notes }) {
  const moved = bindings.filter((one) => !one.unchanged);
  const shares = (clusters) => Object.entries(clusters).map(([name, n]) => (n ? `${name}: ${n}` : name)).join(", ") || "none";
  return [
    el("h3", {}, "What happens"), el("p", {}, summary.join(", ") || "Nothing is different."),
    ...(moved.length ? [el("h3", {}, `Changed: ${moved.length}`), listed(moved, (one) => [itemButton(one.key, `${one.kind}/${one.template}`),
      el("div", { class: "quiet" }, `from ${shares(one.previous)} to ${one.placed ? shares(one.clusters) : "none"}${one.affinity ? `, group ${one.affinity}` : ""}`), one.message ? el("div", { class: "bad" }, one.message) : null])] : []),
    ...(unselected.length ? [el("p", { class: "warn" }, `No policy selects ${unselected.join(", ")}.`)] : []),
    ...(notes.length ? [el("details", {}, el("summary", {}, "Notes"), el("ul", {}, notes.map((one) => el("li", {}, one))))] : []),
  ];
}

function listedNames(names) {
  return names.slice(0, 8).join(", ") + (names.length > 8 ? ` and ${names.length - 8} more` : "");
}

// The bar below the drawing that goes through the moves one by one.
export function showStepper() {
  const bar = document.getElementById("stepper");
  const { difference, base, view } = app;
  const moves = difference ? stepsOf(base, difference) : [];
  bar.hidden = !moves.length;
  if (!moves.length) return bar.replaceChildren();
  const n = Math.min(view.step, moves.length);
  const move = moves[n - 1];
  const said = !n ? "Before anything is placed" : base.isFleet ? `${move.kind}/${move.template}: ${move.placed ? Object.entries(move.clusters).map(([name, count]) => `${name} ${count || ""}`).join(", ") : move.message}`
    : `${move.pod}: ${move.from ? `${move.from} → ` : ""}${move.to}`;
  const focused = document.activeElement?.dataset?.step;
  const button = (name, label, to, off) => el("button", { type: "button", "data-step": name, "aria-label": label, disabled: off, onclick: () => setStep(to) }, name);
  bar.replaceChildren(
    el("span", { class: "said" }, `Step ${n} of ${moves.length}. ${shown(said, 200)}`), button("◀", "Previous step", n - 1, n === 0),
    el("input", { type: "range", min: 0, max: moves.length, value: n, "data-step": "range", "aria-label": `Step of ${counted(moves.length, "move")}`, oninput: (event) => setStep(Number(event.target.value)) }),
    button("▶", "Next step", n + 1, n === moves.length),
  );
  bar.querySelector("input").value = String(n);
  if (focused) bar.querySelector(`[data-step="${CSS.escape(focused)}"]:not(:disabled)`)?.focus();
  return undefined;
}

