// The drawing on a canvas, with a level of detail that follows the zoom: what is too small to be read is not drawn, and what
// is outside is skipped, so that a frame stays cheap for thousands of nodes. Knows nothing of panels and requests.

import { theme } from "./colours.js";
import { HEAD, boxAt, cellOf, grid, layout } from "./layout.js";
import { shortKey, titleOf, treeOf, usage } from "./scene.js";
import { percent, shown } from "./text.js";

const MIN_ITEM_PIXELS = 3; // smaller items are bands of colour
const MAX_ITEMS_DRAWN = 15000; // in one frame; above that they are bands too
const MIN_SEEN_PIXELS = 10; // smaller areas are zoomed in on when they are to be seen
const MAX_LINES = 400;
const MAX_SCALE = 12;
const LARGE_CANVAS = 2400; // pixels from which text is larger
const NAME_PIXELS = 70; // the width from which a target has its name in it
const FONT = '"DejaVu Sans", system-ui, sans-serif';

export class Drawing {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.camera = { x: 0, y: 0, scale: 1 };
    this.marks = { matching: null, selected: null, focused: null, violated: new Set(), peers: new Map(), moves: false };
    this.stats = { frames: 0, calls: 0, items: 0, scriptMs: 0 };
    this.boxes = null;
    this.isFitted = true;
    this.lines = [];
    new ResizeObserver(() => this.resized()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.request());
  }

  show(scene, keys, resource, { keepCamera = false } = {}) {
    this.scene = scene;
    this.resource = resource;
    const { clientWidth: w, clientHeight: h } = this.canvas;
    const aspect = Math.min(3, Math.max(0.5, w / Math.max(1, h)));
    this.boxes = layout(treeOf(scene, keys), scene.waiting.length, aspect);
    this.boxOf = [];
    this.all = [];
    const visit = (box) => {
      this.all.push(box);
      if (box.target !== undefined) this.boxOf[box.target] = box;
      (box.children ?? []).forEach(visit);
    };
    visit(this.boxes.root);
    if (this.boxes.tray) this.all.push(this.boxes.tray);
    for (const items of [...scene.itemsOf, scene.waiting]) {
      items.sort((a, b) => (a.colour < 0) - (b.colour < 0) || a.colour - b.colour || (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
    }
    this.bands = scene.itemsOf.map(bandsOf);
    this.shares = scene.targets.map((_, position) => {
      const { used, offered } = usage(scene, position, resource);
      return offered > 0 ? used / offered : used > 0 ? Infinity : 0;
    });
    this.marks.focused = this.again(this.marks.focused);
    if (keepCamera && !this.isFitted) this.request();
    else this.fit();
  }

  // The same box or item in what is shown now, null if it is not in it.
  again(focused) {
    if (!focused) return null;
    if (focused.item) {
      const item = this.scene.items.find((one) => one.key === focused.item.key);
      return item ? { item } : null;
    }
    return this.all.find((box) => box.id === focused.id && box.target === focused.target) ?? null;
  }

  // Camera

  resized() {
    const ratio = Math.min(3, devicePixelRatio || 1);
    const { clientWidth: w, clientHeight: h } = this.canvas;
    if (!w || !h) return;
    this.canvas.width = Math.round(w * ratio);
    this.canvas.height = Math.round(h * ratio);
    this.ratio = ratio;
    if (this.isFitted && this.boxes) this.fit();
    else this.request();
  }

  fit(box = null) {
    if (!this.boxes) return;
    const { clientWidth: w, clientHeight: h } = this.canvas;
    const area = box ?? { x: 0, y: 0, w: this.boxes.w, h: this.boxes.h };
    const scale = Math.min(MAX_SCALE, w / (area.w * 1.04), h / (area.h * 1.04));
    this.camera = { scale, x: area.x + area.w / 2 - w / scale / 2, y: area.y + area.h / 2 - h / scale / 2 };
    this.isFitted = box === null;
    this.request();
  }

  zoom(factor, px = this.canvas.clientWidth / 2, py = this.canvas.clientHeight / 2) {
    if (!this.boxes) return;
    const { x, y, scale } = this.camera;
    const least = 0.5 * Math.min(this.canvas.clientWidth / this.boxes.w, this.canvas.clientHeight / this.boxes.h);
    const next = Math.min(MAX_SCALE, Math.max(Math.min(least, scale), scale * factor));
    this.camera = { scale: next, x: x + px / scale - px / next, y: y + py / scale - py / next };
    this.isFitted = false;
    this.request();
  }

  pan(dx, dy) {
    this.camera.x -= dx / this.camera.scale;
    this.camera.y -= dy / this.camera.scale;
    this.isFitted = false;
    this.request();
  }

  // Move the camera so that an area can be seen; if it is too small to be, closer to the box that holds it.
  reveal(area, holder = null) {
    const { x, y, scale } = this.camera;
    const { clientWidth: w, clientHeight: h } = this.canvas;
    if (!w) return; // the table is shown instead
    const [left, top, right, bottom] = [(area.x - x) * scale, (area.y - y) * scale, (area.x + area.w - x) * scale, (area.y + area.h - y) * scale];
    if (Math.min(right - left, bottom - top) < MIN_SEEN_PIXELS) {
      const near = holder && !holder.tray ? holder : { x: area.x - 40, y: area.y - 30, w: area.w + 80, h: area.h + 60 };
      this.fit({ x: near.x - near.w, y: near.y - near.h, w: 3 * near.w, h: 3 * near.h });
    } else if (left < 0 || top < 0 || right > w || bottom > h) {
      this.camera.x = area.x + area.w / 2 - w / scale / 2;
      this.camera.y = area.y + area.h / 2 - h / scale / 2;
      this.isFitted = false;
    }
    this.request();
  }

  // What is where

  at(px, py) {
    if (!this.boxes) return { box: null, item: null };
    const { x, y, scale } = this.camera;
    const [wx, wy] = [px / scale + x, py / scale + y];
    const box = boxAt(this.boxes, wx, wy);
    if (!box || (box.target === undefined && !box.tray)) return { box: box?.id ? box : null, item: null };
    const items = this.itemsIn(box);
    const cells = grid(box, items.length);
    const [column, row] = [Math.floor((wx - cells.x) / cells.size), Math.floor((wy - cells.y) / cells.size)];
    const isCell = column >= 0 && row >= 0 && column < cells.columns && cells.size * scale >= MIN_ITEM_PIXELS;
    return { box, item: (isCell && items[row * cells.columns + column]) || null };
  }

  itemsIn(box) {
    return box.tray ? this.scene.waiting : this.scene.itemsOf[box.target] ?? [];
  }

  boxOfItem(item) {
    return item.target >= 0 ? this.boxOf[item.target] : this.boxes.tray;
  }

  centreOf(item) {
    const box = this.boxOfItem(item);
    if (!box) return null;
    const items = this.itemsIn(box);
    const cell = cellOf(box, items.length, items.indexOf(item));
    return { x: cell.x + cell.size / 2, y: cell.y + cell.size / 2, size: cell.size };
  }

  // Drawing

  request() {
    if (this.isRequested) return;
    this.isRequested = true;
    requestAnimationFrame(() => {
      this.isRequested = false;
      this.draw();
    });
  }

  draw() {
    if (!this.boxes || !this.ratio) return;
    const started = performance.now();
    const { context: c, camera } = this;
    const colours = (this.colours = theme());
    this.calls = 0;
    c.setTransform(1, 0, 0, 1, 0, 0);
    c.fillStyle = colours.page;
    c.fillRect(0, 0, this.canvas.width, this.canvas.height);
    const s = camera.scale * this.ratio;
    c.setTransform(s, 0, 0, s, -camera.x * s, -camera.y * s);
    const view = { x: camera.x, y: camera.y, right: camera.x + this.canvas.clientWidth / camera.scale, bottom: camera.y + this.canvas.clientHeight / camera.scale };
    const visible = [];
    this.drawDomains([this.boxes.root], view, 0, visible);
    if (this.boxes.tray) this.drawTray(this.boxes.tray, view, visible);
    this.drawTargets(visible, camera.scale);
    this.drawItems(visible, camera.scale);
    this.drawLines();
    this.drawFocus();
    this.stats = { firstMs: this.stats.firstMs ?? performance.now(), frames: this.stats.frames + 1, calls: this.calls, items: this.nItems, scriptMs: performance.now() - started };
    this.onFrame?.();
  }

  drawDomains(boxes, view, depth, visible) {
    const { context: c, colours } = this;
    for (const box of boxes) {
      if (box.x > view.right || box.y > view.bottom || box.x + box.w < view.x || box.y + box.h < view.y) continue;
      if (box.target !== undefined) {
        visible.push(box);
        continue;
      }
      if (box.id) {
        c.fillStyle = depth % 2 ? colours.domain : colours.domainDeep;
        c.fillRect(box.x, box.y, box.w, box.h);
        c.lineWidth = 1 / this.camera.scale;
        c.strokeStyle = colours.line;
        if (box.value === undefined) c.setLineDash([6 / this.camera.scale, 4 / this.camera.scale]);
        c.strokeRect(box.x, box.y, box.w, box.h);
        c.setLineDash([]);
        this.calls += 2;
        this.label(titleOf(box.key, box.value), box.x + 6, box.y + box.head / 2, box.w - 12, box.head * 0.62, "bold");
      }
      this.drawDomains(box.children, view, depth + (box.id ? 1 : 0), visible);
    }
  }

  drawTray(box, view, visible) {
    if (box.y > view.bottom || box.y + box.h < view.y) return;
    const { context: c, colours } = this;
    c.fillStyle = colours.removed;
    c.fillRect(box.x, box.y, box.w, box.h);
    c.lineWidth = 1.5 / this.camera.scale;
    c.strokeStyle = colours.bad;
    c.strokeRect(box.x, box.y, box.w, box.h);
    this.calls += 2;
    this.label(`pending: ${this.scene.waiting.length}`, box.x + 6, box.y + box.head / 2, box.w - 12, box.head * 0.62, "bold", colours.bad);
    visible.push(box);
  }

  drawTargets(visible, scale) {
    const { context: c, colours } = this;
    const byFill = new Map();
    for (const box of visible) {
      if (box.tray) continue;
      const { mark } = this.scene.targets[box.target];
      const fill = mark === "removed" ? colours.removed : mark === "added" ? colours.added : pressureColour(this.shares[box.target], colours);
      if (!byFill.has(fill)) byFill.set(fill, []);
      byFill.get(fill).push(box);
    }
    this.fillBoxes(byFill);
    if (scale * 100 > 8) {
      c.beginPath();
      for (const box of visible) if (!box.tray) c.rect(box.x, box.y, box.w, box.h);
      c.lineWidth = 1 / scale;
      c.strokeStyle = colours.line;
      c.stroke();
      this.calls += 1;
    }
    for (const box of visible) {
      if (box.tray) continue;
      const target = this.scene.targets[box.target];
      if (target.mark === "removed" || target.unschedulable) this.cross(box, target.mark === "removed" ? colours.bad : colours.quiet, target.mark === "removed");
      if (box.w * scale < NAME_PIXELS) continue;
      const share = this.shares[box.target];
      const label = box.w * scale > 2 * NAME_PIXELS && this.resource ? `${shortKey(this.resource)} ${percent(share)}` : "";
      const room = label ? box.w * 0.62 : box.w - 6;
      this.label(target.name, box.x + 4, box.y + HEAD / 2, room, 8.5);
      if (label) this.label(label, box.x + box.w - 4, box.y + HEAD / 2, box.w * 0.36, 7, "", colours.quiet, "right");
    }
  }

  cross(box, colour, both) {
    const { context: c } = this;
    c.beginPath();
    c.moveTo(box.x, box.y + box.h);
    c.lineTo(box.x + box.w, box.y);
    if (both) {
      c.moveTo(box.x, box.y);
      c.lineTo(box.x + box.w, box.y + box.h);
    }
    c.lineWidth = 1.5 / this.camera.scale;
    c.strokeStyle = colour;
    c.stroke();
    this.calls += 1;
  }

  drawItems(visible, scale) {
    let n = 0;
    for (const box of visible) n += this.itemsIn(box).length;
    const cells = new Map();
    const names = [];
    this.nItems = 0;
    for (const box of visible) {
      const items = this.itemsIn(box);
      if (!items.length) continue;
      const place = grid(box, items.length);
      if (place.size * scale < MIN_ITEM_PIXELS || n > MAX_ITEMS_DRAWN) {
        this.addBands(box, cells);
        continue;
      }
      const gap = place.size > 6 ? Math.min(1, place.size * 0.08) : 0;
      this.nItems += items.length;
      items.forEach((item, position) => {
        const x = place.x + (position % place.columns) * place.size;
        const y = place.y + Math.floor(position / place.columns) * place.size;
        const cell = { x: x + gap, y: y + gap, w: place.size - 2 * gap, h: place.size - 2 * gap };
        const colour = this.colourOf(item);
        if (!cells.has(colour)) cells.set(colour, []);
        cells.get(colour).push(cell);
        if (place.size * scale > 34) names.push([item, cell]);
        if (this.outlineOf(item)) (this.outlines ??= []).push([item, cell]);
      });
    }
    this.fillBoxes(cells);
    this.drawOutlines(scale);
    for (const [item, cell] of names) this.nameItem(item, cell);
  }

  nameItem(item, cell) {
    const text = this.scene.isFleet && item.replicas ? `${item.replicas} ${item.owner.slice(item.owner.indexOf("/") + 1)}` : item.name;
    this.label(text, cell.x + 1.5, cell.y + cell.h / 2, cell.w - 3, 4.6, "", this.colours.onItem);
  }

  // Bands of colour for items that are too small or too many, as wide as their share.
  addBands(box, cells) {
    const bands = box.tray ? bandsOf(this.scene.waiting) : this.bands[box.target];
    const head = box.tray ? box.head : HEAD;
    const width = box.w - 8;
    let x = box.x + 4;
    for (const band of bands) {
      const colour = band.colour < 0 ? this.colours.other : this.colours.colours[band.colour];
      if (!cells.has(colour)) cells.set(colour, []);
      cells.get(colour).push({ x, y: box.y + head, w: width * band.share, h: box.h - head - 6 });
      x += width * band.share;
    }
  }

  colourOf(item) {
    const { matching } = this.marks;
    if (matching && !matching.has(item.key)) return this.colours.line;
    return item.colour < 0 || item.colour === undefined ? this.colours.other : this.colours.colours[item.colour];
  }

  outlineOf(item) {
    const { selected, violated, matching, peers } = this.marks;
    if (selected === item.key) return { colour: this.colours.text, width: 3 };
    if (violated.has(item.key)) return { colour: this.colours.bad, width: 2.5 };
    if (peers.has(item.key)) return { colour: peers.get(item.key) === "repels" ? this.colours.bad : this.colours.good, width: 2 };
    if (item.mark === "moved" || item.mark === "new" || item.mark === "next") return { colour: this.colours.move, width: 2, dash: item.mark === "next" };
    return matching?.has(item.key) ? { colour: this.colours.text, width: 1.2 } : null;
  }

  drawOutlines(scale) {
    const { context: c } = this;
    for (const [item, cell] of this.outlines ?? []) {
      const { colour, width, dash } = this.outlineOf(item);
      c.lineWidth = Math.min(width / scale, cell.w / 3);
      c.strokeStyle = colour;
      if (dash) c.setLineDash([3 / scale, 2 / scale]);
      c.strokeRect(cell.x, cell.y, cell.w, cell.h);
      c.setLineDash([]);
      this.calls += 1;
    }
    this.outlines = null;
  }

  fillBoxes(byColour) {
    const { context: c } = this;
    for (const [colour, boxes] of byColour) {
      c.fillStyle = colour;
      c.beginPath();
      for (const one of boxes) c.rect(one.x, one.y, one.w, one.h);
      c.fill();
      this.calls += 1;
    }
  }

  // Lines between items: { from, to, colour, dash, arrow }, where both are items.
  drawLines() {
    const { context: c, camera, colours } = this;
    for (const line of this.lines.slice(0, MAX_LINES)) {
      const from = line.fromBox ? middle(line.fromBox) : this.centreOf(line.from);
      const to = this.centreOf(line.to);
      if (!from || !to) continue;
      const colour = colours[line.colour];
      c.lineWidth = 1.8 / camera.scale;
      c.strokeStyle = colour;
      c.setLineDash(line.dash ? [7 / camera.scale, 4 / camera.scale] : []);
      const bend = { x: (from.x + to.x) / 2 - (to.y - from.y) * 0.12, y: (from.y + to.y) / 2 + (to.x - from.x) * 0.12 };
      c.beginPath();
      c.moveTo(from.x, from.y);
      c.quadraticCurveTo(bend.x, bend.y, to.x, to.y);
      c.stroke();
      c.setLineDash([]);
      const angle = Math.atan2(to.y - bend.y, to.x - bend.x);
      const size = 7 / camera.scale;
      c.beginPath();
      c.moveTo(to.x, to.y);
      for (const side of [2.7, -2.7]) c.lineTo(to.x + size * Math.cos(angle + side), to.y + size * Math.sin(angle + side));
      c.fillStyle = colour;
      c.fill();
      this.calls += 2;
    }
  }

  drawFocus() {
    const { context: c, camera, colours } = this;
    const { focused, selectedBox } = this.marks;
    for (const [box, colour, width] of [[selectedBox, colours.text, 2.5], [focused, colours.focus, 3]]) {
      if (!box) continue;
      const place = box.item ? this.cellAround(box.item) : box;
      if (!place) continue;
      c.lineWidth = width / camera.scale;
      c.strokeStyle = colour;
      c.strokeRect(place.x, place.y, place.w, place.h);
      this.calls += 1;
    }
  }

  cellAround(item) {
    const centre = this.centreOf(item);
    return centre && { x: centre.x - centre.size / 2, y: centre.y - centre.size / 2, w: centre.size, h: centre.size };
  }

  label(text, x, y, room, size, weight = "", colour = this.colours.text, align = "left") {
    const scale = this.camera.scale;
    const pixels = Math.min(size * scale, this.canvas.clientWidth > LARGE_CANVAS ? 22 : 15);
    if (pixels < 6.5 || room * scale < 14) return;
    const { context: c } = this;
    const most = Math.floor((room * scale) / (pixels * 0.56));
    const whole = shown(text, 120);
    const cut = whole.length > most ? `${whole.slice(0, Math.max(1, most - 1))}…` : whole;
    c.font = `${weight} ${pixels / scale}px ${FONT}`;
    c.fillStyle = colour;
    c.textBaseline = "middle";
    c.textAlign = align;
    c.fillText(cut, x, y, room);
    this.calls += 1;
  }
}

function middle(box) {
  return { x: box.x + box.w / 2, y: box.y + box.h / 2, size: box.w };
}

function pressureColour(share, colours) {
  if (!share) return colours.node;
  return colours.pressure[share > 1 ? 4 : share >= 0.9 ? 3 : share >= 0.6 ? 2 : share >= 0.3 ? 1 : 0];
}

// The colours of items, each with its share of them: four at most.
function bandsOf(items) {
  if (!items.length) return [];
  const count = new Map();
  for (const item of items) count.set(item.colour ?? -1, (count.get(item.colour ?? -1) ?? 0) + 1);
  const ranked = [...count].sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, 4);
  const total = ranked.reduce((sum, [, n]) => sum + n, 0);
  return ranked.sort((a, b) => a[0] - b[0]).map(([colour, n]) => ({ colour, share: n / total }));
}
