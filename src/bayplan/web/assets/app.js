// The page: what is shown, what was asked, and the address that restores it. Panels and the drawing are told, and tell back
// through `app`; the server is asked here alone.

import { adoptToken, ask, get, listen } from "./api.js";
import { BY, MAX_COLOURS, assigned, theme } from "./colours.js";
import { Drawing } from "./drawing.js";
import { openHelp } from "./help.js";
import { controlDrawing } from "./controls.js";
import { domainPanel } from "./domain.js";
import { overviewPanel } from "./overview.js";
import { after, groupings, sceneOf, shortKey, stepsOf, unlabelled } from "./scene.js";
import { isSelector, parse } from "./selectors.js";
import { tablePanel } from "./tables.js";
import { counted, el, shown, svgEl } from "./text.js";
import { acceptDrops, showStepper, stepName, whatIfBody, whatIfPanel } from "./whatif.js";
import { peerLines, workloadPanel } from "./workload.js";

const MAX_LINK = 30000; // characters of what-if steps that an address holds
const UNGROUPED = "-";
const byId = (id) => document.getElementById(id);

export const app = {
  view: { levels: "", colour: "", pressure: "", moment: "now", q: "", tab: "overview", table: "", sel: "", steps: [], step: Infinity },
  drawing: null, base: null, scene: null, difference: null, violations: null, explanation: null, busy: 0,
};

// Problems and progress

export function problem(message) {
  const area = byId("problem");
  area.hidden = !message;
  area.replaceChildren(...(message ? [el("span", {}, message), el("button", { type: "button", onclick: () => problem("") }, "Close")] : []));
}

export async function busy(work) {
  app.busy += 1;
  status();
  try {
    return await work;
  } finally {
    app.busy -= 1;
    status();
  }
}

export function announce(text) {
  byId("announcement").textContent = shown(text.replaceAll("\n", ", "), 600);
}

function status() {
  const parts = [];
  if (app.scene) {
    const { scene } = app;
    parts.push(`${counted(scene.targets.length, scene.noun)}, ${counted(scene.isFleet ? scene.bindings.length : scene.items.length, scene.itemNoun)}`);
    if (scene.waiting.length) parts.push(`${scene.waiting.length.toLocaleString("en")} pending`);
    if (app.violations?.rules.length) parts.push(counted(app.violations.rules.length, "violation"));
  }
  if (app.connection) parts.push(app.connection);
  if (app.busy) parts.push("asking…");
  byId("status").textContent = parts.join(" · ");
  document.body.toggleAttribute("data-busy", app.busy > 0);
}

// The address

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  const { view } = app;
  for (const name of ["levels", "colour", "pressure", "moment", "q", "tab", "table", "sel"]) if (given.has(name)) view[name] = given.get(name);
  if (given.has("steps")) {
    try {
      const steps = JSON.parse(given.get("steps"));
      if (Array.isArray(steps)) view.steps = steps.filter((one) => one && typeof one === "object");
    } catch {
      problem("The what-if steps of this address cannot be read; the rest of the view is restored.");
    }
  }
  if (given.has("step")) view.step = Number(given.get("step"));
}

function address() {
  const { view } = app;
  const kept = new URLSearchParams();
  for (const name of ["levels", "colour", "pressure", "moment", "q", "tab", "table", "sel"]) {
    const usual = { moment: "now", tab: "overview" }[name] ?? "";
    if (view[name] && view[name] !== usual) kept.set(name, view[name]);
  }
  const steps = JSON.stringify(view.steps);
  app.linkIsWhole = steps.length <= MAX_LINK;
  if (view.steps.length && app.linkIsWhole) kept.set("steps", steps);
  if (Number.isFinite(view.step)) kept.set("step", String(view.step));
  return kept.toString();
}

export function remember() {
  history.replaceState(null, "", `#${address()}`);
}

// The scene

export async function load() {
  const state = await busy(get("state"));
  app.base = sceneOf(state);
  app.revision = state.revision;
  app.difference = null;
  app.explanation = null;
  byId("source").textContent = shown(app.base.source, 200);
  document.title = `${shown(app.base.source, 80)} – Bayplan`;
  fillTools();
  await showMoment();
  busy(get("violations")).then((found) => {
    app.violations = found;
    app.drawing.marks.violated = new Set(found.rules.flatMap((one) => [one.owner, ...one.peers]));
    redraw();
  }, (error) => problem(`Violations cannot be shown. ${error.message}`));
}

