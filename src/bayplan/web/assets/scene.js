// What is drawn: targets (nodes or clusters) and items (pods, or the shares of bindings) with the target of each; now, or
// after so many of the moves that a what-if brings about. Knows nothing of boxes and pixels.

export const WAITS = -1; // the target of an item that has none
const ZONE = "topology.kubernetes.io/zone";
const REGION = "topology.kubernetes.io/region";
const HOSTNAME = "kubernetes.io/hostname";
const FIELDS = ["provider", "region", "zone"]; // of clusters

function prototypeless(record) {
  return Object.assign(Object.create(null), record);
}

// The scene of a state document.
export function sceneOf(state) {
  return state.kind === "FleetState" ? fleetScene(state) : clusterScene(state);
}

function clusterScene(state) {
  const { sets, pods } = state;
  const targets = state.nodes.map((node) => ({ ...node, labels: prototypeless(node.labels), mark: "" }));
  const labels = sets.labels.map(prototypeless);
  const items = pods.name.map((name, i) => {
    const namespace = sets.namespaces[pods.namespace[i]];
    return {
      key: `${namespace}/${name}`, namespace, name, target: pods.node[i], labels: labels[pods.labels[i]], owner: sets.owners[pods.owner[i]],
      group: sets.groups[pods.group[i]], requests: sets.requests[pods.requests[i]], priority: pods.priority[i], mark: "", from: WAITS, why: "",
    };
  });
  for (const i of pods.terminating) items[i].terminating = true;
  return finished({
    isFleet: false, noun: "node", itemNoun: "pod", targets, items, resources: state.resources, notes: state.notes, notJudged: state.notJudged,
    rollouts: state.rollouts, source: state.source, live: state.live,
  });
}

function fleetScene(state) {
  const targets = state.clusters.map((cluster) => {
    const fields = { provider: cluster.provider, region: cluster.region, zone: cluster.zones.join(", ") };
    const labels = prototypeless(cluster.labels);
    return { ...cluster, labels, fields, mark: "", unschedulable: false };
  });
  const positions = new Map(targets.map((one, position) => [one.name, position]));
  const bindings = state.bindings.map((one) => ({ ...one, labels: prototypeless(one.labels) }));
  const items = bindings.flatMap((one) => sharesOf(one, one.clusters, positions));
  const resources = [...new Set(targets.flatMap((one) => Object.keys(one.allocatable)))].sort();
  return finished({
    isFleet: true, noun: "cluster", itemNoun: "workload", targets, items, bindings, resources, notes: state.notes, notJudged: {}, rollouts: 0,
    source: state.source, live: state.live,
  });
}

function sharesOf(binding, clusters, positions) {
  const shares = Object.entries(clusters);
  const common = {
    key: binding.key, namespace: binding.namespace, name: binding.name, labels: binding.labels, owner: `${binding.kind}/${binding.template}`,
    group: binding.observed, observed: binding.observed, policy: binding.policy, requests: {}, priority: 0, mark: "", from: WAITS, why: "",
  };
  if (!shares.length) return [{ ...common, target: WAITS, replicas: binding.replicas }];
  return shares.map(([name, replicas]) => ({ ...common, target: positions.get(name) ?? WAITS, replicas }));
}

function finished(scene) {
  scene.itemsOf = scene.targets.map(() => []);
  scene.waiting = [];
  for (const item of scene.items) (item.target >= 0 ? scene.itemsOf[item.target] : scene.waiting).push(item);
  return scene;
}

// The scene after the first `steps` of what is different, all of it by default.
export function after(scene, difference, steps = Infinity) {
  return scene.isFleet ? fleetAfter(scene, difference, steps) : clusterAfter(scene, difference, steps);
}

export function stepsOf(scene, difference) {
  return scene.isFleet ? difference.bindings.filter((one) => !one.unchanged) : difference.pods.moved;
}

function clusterAfter(scene, difference, steps) {
  const { nodes, pods } = difference;
  const changed = new Map(nodes.changed.map((node) => [node.name, node]));
  const removed = new Set(nodes.removed);
  const targets = scene.targets.map((one) => {
    if (removed.has(one.name)) return { ...one, mark: "removed" };
    const now = changed.get(one.name);
    return now ? { ...now, labels: prototypeless(now.labels), mark: "changed" } : one;
  });
  for (const node of nodes.added) targets.push({ ...node, labels: prototypeless(node.labels), mark: "added" });
  const positions = new Map(targets.map((one, position) => [one.name, position]));
  const items = new Map(scene.items.map((one) => [one.key, one]));
  for (const { pod } of pods.gone) items.delete(pod);
  pods.moved.forEach((move, step) => {
    const origin = positions.get(move.from) ?? WAITS;
    const done = step < steps;
    if (!done && move.new) return;
    const still = origin !== WAITS && targets[origin].mark !== "removed" ? origin : WAITS;
    items.set(move.pod, changedItem(items.get(move.pod), move, {
      target: done ? positions.get(move.to) ?? WAITS : still, mark: done ? (move.new && !move.from ? "new" : "moved") : "next", from: origin, step,
    }));
  });
  for (const one of pods.waiting) {
    items.set(one.pod, changedItem(items.get(one.pod), one, { target: WAITS, mark: "waiting", from: positions.get(one.from) ?? WAITS }));
  }
  return finished({ ...scene, targets, items: [...items.values()] });
}

