// Networks as graphs of modules: a click or Enter opens a module, on both sides if both have it.
(function () {
  "use strict";
  const WIDTH = 184, HEIGHT = 38, GAP_X = 22, GAP_Y = 34, MOST = 600;
  const SVG = "http://www.w3.org/2000/svg";
  function element(name, settings, parent, text) {
    const made = document.createElementNS(SVG, name);
    for (const key in settings) made.setAttribute(key, settings[key]);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  }
  function button(parent, text, label, action) {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.setAttribute("aria-label", label);
    made.addEventListener("click", action);
    parent.append(made);
    return made;
  }
  const above = (path) => {
    const parts = path.split(".");
    return parts.map((_, count) => parts.slice(0, count).join("."));
  };
  const cut = (text, most) => (text.length > most ? "…" + text.slice(1 - most) : text);

  // All modules by path, with those above them, and what each contains.
  function tree(side) {
    const known = new Map([["", { path: "", kind: "", detail: "", levels: [], inner: new Set() }]]);
    side.nodes.forEach(([path, kind, detail, levels], at) => {
      for (const name of [...above(path), path]) {
        if (!known.has(name)) {
          known.set(name, { path: name, kind: "", detail: "", levels: [], inner: new Set() });
          known.get(name.split(".").slice(0, -1).join(".")).inner.add(name);
        }
      }
      Object.assign(known.get(path), { kind, detail, levels, at });
    });
    return known;
  }
  // A closed module has the worst level of what it contains.
  function worst(known, path, by) {
    const node = known.get(path);
    let level = node.levels[by];
    for (const inner of node.inner) {
      const found = worst(known, inner, by);
      if (found !== null && found !== undefined && !(level >= found)) level = found;
    }
    return level;
  }

  function start(place) {
    const data = JSON.parse(place.dataset.graph);
    const sides = data.sides.map((side) => ({ side, known: tree(side) }));
    const opened = new Set([""]);
    for (const { known } of sides) { // nothing to choose among: open it
      for (let path = ""; known.get(path) && known.get(path).inner.size === 1; ) {
        path = [...known.get(path).inner][0];
        if (known.get(path).inner.size) opened.add(path);
      }
    }
    let by = 0, target = "";
    place.replaceChildren();
    const bar = document.createElement("div");
    bar.className = "graph-bar small";
    const choice = document.createElement("select");
    data.colourings.forEach((name, at) => choice.append(new Option(name, at)));
    choice.addEventListener("change", () => { by = Number(choice.value); draw(); });
    if (data.colourings.length) {
      const label = document.createElement("label");
      label.append("coloured by ", choice);
      bar.append(label);
    }
    const chips = document.createElement("span");
    bar.append(chips);
    const columns = document.createElement("div");
    columns.className = "graph-sides";
    place.append(bar, columns);

    function toggle(path, focus) {
      if (opened.has(path)) for (const one of [...opened]) { if (one === path || one.startsWith(path + ".")) opened.delete(one); }
      else opened.add(path);
      target = path;
      draw(focus);
    }
    function seenAs(known, path) {
      for (const one of above(path)) if (!opened.has(one)) return one;
      return path;
    }
    function layout(side, known) {
      const shown = new Map();
      const edges = new Map();
      side.nodes.forEach(([path], at) => {
        const name = known.get(path).inner.size && opened.has(path) ? null : seenAs(known, path);
        if (name !== null && !shown.has(name)) shown.set(name, { name, at, layer: 0, x: 0, before: [] });
      });
      for (const [from, to] of side.edges) {
        const a = seenAs(known, side.nodes[from][0]), b = seenAs(known, side.nodes[to][0]);
        if (a !== b && shown.has(a) && shown.has(b)) edges.set(a + "\n" + b, [shown.get(a), shown.get(b)]);
      }
      const nodes = [...shown.values()].sort((a, b) => a.at - b.at);
      for (const [a, b] of edges.values()) if (a.at < b.at) b.before.push(a);
      const layers = [];
      for (const node of nodes) {
        for (const one of node.before) node.layer = Math.max(node.layer, one.layer + 1);
        // Nobody knows what feeds it, for example an operation between modules: it runs after the others.
        if (!node.before.length) node.layer = layers.length;
        (layers[node.layer] = layers[node.layer] || []).push(node);
      }
      const widest = Math.max(1, ...layers.map((layer) => layer.length));
      for (const layer of layers) {
        const mean = (node) => (node.before.length ? node.before.reduce((sum, one) => sum + one.x, 0) / node.before.length : 0);
        layer.sort((a, b) => mean(a) - mean(b) || a.at - b.at);
        layer.forEach((node, at) => { node.x = (widest - layer.length) / 2 + at; });
      }
      return { nodes, edges: [...edges.values()], widest, count: layers.length };
    }
    function drawSide({ side, known }, column, focus) {
      const heading = document.createElement("h3");
      heading.textContent = side.title;
      column.append(heading);
      const plan = layout(side, known);
      if (plan.nodes.length > MOST) {
        column.append(plan.nodes.length.toLocaleString("en") + " modules are open; close some.");
        return;
      }
      const wide = plan.widest * (WIDTH + GAP_X) + GAP_X, high = plan.count * (HEIGHT + GAP_Y) + GAP_Y;
      const holder = document.createElement("div");
      holder.className = "graph-view";
      holder.tabIndex = 0;
      holder.setAttribute("role", "region");
      holder.setAttribute("aria-label", "graph of " + side.title);
      column.append(holder);
      const svg = element("svg", { width: wide, height: high, viewBox: "0 0 " + wide + " " + high, role: "group", "aria-label": side.title }, holder);
      const left = (node) => GAP_X + node.x * (WIDTH + GAP_X);
      const top = (node) => GAP_Y / 2 + node.layer * (HEIGHT + GAP_Y);
      for (const [a, b] of plan.edges) {
        const x1 = left(a) + WIDTH / 2, y1 = top(a) + HEIGHT, x2 = left(b) + WIDTH / 2, y2 = top(b);
        const bend = y2 > y1 + GAP_Y ? ((b.at + a.at) % 2 ? 1 : -1) * (WIDTH / 2 + 8) : 0; // round what lies between
        element("path", { class: "edge", d: `M${x1} ${y1}C${x1 + bend} ${y1 + GAP_Y} ${x2 + bend} ${y2 - GAP_Y} ${x2} ${y2}` }, svg);
      }
      for (const node of plan.nodes) {
        const module = known.get(node.name);
        const level = worst(known, node.name, by);
        const isClosed = module.inner.size > 0;
        const group = element("g", { class: "node" + (node.name === target ? " target" : ""), transform: `translate(${left(node)},${top(node)})`, "data-path": node.name }, svg);
        element("rect", { class: "box", width: WIDTH, height: HEIGHT, rx: 6 }, group);
        element("rect", { class: "level-" + (level === null || level === undefined ? "none" : level), width: 8, height: HEIGHT, rx: 2 }, group);
        element("text", { x: 15, y: 16 }, group, cut(node.name, 25));
        element("text", { x: 15, y: 31, class: "kind" }, group, cut((isClosed ? "+ " : "") + (module.kind || "") + " " + (module.detail || ""), 27));
        const says = [node.name, module.kind, module.detail, level === null || level === undefined ? "" : "level " + level + " of 8"].filter(Boolean).join(", ");
        element("title", {}, group, says);
        if (!isClosed) continue;
        group.setAttribute("tabindex", 0);
        group.setAttribute("role", "button");
        group.setAttribute("aria-label", "open " + says);
        group.addEventListener("click", () => toggle(node.name, true));
        group.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); toggle(node.name, true); } });
      }
      const marked = svg.querySelector(".target");
      if (marked && focus) {
        holder.scrollLeft = marked.getBoundingClientRect().left - holder.getBoundingClientRect().left + holder.scrollLeft - 80;
        holder.scrollTop = marked.getBoundingClientRect().top - holder.getBoundingClientRect().top + holder.scrollTop - 80;
      }
    }
    function draw(focus) {
      columns.replaceChildren();
      chips.replaceChildren();
      const names = [...opened].filter((path) => path && sides.some(({ known }) => known.has(path) && known.get(path).inner.size));
      for (const path of names) button(chips, path + " ×", "close " + path, () => toggle(path));
      for (const one of sides) {
        const column = document.createElement("div");
        columns.append(column);
        drawSide(one, column, focus);
      }
    }
    function show() {
      let path = "";
      try { path = decodeURIComponent(location.hash.slice(1)); } catch (error) { return; }
      if (!path.startsWith("module-")) return;
      path = path.slice("module-".length);
      if (!sides.some(({ known }) => known.has(path))) return;
      for (const one of above(path)) opened.add(one);
      target = path;
      draw(true);
    }
    draw();
    show();
    addEventListener("hashchange", show);
  }
  const all = () => { for (const place of document.querySelectorAll("div.graph:not(.is-drawn)")) { place.classList.add("is-drawn"); start(place); } };
  all();
  document.addEventListener("isograd:drawn", all);
})();