// Ask what is different, if anything is supposed or the result of placing is to be shown, and draw it.
export async function showMoment() {
  const { view } = app;
  app.difference = null;
  if (view.steps.length || view.moment === "after") {
    const asked = (app.asked = {});
    try {
      const found = await busy(ask("place", { whatIf: whatIfBody(view.steps) }));
      if (app.asked !== asked) return;
      app.difference = found;
    } catch (error) {
      problem(error.message);
    }
  }
  rebuild();
  if (view.sel.startsWith("item ")) await explain(view.sel.slice(5));
}

export function rebuild({ keepCamera = true } = {}) {
  const { view, base, difference } = app;
  app.scene = difference ? after(base, difference, view.step) : base;
  app.ranked = assigned(app.scene.items, view.colour);
  app.itemOf = new Map(app.scene.items.map((item) => [item.key, item]));
  search();
  app.drawing.show(app.scene, levelsOf(view.levels), view.pressure, { keepCamera });
  redraw();
}

// Draw marks, panels and the legend again; the scene is the same.
export function redraw() {
  const { scene, drawing, view } = app;
  if (!scene) return;
  const item = selectedItem();
  drawing.marks.selected = item?.key ?? null;
  drawing.marks.selectedBox = selectedBox();
  drawing.lines = [];
  drawing.marks.peers = new Map();
  if (item && app.explanation) peerLines(item, app.explanation);
  else if (app.difference) {
    for (const one of scene.items) {
      if (one.mark === "moved" && one.from >= 0 && one.target >= 0) drawing.lines.push({ fromBox: drawing.boxOf[one.from], to: one, colour: "move" });
    }
  }
  drawing.request();
  panels();
  legend();
  status();
  showStepper();
  if (!byId("table-area").hidden) tablePanel(byId("table-area"));
  remember();
  byId("moment").value = view.steps.length ? "after" : view.moment;
  byId("moment").disabled = view.steps.length > 0;
}

export function selectedItem() {
  return app.view.sel.startsWith("item ") ? app.itemOf?.get(app.view.sel.slice(5)) : undefined;
}

export function selectedBox() {
  const { view, drawing, scene } = app;
  if (view.sel.startsWith("target ")) {
    const name = view.sel.slice(7);
    return drawing.boxOf[scene.targets.findIndex((one) => one.name === name)] ?? null;
  }
  if (view.sel.startsWith("domain ")) return drawing.all.find((box) => box.id === view.sel.slice(7)) ?? null;
  return view.sel === "waiting" ? drawing.boxes.tray : null;
}

// Select an item, a target, a domain, the tray of pending items, or nothing.
export async function select(what, { reveal = false, focus = false } = {}) {
  const { view, drawing } = app;
  view.sel = what;
  view.tab = what ? "selection" : "overview";
  app.explanation = null;
  const item = selectedItem();
  if (reveal) {
    const place = item ? drawing.cellAround(item) : selectedBox();
    if (place) drawing.reveal(place, item ? drawing.boxOfItem(item) : null);
  }
  redraw();
  if (focus) byId("details").focus();
  if (item) await explain(item.key);
}

async function explain(key) {
  const item = app.itemOf.get(key);
  if (!item) {
    app.explanation = { problem: `${key} is not in what is shown.` };
    redraw();
    return;
  }
  const { namespace, name } = item;
  let found;
  try {
    const { explanation, ...evidence } = await busy(ask("explain", { namespace, name, whatIf: whatIfBody(app.view.steps) }));
    found = { ...explanation, ...evidence };
  } catch (error) {
    found = { problem: error.message };
  }
  if (selectedItem()?.key !== key) return;
  app.explanation = found;
  redraw();
}

// Steps of the what-if

export async function addStep(step) {
  app.view.steps = [...app.view.steps, step];
  app.view.step = Infinity;
  app.view.tab = "whatif";
  app.explanation = null;
  announce(`${stepName(step)}: asking what happens`);
  problem("");
  await showMoment();
  if (!app.difference) return undo();
  announce(app.difference.summary.join(", ") || "nothing is different");
}

export async function undo(position = app.view.steps.length - 1) {
  app.view.steps = app.view.steps.filter((_, i) => i !== position);
  app.view.step = Infinity;
  app.explanation = null;
  await showMoment();
}