function changedItem(known, change, fields) {
  const [namespace] = change.pod.split("/", 1);
  const made = known ?? {
    key: change.pod, namespace, name: change.pod.slice(namespace.length + 1), labels: prototypeless(change.labels), owner: change.owner,
    group: change.group, requests: change.requests, priority: change.priority,
  };
  return { ...made, ...fields, why: change.why };
}

function fleetAfter(scene, difference, steps) {
  const positions = new Map(scene.targets.map((one, position) => [one.name, position]));
  const known = new Map(scene.bindings.map((one) => [one.key, one]));
  const changes = stepsOf(scene, difference).slice(0, steps);
  const changedKeys = new Set(changes.map((one) => one.key));
  const items = scene.items.filter((one) => !changedKeys.has(one.key));
  const bindings = scene.bindings.filter((one) => !changedKeys.has(one.key));
  for (const change of changes) {
    const [namespace] = change.key.split("/", 1);
    const before = known.get(change.key) ?? {
      key: change.key, namespace, name: change.key.slice(namespace.length + 1), kind: change.kind, template: change.template, labels: {}, policy: "",
      groups: [], observed: "",
    };
    const now = { ...before, replicas: change.replicas, clusters: change.clusters, observed: change.affinity, pending: !change.placed };
    bindings.push(now);
    for (const share of sharesOf(now, change.placed ? change.clusters : {}, positions)) {
      const cluster = share.target >= 0 ? scene.targets[share.target].name : "";
      const isSame = cluster && change.previous[cluster] === share.replicas;
      items.push({ ...share, mark: change.placed ? (isSame ? "" : "moved") : "waiting", why: change.message, was: change.previous[cluster] });
    }
  }
  return finished({ ...scene, items, bindings });
}

// Used and offered of a resource on a target.
export function usage(scene, position, resource) {
  const target = scene.targets[position];
  const offered = target.allocatable[resource] ?? 0;
  if (scene.isFleet) return { used: target.allocated[resource] ?? 0, offered };
  let used = 0;
  for (const item of scene.itemsOf[position]) used += resource === "pods" ? 1 : item.requests[resource] ?? 0;
  return { used, offered };
}

// Ways to divide the targets into nested domains, the most useful first: lists of keys of labels, or of fields of clusters.
export function groupings(scene) {
  const values = new Map();
  for (const target of scene.targets) {
    for (const key of scene.isFleet ? FIELDS : []) if (target.fields[key]) add(values, key, target.fields[key]);
    for (const key of Object.keys(target.labels)) add(values, key, target.labels[key]);
  }
  const n = scene.targets.length;
  const divides = (key) => values.has(key) && (values.get(key).size < n || n < 2);
  const racks = [...values.keys()].filter((key) => /(^|[./-])rack$/.test(key) && divides(key));
  const hosts = [...values.keys()].filter((key) => /(host-id|physical-host-id|hypervisor)$/.test(key) && key !== HOSTNAME && values.has(key));
  const usual = scene.isFleet ? FIELDS.filter(divides) : [REGION, ZONE, ...racks.slice(0, 1), ...hosts.slice(0, 1)].filter((key) => values.has(key));
  const single = [...values.keys()].filter((key) => divides(key) && key !== HOSTNAME && values.get(key).size > 1).sort();
  const found = [usual, ...usual.slice(1).map((_, i) => usual.slice(i + 1)), ...single.map((key) => [key]), []];
  const unique = new Map(found.map((keys) => [keys.join("\n"), keys]));
  return [...unique.values()];
}

function add(values, key, value) {
  if (!values.has(key)) values.set(key, new Set());
  values.get(key).add(value);
}

export function valueOf(scene, target, key) {
  return scene.isFleet && FIELDS.includes(key) ? target.fields[key] || undefined : target.labels[key];
}

export function shortKey(key) {
  return key.slice(key.lastIndexOf("/") + 1);
}

// A domain as it is titled: `zone a`, and `zone-a` alone where the value says what it is.
export function titleOf(key, value) {
  const short = shortKey(key);
  if (value === undefined) return `no ${short}`;
  return value.toLowerCase().startsWith(short.toLowerCase()) ? value : `${short} ${value}`;
}

// The targets in nested domains; targets without the label of a level are in one of their own, after the others.
export function treeOf(scene, keys) {
  function divide(positions, level, path) {
    if (level === keys.length) return positions.map((position) => ({ target: position }));
    const key = keys[level];
    const byValue = new Map();
    for (const position of positions) {
      const value = valueOf(scene, scene.targets[position], key);
      if (!byValue.has(value)) byValue.set(value, []);
      byValue.get(value).push(position);
    }
    if (byValue.size === 1 && byValue.has(undefined) && level) return divide(positions, level + 1, path);
    const order = [...byValue.keys()].sort((a, b) => (a === undefined) - (b === undefined) || collate(a, b));
    return order.map((value) => {
      const id = [...path, `${key}=${value ?? ""}`];
      const members = byValue.get(value);
      return { key, value, id: id.join("\n"), members, children: divide(members, level + 1, id) };
    });
  }
  const positions = scene.targets.map((_, position) => position)
    .sort((a, b) => collate(scene.targets[a].name, scene.targets[b].name));
  return { id: "", members: positions, children: divide(positions, 0, []) };
}

const collator = new Intl.Collator("en", { numeric: true });
function collate(a, b) {
  return collator.compare(a ?? "", b ?? "");
}

// How many targets lack each of the labels of the levels.
export function unlabelled(scene, keys) {
  return keys.map((key) => [key, scene.targets.filter((target) => valueOf(scene, target, key) === undefined).length]).filter(([, n]) => n);
}
