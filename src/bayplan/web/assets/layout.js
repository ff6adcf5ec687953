// Where every box is, in units of its own: a target is WIDTH by HEIGHT, domains are as large as what they hold.

export const WIDTH = 100;
export const HEIGHT = 76;
export const HEAD = 15;
const GAP = 8;
const PADDING = 10;
const TRAY_CELL = 16;
const MAX_TRIED = 40;

// Boxes with their place and their parent: { x, y, w, h, target } or { …, tray } or a domain with children.
export function layout(tree, nWaiting, aspect) {
  const root = { ...tree, parent: null };
  place(root, aspect, 0);
  const boxes = { root, tray: null };
  if (nWaiting) {
    const columns = Math.max(1, Math.ceil(Math.sqrt(nWaiting * 3)), Math.floor((root.w - 2 * PADDING) / TRAY_CELL));
    const w = Math.max(root.w, Math.min(columns, nWaiting) * TRAY_CELL + 2 * PADDING, 180);
    const head = headOf(w);
    boxes.tray = { tray: true, id: "waiting", columns, parent: null, x: 0, y: 0, w, h: Math.ceil(nWaiting / columns) * TRAY_CELL + head + PADDING, head };
    shift(root, 0, boxes.tray.h + 2 * GAP);
  }
  const all = [root, ...(boxes.tray ? [boxes.tray] : [])];
  boxes.w = Math.max(...all.map((box) => box.w));
  boxes.h = Math.max(...all.map((box) => box.y + box.h));
  return boxes;
}

function headOf(w) {
  return Math.max(20, Math.min(260, 0.032 * w));
}

function place(box, aspect, depth) {
  if (box.target !== undefined) {
    Object.assign(box, { x: 0, y: 0, w: WIDTH, h: HEIGHT });
    return;
  }
  for (const child of box.children) {
    child.parent = box;
    place(child, aspect, depth + 1);
  }
  const size = shelves(box.children, aspect);
  const isRoot = !box.id;
  const head = isRoot ? 0 : headOf(size.w);
  const padding = isRoot ? 0 : PADDING;
  for (const child of box.children) shift(child, padding, head + (isRoot ? 0 : 2));
  Object.assign(box, { x: 0, y: 0, w: Math.max(size.w + 2 * padding, isRoot ? 0 : 120), h: size.h + head + padding, head });
}

// Rows of boxes whose whole is about as wide as the aspect asks for. A few boxes are tried in rows of every length.
function shelves(children, aspect) {
  if (!children.length) return { w: WIDTH, h: HEIGHT / 2 };
  const widest = Math.max(...children.map((one) => one.w));
  const area = children.reduce((sum, one) => sum + (one.w + GAP) * (one.h + GAP), 0);
  const widths = [Math.max(widest, Math.sqrt(area * aspect))];
  if (children.length <= MAX_TRIED) {
    let sum = 0;
    for (const one of children) {
      sum += one.w + GAP;
      if (sum >= widest) widths.push(sum);
    }
  }
  const tried = widths.map((width) => rowsOf(children, width));
  const best = tried.reduce((a, b) => (waste(b, aspect) < waste(a, aspect) ? b : a));
  children.forEach((child, i) => shift(child, ...best.places[i]));
  return best;
}

// How large the drawing must be for these rows: the smaller, the larger is everything in it.
function waste({ w, h }, aspect) {
  return Math.max(w, h * aspect);
}

function rowsOf(children, width) {
  let [x, y, row, w] = [0, 0, 0, 0];
  const places = children.map((child) => {
    if (x && x + child.w > width + 1) {
      x = 0;
      y += row + GAP;
      row = 0;
    }
    const place = [x, y];
    x += child.w + GAP;
    row = Math.max(row, child.h);
    w = Math.max(w, x - GAP);
    return place;
  });
  return { places, w, h: y + row };
}

function shift(box, dx, dy) {
  if (!dx && !dy) return;
  box.x += dx;
  box.y += dy;
  for (const child of box.children ?? []) shift(child, dx, dy);
}

// The grid of items in a target: the left upper corner, the columns and the size of a cell.
export function grid(box, n) {
  if (box.tray) return { x: box.x + PADDING, y: box.y + box.head, columns: box.columns, size: TRAY_CELL };
  const width = WIDTH - 8;
  const height = HEIGHT - HEAD - 10;
  let columns = Math.max(1, Math.ceil(Math.sqrt((n * width) / height)));
  while (Math.ceil(n / columns) * (width / columns) > height) columns += 1;
  const size = Math.min(width / columns, 24);
  return { x: box.x + 4, y: box.y + HEAD, columns: Math.max(columns, Math.floor(width / size)), size };
}

export function cellOf(box, n, position) {
  const { x, y, columns, size } = grid(box, n);
  return { x: x + (position % columns) * size, y: y + Math.floor(position / columns) * size, size };
}

// The deepest box at a point.
export function boxAt(boxes, x, y) {
  let found = null;
  let children = [boxes.root, ...(boxes.tray ? [boxes.tray] : [])];
  while (children) {
    const inside = children.find((one) => x >= one.x && x < one.x + one.w && y >= one.y && y < one.y + one.h);
    if (!inside) break;
    found = inside;
    children = inside.children;
  }
  return found;
}