export async function undoAll() {
  app.view.steps = [];
  app.view.step = Infinity;
  app.explanation = null;
  await showMoment();
}

export function setStep(n) {
  app.view.step = n >= stepsOf(app.base, app.difference).length ? Infinity : Math.max(0, n);
  rebuild();
}

// Tools

export function levelsOf(text) {
  return text === UNGROUPED ? [] : text.split("\n").filter(Boolean);
}

function fillTools() {
  const { view, base } = app;
  const found = groupings(base);
  const title = (keys) => (keys.length ? keys.map(shortKey).join(" / ") : `${base.noun}s only`);
  const known = found.map((keys) => keys.join("\n") || UNGROUPED);
  if (!known.includes(view.levels)) view.levels = known[0];
  byId("levels").replaceChildren(...found.map((keys, i) => el("option", { value: known[i], title: keys.join(" / ") }, title(keys))));
  byId("levels").value = view.levels;
  const ways = base.isFleet ? ["owner", "policy", "affinity", "namespace", "app"] : ["app", "namespace", "owner", "group"];
  if (!ways.includes(view.colour)) view.colour = ways[0];
  byId("colour").replaceChildren(...ways.map((way) => el("option", { value: way }, way === "owner" && base.isFleet ? "workload" : BY[way].title)));
  byId("colour").value = view.colour;
  const resources = base.resources.filter((one) => base.targets.some((target) => target.allocatable[one] > 0));
  if (!resources.includes(view.pressure)) view.pressure = resources[0] ?? "";
  byId("pressure").replaceChildren(...(resources.length ? resources : [""]).map((one) => el("option", { value: one }, one || "none")));
  byId("pressure").value = view.pressure;
  byId("search").value = view.q;
}

function search() {
  const { view, scene, drawing } = app;
  const hint = byId("search-result");
  hint.classList.remove("bad");
  drawing.marks.matching = null;
  app.matching = null;
  hint.textContent = "";
  const typed = view.q.trim();
  if (!typed) return;
  let matches;
  try {
    const selects = isSelector(typed) ? parse(typed) : null;
    const part = typed.toLowerCase();
    matches = selects ? (item) => selects(item.labels) : (item) => item.key.toLowerCase().includes(part);
  } catch (error) {
    hint.textContent = shown(error.message);
    hint.classList.add("bad");
    return;
  }
  app.matching = scene.items.filter(matches);
  drawing.marks.matching = new Set(app.matching.map((item) => item.key));
  hint.textContent = `${app.matching.length.toLocaleString("en")} of ${scene.items.length.toLocaleString("en")}`;
}

function legend() {
  const colours = theme();
  const { ranked, scene } = app;
  const swatch = (colour, border) => svgEl("svg", { width: 14, height: 14, "aria-hidden": "true" },
    svgEl("rect", { x: 1, y: 1, width: 12, height: 12, rx: 2, fill: colour, stroke: border ?? colour, "stroke-width": border ? 2 : 0 }));
  const entries = ranked.slice(0, MAX_COLOURS).map(([value, n], i) => el("li", {}, swatch(colours.colours[i]), `${shown(value, 60)} (${n.toLocaleString("en")})`));
  const others = ranked.slice(MAX_COLOURS);
  if (others.length) entries.push(el("li", {}, swatch(colours.other), `${others.length.toLocaleString("en")} others, in grey`));
  const { pressure } = app.view;
  if (pressure) {
    colours.pressure.forEach((colour, i) => {
      const range = ["below 30 %", "from 30 %", "from 60 %", "from 90 %", "above 100 %"][i];
      entries.push(el("li", { class: "quiet" }, swatch(colour, colours.line), `${shortKey(pressure)} ${range}`));
    });
  }
  if (app.violations?.rules.length) entries.push(el("li", { class: "quiet" }, swatch("transparent", colours.bad), "in a violation"));
  if (app.difference) entries.push(el("li", { class: "quiet" }, swatch("transparent", colours.move), "moved or new"));
  if (scene.targets.some((one) => one.unschedulable)) entries.push(el("li", { class: "quiet" }, "one stroke through a node: cordoned"));
  if (scene.targets.some((one) => one.mark === "removed")) entries.push(el("li", { class: "quiet" }, "two strokes: lost"));
  for (const [key, n] of unlabelled(scene, levelsOf(app.view.levels))) {
    entries.push(el("li", { class: "warn" }, `${counted(n, scene.noun)} without the ${shortKey(key)} label: dashed box`));
  }
  byId("legend").replaceChildren(...entries);
}

