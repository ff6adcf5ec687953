// Help in place: what the drawing means, and every key.

import { el } from "./text.js";

const KEYS = [
  ["Arrow keys", "move between boxes of one level"], ["Enter", "go into a box, select a workload"], ["Escape", "go out of a box"],
  ["Space", "select the box: lose, drain, cordon, add a node"], ["+ and −", "zoom"], ["0", "show everything"], ["/", "search"], ["t", "drawing or table"], ["u", "undo the last what-if step"], ["?", "this help"],
];

export function openHelp() {
  const dialog = document.getElementById("help");
  dialog.replaceChildren(
    el("h2", { id: "help-title" }, "Help"),
    el("p", {}, "Boxes are regions, zones, racks and nodes, or providers, regions and clusters. Small squares are workloads. The colour of a node says how much of a resource is requested. Pending workloads are in the box on top."),
    el("p", {}, "Click a workload to see why it is there, which others attract or repel it, and what would make it fit. Click a box to lose it, drain it, cordon it or add a node like it. Drop a manifest on the page to see where it lands. Nothing is written to a cluster."),
    el("p", {}, "The search takes part of a name, or a label selector as kubectl does: ", el("code", {}, "app=web,tier!=db,env in (a,b),!old"), "."),
    el("h3", {}, "Keys of the drawing"),
    el("dl", {}, KEYS.map(([key, what]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, what)])),
    el("p", {}, "The table has everything that is drawn. The address of the page holds the view, so a link restores it."),
    el("form", { method: "dialog" }, el("button", { class: "primary", type: "submit", onclick: (event) => { event.preventDefault(); dialog.close(); } }, "Close")),
  );
  dialog.showModal();
}
