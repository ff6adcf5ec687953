// Mouse, touch and keyboard on the drawing.

import { announce, app, select, showTable, undo } from "./app.js";
import { openHelp } from "./help.js";
import { shortKey, titleOf } from "./scene.js";
import { counted, percent, shown } from "./text.js";

const CLICK_PIXELS = 5;
const ZOOM_STEP = 1.4;

export function idOf(box) {
  if (box.tray) return "waiting";
  return box.target !== undefined ? `target ${app.scene.targets[box.target].name}` : `domain ${box.id}`;
}

export function controlDrawing(drawing, tip) {
  const { canvas } = drawing;
  const pointers = new Map();
  let moved = 0;
  const place = (event) => {
    const { left, top } = canvas.getBoundingClientRect();
    return [event.clientX - left, event.clientY - top];
  };
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    drawing.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), ...place(event));
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, place(event));
    moved = 0;
  });
  canvas.addEventListener("pointermove", (event) => {
    const now = place(event);
    const before = pointers.get(event.pointerId);
    if (!before) return showTip(drawing, tip, now);
    const [dx, dy] = [now[0] - before[0], now[1] - before[1]];
    if (pointers.size === 2) {
      const [other] = [...pointers].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
      const apart = (a) => Math.hypot(a[0] - other[0], a[1] - other[1]);
      drawing.zoom(apart(now) / Math.max(1, apart(before)), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
    } else {
      moved += Math.abs(dx) + Math.abs(dy);
      if (moved > CLICK_PIXELS) drawing.pan(dx, dy);
    }
    pointers.set(event.pointerId, now);
    return undefined;
  });
  const release = (event) => pointers.delete(event.pointerId);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  canvas.addEventListener("pointerup", (event) => {
    const wasClick = moved <= CLICK_PIXELS && pointers.size === 1;
    release(event);
    if (!wasClick) return;
    const { box, item } = drawing.at(...place(event));
    tip.hidden = true;
    drawing.marks.focused = null;
    select(item ? `item ${item.key}` : box ? idOf(box) : "");
  });
  canvas.addEventListener("dblclick", (event) => {
    const { box } = drawing.at(...place(event));
    if (box) drawing.fit(box);
  });
  canvas.addEventListener("keydown", (event) => keyOfDrawing(event, drawing));
  canvas.addEventListener("blur", () => {
    drawing.marks.focused = null;
    drawing.request();
  });
  for (const [id, act] of [["zoom-in", () => drawing.zoom(ZOOM_STEP)], ["zoom-out", () => drawing.zoom(1 / ZOOM_STEP)], ["zoom-fit", () => drawing.fit()]]) {
    document.getElementById(id).addEventListener("click", act);
  }
  document.addEventListener("keydown", keyOfPage);
}

function keyOfPage(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea, dialog[open]")) return;
  if (event.key === "/") document.getElementById("search").focus();
  else if (event.key === "?") openHelp();
  else if (event.key === "t") showTable(app.view.table ? "" : "items");
  else if (event.key === "u" && app.view.steps.length) undo();
  else return;
  event.preventDefault();
}

function showTip(drawing, tip, [x, y]) {
  const { box, item } = drawing.at(x, y);
  const text = item ? nameOfItem(item) : box ? nameOf(box) : "";
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const { clientWidth: w, clientHeight: h } = drawing.canvas;
  tip.style.left = `${Math.max(0, Math.min(x + 14, w - tip.offsetWidth - 4))}px`;
  tip.style.top = `${Math.max(0, Math.min(y + 14, h - tip.offsetHeight - 4))}px`;
}

export function nameOfItem(item) {
  const where = item.target >= 0 ? `on ${shown(app.scene.targets[item.target].name, 80)}` : "pending";
  const replicas = app.scene.isFleet && item.replicas ? `, ${counted(item.replicas, "replica")}` : "";
  return `${shown(item.key, 120)}\n${where}${replicas}\n${shown(item.value, 80)}${item.why ? `\n${shown(item.why, 200)}` : ""}`;
}