function panels() {
  const { view } = app;
  const hasSelection = Boolean(view.sel);
  byId("tab-selection").disabled = !hasSelection;
  if (view.tab === "selection" && !hasSelection) view.tab = "overview";
  for (const tab of ["overview", "selection", "whatif"]) byId(`tab-${tab}`).setAttribute("aria-pressed", String(view.tab === tab));
  byId("tab-whatif").textContent = view.steps.length ? `What if (${view.steps.length})` : "What if";
  const panel = byId("panel");
  const shownNow = `${view.tab} ${view.sel}`;
  const kept = app.panelShown === shownNow ? panel.scrollTop : 0;
  app.panelShown = shownNow;
  if (view.tab === "overview") panel.replaceChildren(...overviewPanel());
  else if (view.tab === "whatif") panel.replaceChildren(...whatIfPanel());
  else panel.replaceChildren(...(view.sel.startsWith("item ") ? workloadPanel() : domainPanel()));
  panel.scrollTop = kept;
}

export function showTable(which) {
  app.view.table = which;
  byId("drawing-area").hidden = Boolean(which);
  byId("legend").hidden = Boolean(which);
  byId("table-area").hidden = !which;
  byId("show-drawing").setAttribute("aria-pressed", String(!which));
  byId("show-table").setAttribute("aria-pressed", String(Boolean(which)));
  if (which) tablePanel(byId("table-area"));
  else app.drawing.resized();
  remember();
}

function wire() {
  const { view } = app;
  let typing = 0;
  byId("search").addEventListener("input", (event) => {
    view.q = event.target.value;
    clearTimeout(typing);
    typing = setTimeout(() => {
      search();
      redraw();
    }, 120);
  });
  for (const [id, again] of [["levels", () => rebuild({ keepCamera: false })], ["colour", rebuild], ["pressure", rebuild]]) {
    byId(id).addEventListener("change", (event) => {
      view[id] = event.target.value;
      again();
    });
  }
  byId("moment").addEventListener("change", (event) => {
    view.moment = event.target.value;
    view.step = Infinity;
    showMoment();
  });
  for (const tab of ["overview", "selection", "whatif"]) {
    byId(`tab-${tab}`).addEventListener("click", () => {
      view.tab = tab;
      redraw();
    });
  }
  byId("show-drawing").addEventListener("click", () => showTable(""));
  byId("show-table").addEventListener("click", () => showTable(view.table || "items"));
  byId("open-help").addEventListener("click", openHelp);
  byId("copy-link").addEventListener("click", copyLink);
  addEventListener("hashchange", async () => {
    Object.assign(view, { levels: "", colour: "", pressure: "", moment: "now", q: "", tab: "overview", table: "", sel: "", steps: [], step: Infinity });
    readAddress();
    fillTools();
    await showMoment();
    showTable(view.table);
  });
  acceptDrops();
  controlDrawing(app.drawing, byId("tip"));
}

async function copyLink() {
  remember();
  try {
    await navigator.clipboard.writeText(location.href);
    announce("The link is copied");
    byId("copy-link").textContent = app.linkIsWhole ? "Copied" : "Copied without manifests";
  } catch {
    problem(`Copy the address of this page: ${location.href}`);
  }
  setTimeout(() => { byId("copy-link").textContent = "Copy link"; }, 2000);
}

async function start() {
  adoptToken();
  readAddress();
  app.drawing = new Drawing(byId("drawing"));
  wire();
  try {
    await load();
  } catch (error) {
    problem(error.message);
    return;
  }
  showTable(app.view.table);
  document.body.setAttribute("data-ready", "");
  listen(async ({ revision, trouble }) => {
    app.connection = trouble ? `not followed for now: ${shown(trouble, 200)}` : app.base.live ? "live" : "";
    status();
    if (revision !== app.revision) await load().catch((error) => problem(error.message));
  }, () => {
    app.connection = "the server is not heard; trying again";
    status();
  });
}

export const page = app; // for tests and the console of the browser
globalThis.bayplan = app;
start();
