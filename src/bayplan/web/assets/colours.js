// Which colour each workload has. Few colours can be told apart, so the most frequent values have one and the others share
// grey; what a colour means is also in the legend, the tip and the table.

const LIGHT = ["#2f6fd0", "#c4512d", "#2c8a57", "#8a4fc0", "#b98900", "#00838f", "#c2397e", "#6b7d1f", "#5160d6", "#9c5b2e", "#3c7f86"];
const DARK = ["#79aefc", "#f59b7a", "#7ed3a2", "#c9a4f2", "#f1cd63", "#63d2de", "#f595c4", "#c3d671", "#a5b0ff", "#dcae88", "#93cfd6"];
export const isDark = () => matchMedia("(prefers-color-scheme: dark)").matches;
export const MAX_COLOURS = LIGHT.length;

export function theme() {
  return isDark()
    ? {
      dark: true, page: "#0f1318", text: "#e6ebf1", quiet: "#a4afbb", line: "#4b5765", domain: "#171d24", domainDeep: "#1e262f", node: "#27313c",
      removed: "#3b1a18", added: "#16351f", bad: "#ff8a80", good: "#7ed3a2", move: "#6ea8fe", other: "#7d8894", focus: "#ffd54d",
      pressure: ["#2b3a4a", "#38506a", "#4b6b8c", "#a9781f", "#c0392b"], colours: DARK, onItem: "#0f1318",
    }
    : {
      dark: false, page: "#ffffff", text: "#1c2128", quiet: "#57606a", line: "#aeb8c2", domain: "#f4f6f8", domainDeep: "#e9edf1", node: "#ffffff",
      removed: "#fbe3e0", added: "#dff3e4", bad: "#b3261e", good: "#1a6b35", move: "#0a58ca", other: "#8a939c", focus: "#b35c00",
      pressure: ["#e3ecf5", "#cfe0f1", "#b3cfe9", "#f3d18a", "#eb9a8e"], colours: LIGHT, onItem: "#ffffff",
    };
}

const APP_KEYS = ["app.kubernetes.io/name", "app", "k8s-app", "app.kubernetes.io/instance"];
export const NONE = "(none)";

export const BY = {
  app: { title: "app", of: (item) => APP_KEYS.map((key) => item.labels[key]).find((value) => value !== undefined) ?? NONE },
  namespace: { title: "namespace", of: (item) => item.namespace || NONE },
  owner: { title: "controller", of: (item) => item.owner || NONE },
  group: { title: "group", of: (item) => item.group || NONE },
  policy: { title: "policy", of: (item) => item.policy || NONE },
  affinity: { title: "cluster affinity", of: (item) => item.observed || NONE },
};

// The value of each item and the colour number of each value: the most frequent first, -1 for those without a colour.
export function assigned(items, by) {
  const count = new Map();
  for (const item of items) {
    const value = BY[by].of(item);
    item.value = value;
    count.set(value, (count.get(value) ?? 0) + 1);
  }
  const ranked = [...count].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  const number = new Map(ranked.map(([value], position) => [value, position < MAX_COLOURS ? position : -1]));
  for (const item of items) item.colour = number.get(item.value);
  return ranked;
}