export function nameOf(box) {
  const { scene, drawing, view } = app;
  if (box.tray) return `pending: ${counted(scene.waiting.length, scene.itemNoun)}`;
  if (box.target !== undefined) {
    const target = scene.targets[box.target];
    const state = [target.mark, target.unschedulable ? "cordoned" : ""].filter(Boolean).join(", ");
    const pressure = view.pressure ? `\n${shortKey(view.pressure)} ${percent(drawing.shares[box.target])} requested` : "";
    return `${scene.noun} ${shown(target.name, 120)}${state ? ` (${state})` : ""}\n${counted(scene.itemsOf[box.target].length, scene.itemNoun)}${pressure}`;
  }
  const n = box.members.reduce((sum, position) => sum + scene.itemsOf[position].length, 0);
  return `${shown(titleOf(box.key, box.value), 140)}\n${counted(box.members.length, scene.noun)}, ${counted(n, scene.itemNoun)}`;
}

// The keyboard moves a focus through the boxes and, inside a target, through its items.
function keyOfDrawing(event, drawing) {
  const { marks, boxes } = drawing;
  if (!boxes || event.ctrlKey || event.metaKey || event.altKey) return;
  const steps = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
  if (event.key in steps) marks.focused = next(drawing, marks.focused, ...steps[event.key]);
  else if (event.key === "Enter") enter(drawing);
  else if (event.key === " ") marks.focused && select(marks.focused.item ? `item ${marks.focused.item.key}` : idOf(marks.focused), { focus: false });
  else if (event.key === "Escape") leave(drawing);
  else if (event.key === "+" || event.key === "=") drawing.zoom(ZOOM_STEP);
  else if (event.key === "-") drawing.zoom(1 / ZOOM_STEP);
  else if (event.key === "0") drawing.fit();
  else return;
  event.preventDefault();
  const { focused } = marks;
  if (focused) {
    const area = focused.item ? drawing.cellAround(focused.item) : focused;
    if (area) drawing.reveal(area, focused.item ? drawing.boxOfItem(focused.item) : null);
    announce(focused.item ? nameOfItem(focused.item) : nameOf(focused));
  }
  drawing.request();
}

function topBoxes({ boxes }) {
  return [...(boxes.tray ? [boxes.tray] : []), ...boxes.root.children];
}

function next(drawing, focused, dx, dy) {
  if (!focused) return topBoxes(drawing)[0] ?? null;
  if (focused.item) {
    const box = drawing.boxOfItem(focused.item);
    const items = drawing.itemsIn(box);
    const position = Math.min(items.length - 1, Math.max(0, items.indexOf(focused.item) + dx + dy));
    return { item: items[position] };
  }
  const siblings = focused.parent?.id ? focused.parent.children : topBoxes(drawing);
  const at = (box) => [box.x + box.w / 2, box.y + box.h / 2];
  const [x, y] = at(focused);
  let best = null;
  for (const one of siblings) {
    if (one === focused) continue;
    const [ox, oy] = at(one);
    const ahead = dx ? (ox - x) * dx : (oy - y) * dy;
    const beside = dx ? Math.abs(oy - y) : Math.abs(ox - x);
    if (ahead <= 1) continue;
    const distance = ahead + 2 * beside;
    if (!best || distance < best.distance) best = { one, distance };
  }
  if (best) return best.one;
  const position = siblings.indexOf(focused) + dx + dy; // the next in order, where none is in this direction
  return siblings[position] ?? focused;
}

function enter(drawing) {
  const { marks } = drawing;
  const { focused } = marks;
  if (!focused) {
    marks.focused = topBoxes(drawing)[0] ?? null;
  } else if (focused.item) {
    select(`item ${focused.item.key}`, { focus: false });
  } else if (focused.children) {
    marks.focused = focused.children[0];
  } else {
    const [item] = drawing.itemsIn(focused);
    if (item) marks.focused = { item };
    else select(idOf(focused));
  }
}

function leave(drawing) {
  const { marks } = drawing;
  const { focused } = marks;
  if (!focused) select("");
  else if (focused.item) marks.focused = drawing.boxOfItem(focused.item);
  else if (focused.parent?.id) marks.focused = focused.parent;
  else marks.focused = null;
}
