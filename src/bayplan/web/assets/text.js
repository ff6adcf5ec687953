// Text and elements. All text of objects is shown as text: nothing here or elsewhere makes markup of a string.

const INVISIBLE = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;
const MAX_SHOWN = 300;

// A label or a name as it is shown: control characters and marks that change the direction of text are spelled out, and
// what is too long for any name is cut.
export function shown(text, most = MAX_SHOWN) {
  const whole = String(text);
  const cut = whole.length > most ? `${whole.slice(0, most)}… (${whole.length} characters)` : whole;
  return cut.replace(INVISIBLE, (found) => `\\u${found.codePointAt(0).toString(16).padStart(4, "0")}`);
}

// An element with attributes, listeners (`onclick`) and children; strings are text.
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "value") made.value = value;
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false)
    .map((one) => (typeof one === "object" ? one : document.createTextNode(shown(one, 4000)))));
  return made;
}

export function svgEl(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}

export function counted(n, noun, several = `${noun}s`) {
  return `${n.toLocaleString("en")} ${n === 1 ? noun : several}`;
}

// An amount of a resource in Kubernetes' notation; cpu is in thousandths.
export function amount(resource, value) {
  if (resource === "cpu" && value >= 10000) return (value / 1000).toLocaleString("en", { maximumFractionDigits: 1 });
  if (resource === "cpu") return value % 1000 ? `${value}m` : `${value / 1000}`;
  if (resource === "pods" || resource.includes("/")) return value.toLocaleString("en");
  for (const [unit, size] of [["Ti", 2 ** 40], ["Gi", 2 ** 30], ["Mi", 2 ** 20], ["Ki", 2 ** 10]]) {
    if (value >= size) return `${(value / size).toFixed(value % size ? 1 : 0)}${unit}`;
  }
  return String(value);
}

export function percent(share) {
  return Number.isFinite(share) ? `${Math.round(share * 100)} %` : "–";
}
