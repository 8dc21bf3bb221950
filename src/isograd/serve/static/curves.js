// Curves of several runs over each other. What smoothing hides stays visible as a faint line.
"use strict";
(function () {
  const PALETTE = ["#2563a8", "#c0322b", "#1a7f4b", "#9a6700", "#7a3fb0", "#0e7c86", "#b0487f", "#5b6168"];
  const at = (id) => document.getElementById(id);
  const chosen = { runs: new Set(), names: new Set() };
  const settings = new URLSearchParams(location.search);
  let listing = [];
  let charts = [];
  let drawn = [];

  const ink = () => getComputedStyle(document.documentElement).getPropertyValue("--ink").trim();
  const line = () => getComputedStyle(document.documentElement).getPropertyValue("--line").trim();
  const colour = (run) => PALETTE[[...chosen.runs].indexOf(run) % PALETTE.length];

  // An exported page holds its numbers; a served one asks for them.
  const stored = at("stored") ? JSON.parse(at("stored").textContent) : null;
  function fromStored(address) {
    const [kind, query] = address.split("?");
    const asked = new URLSearchParams(query || "");
    if (kind === "runs") return Object.keys(stored);
    const runs = asked.getAll("run").filter((run) => Object.hasOwn(stored, run));
    if (kind === "names") {
      const counts = new Map();
      for (const run of runs) for (const name of Object.keys(stored[run])) counts.set(name, (counts.get(name) || 0) + 1);
      return [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a));
    }
    const axis = asked.get("axis"), from = Number(asked.get("from") ?? -Infinity), to = Number(asked.get("to") ?? Infinity);
    const name = asked.get("name");
    return runs.filter((run) => Object.hasOwn(stored[run], name)).map((run) => stored[run][name]).map((curve) => {
      const places = axis === "times" && curve.times ? curve.times : curve.steps;
      const inside = (_, i) => places[i] >= from && places[i] <= to;
      return { ...curve, steps: curve.steps.filter(inside), values: curve.values.filter(inside), times: curve.times && curve.times.filter(inside) };
    });
  }
  const references = () => [...at("reference").selectedOptions].map((option) => option.value);
  async function answer(address) {
    if (stored) return fromStored(address);
    const found = await fetch(address, { credentials: "same-origin" });
    if (!found.ok) throw new Error(await found.text());
    return found.json();
  }
  function box(parent, value, set, text) {
    const label = document.createElement("label");
    const input = document.createElement("input");
    input.type = "checkbox";
    input.checked = set.has(value);
    input.addEventListener("change", () => { input.checked ? set.add(value) : set.delete(value); changed(); });
    const mark = document.createElement("span");
    mark.className = "swatch";
    label.append(input, " ", mark, document.createTextNode(text));
    label.dataset.text = text.toLowerCase();
    label.dataset.value = value;
    parent.append(label);
  }
  function colourBoxes() {
    for (const label of at("runs").children) {
      label.querySelector(".swatch").style.background = chosen.runs.has(label.dataset.value) ? colour(label.dataset.value) : "";
    }
  }
  // Exponential smoothing with the start's bias taken out, as in Adam.
  function smooth(values, weight) {
    let sum = 0, share = 0;
    return values.map((value) => {
      if (value === null) return null;
      sum = weight * sum + (1 - weight) * value;
      share = weight * share + (1 - weight);
      return sum / share;
    });
  }
  async function names() {
    const found = await answer("names?" + [...chosen.runs].map((run) => "run=" + encodeURIComponent(run)).join("&"));
    at("names").replaceChildren();
    if (![...chosen.names].some((name) => found.includes(name)) && found.length) chosen.names = new Set(found.slice(0, 1));
    for (const name of found) box(at("names"), name, chosen.names, name);
  }
  async function changed(keepNames) {
    try {
      colourBoxes();
      remember();
      if (!chosen.runs.size) { at("names").replaceChildren(); at("charts").replaceChildren(); say("Choose a run."); return; }
      // The numbers are asked for beside the names where the names are known.
      const before = [...chosen.names], asked = new Map(before.map((name) => [name, points(name)]));
      for (const one of asked.values()) one.catch(() => {});
      if (!keepNames) await names();
      await draw(asked);
    } catch (error) { say(String(error.message || error)); }
  }
  function say(text) { at("message").textContent = text; }
  function remember() {
    if (stored) return;  // a file's address takes no other
    const kept = new URLSearchParams();
    for (const run of chosen.runs) kept.append("run", run);
    for (const name of chosen.names) kept.append("name", name);
    for (const run of references()) kept.append("reference", run);
    for (const id of ["x", "smoothing"]) if (at(id).value && at(id).value !== "0") kept.set(id, at(id).value);
    if (at("log").checked) kept.set("log", "1");
    history.replaceState(null, "", "?" + kept);
  }
  // No more points than the chart has columns, between two places of the axis where these are given.
  function points(name, from, to) {
    const asked = new URLSearchParams([...chosen.runs].map((run) => ["run", run]));
    asked.set("name", name);
    asked.set("most", Math.min(2000, Math.max(400, at("charts").clientWidth)));
    asked.set("axis", at("x").value);
    if (from !== undefined) { asked.set("from", from); asked.set("to", to); }
    return answer("points?" + asked);
  }
  async function draw(asked) {
    say("");
    const parts = await Promise.all([...chosen.names].map(async (name) => [name, await (asked.get(name) || points(name))]));
    for (const chart of charts) chart.destroy();
    charts = [];
    drawn = parts;
    at("charts").replaceChildren();
    for (const [name, curves] of parts) one(name, curves.filter((curve) => curve.steps.length));
  }
  function one(name, curves) {
    const section = document.createElement("section");
    const heading = document.createElement("h2");
    heading.textContent = name;
    section.append(heading);
    at("charts").append(section);
    if (!curves.length) { section.append("None of the chosen runs has this scalar."); return; }
    const x = at("x").value;
    const weight = Number(at("smoothing").value);
    const isLog = at("log").checked;
    const series = [{ label: x === "times" ? "time (s)" : "step" }];
    const bounds = curves.filter((curve) => references().includes(curve.run));
    const hasBand = bounds.length > 1;
    if (hasBand) for (const label of ["reference, greatest", "reference, least"]) series.push({ label, stroke: ink() + "80", width: 1, points: { show: false } });
    for (const curve of curves) {
      if (weight > 0) {
        series.push({ label: curve.run + " as it is", stroke: colour(curve.run) + "40", width: 1, points: { show: false } });
      }
      series.push({ label: curve.run, stroke: colour(curve.run), width: !bounds.includes(curve) ? 1.5 : hasBand ? 0.5 : 3, points: { show: curve.steps.length < 60 } });
    }
    const grid = { stroke: line(), width: 1 };
    const runs = curves.map((curve) => curve.run), bounding = bounds.map((curve) => curve.run);
    const table = (found) => joined(found, x, weight, isLog, found.filter((curve) => bounding.includes(curve.run)));
    const data = table(curves);
    charts.push(new uPlot({
      width: section.clientWidth - 32, height: 320, series,
      scales: { x: { time: false }, y: { distr: isLog ? 3 : 1 } },
      axes: [{ stroke: ink(), grid, ticks: grid, label: series[0].label }, { stroke: ink(), grid, ticks: grid, label: name, size: 80 }],
      cursor: { drag: { x: true, y: true, uni: 20 }, sync: { key: "isograd" } },
      hooks: { setScale: [zooming(name, data, runs, table)] },
      bands: hasBand ? [{ series: [1, 2], fill: ink() + "20" }] : [],
    }, data, section));
    const lost = curves.filter((curve) => curve.nonfinite).map((curve) => curve.run + ": " + curve.nonfinite + " values are not finite");
    const thinned = curves.filter((curve) => curve.thinned_from > curve.steps.length).map((curve) => curve.run + ": " + curve.thinned_from.toLocaleString("en") + " steps, drawn with their least and greatest values");
    const bounded = hasBand ? band(bounds, x, weight) : null;
    const outside = hasBand ? curves.filter((curve) => !bounds.includes(curve)).map((curve) => beyond(curve, bounded, x, weight)).filter(Boolean) : [];
    if (lost.length + thinned.length + outside.length) {
      const note = document.createElement("p");
      note.className = "hidden-note";
      note.textContent = [...outside, ...lost, ...thinned].join("; ") + ".";
      section.append(note);
    }
  }
  const axisOf = (curve, x) => (x === "times" && curve.times ? curve.times : curve.steps);
  // The value of a curve at each of these places, in their order; null beyond its ends.
  function between(curve, places, x, weight) {
    const own = axisOf(curve, x), values = weight > 0 ? smooth(curve.values, weight) : curve.values;
    let at = 0;
    return places.map((place) => {
      while (at + 1 < own.length && own[at + 1] < place) at++;
      const next = at + 1 < own.length && own[at] < place ? at + 1 : at;
      if (!own.length || place < own[0] || place > own[own.length - 1]) return null;
      if (values[at] === null || values[next] === null) return null;
      const part = next === at ? 0 : (place - own[at]) / (own[next] - own[at]);
      return values[at] + part * (values[next] - values[at]);
    });
  }
  // The least and the greatest of several curves at each place of any of them.
  function band(curves, x, weight) {
    const places = [...new Set(curves.flatMap((curve) => axisOf(curve, x)))].sort((a, b) => a - b);
    const all = curves.map((curve) => between(curve, places, x, weight));
    const of = (choose) => places.map((_, i) => {
      const known = all.map((values) => values[i]).filter((value) => value !== null);
      return known.length ? choose(...known) : null;
    });
    return { steps: places, least: of(Math.min), greatest: of(Math.max) };
  }
  function beyond(curve, found, x, weight) {
    const places = axisOf(curve, x), values = weight > 0 ? smooth(curve.values, weight) : curve.values;
    const [low, high] = [found.least, found.greatest].map((bound) => between({ steps: found.steps, values: bound }, places, "steps", 0));
    const known = places.map((_, i) => i).filter((i) => values[i] !== null && low[i] !== null && high[i] !== null);
    const out = known.filter((i) => values[i] < low[i] || values[i] > high[i]);
    if (!out.length) return "";
    return curve.run + ": " + Math.round((100 * out.length) / known.length) + " % of its points lie outside of the reference's band, first at step " + curve.steps[out[0]].toLocaleString("en");
  }
  function joined(curves, x, weight, isLog, bounds) {
    const positive = (values) => (isLog ? values.map((v) => (v !== null && v > 0 ? v : null)) : values);
    const tables = [];
    if (bounds.length > 1) {
      const found = band(bounds, x, weight);
      tables.push([found.steps, positive(found.greatest)], [found.steps, positive(found.least)]);
    }
    for (const curve of curves) {
      if (weight > 0) tables.push([axisOf(curve, x), positive(curve.values)]);
      tables.push([axisOf(curve, x), positive(weight > 0 ? smooth(curve.values, weight) : curve.values)]);
    }
    return uPlot.join(tables);
  }
  // A part that is looked at closer gets the points that the whole had to leave out.
  function zooming(name, whole, runs, table) {
    let shown = "", waiting = 0;
    const first = whole[0][0], last = whole[0][whole[0].length - 1];
    return (chart, key) => {
      if (key !== "x") return;
      const { min, max } = chart.scales.x;
      const isWhole = min <= first && max >= last;
      const wanted = isWhole ? "" : min + ":" + max;
      if (wanted === shown) return;
      shown = wanted;
      clearTimeout(waiting);
      const put = (data) => { chart.setData(data, false); chart.redraw(); };
      if (isWhole) { put(whole); return; }
      waiting = setTimeout(async () => {
        try {
          const found = (await points(name, min, max)).filter((curve) => runs.includes(curve.run));
          if (shown === wanted && found.some((curve) => curve.steps.length)) put(table(found));
        } catch (error) { say(String(error.message || error)); }
      }, 80);
    };
  }
  function save(name, kind, content) {
    const link = document.createElement("a");
    link.download = name;
    link.href = content instanceof Blob ? URL.createObjectURL(content) : content;
    link.click();
  }
  at("csv").addEventListener("click", () => {
    const quote = (text) => '"' + String(text).replace(/"/g, '""').replace(/^([=+\-@])/, "'$1") + '"';
    const rows = [["run", "scalar", "step", "value"].join(",")];
    for (const [name, curves] of drawn) for (const curve of curves) curve.steps.forEach((step, i) => rows.push([quote(curve.run), quote(name), step, curve.values[i] === null ? "nan" : curve.values[i]].join(",")));
    save("curves.csv", "text/csv", new Blob([rows.join("\n") + "\n"], { type: "text/csv" }));
  });
  at("png").addEventListener("click", () => { const canvas = document.querySelector("#charts canvas"); if (canvas) save("curves.png", "image/png", canvas.toDataURL("image/png")); });
  at("filter").addEventListener("input", () => {
    const wanted = at("filter").value.toLowerCase();
    for (const label of at("runs").children) label.hidden = !label.dataset.text.includes(wanted);
  });
  for (const id of ["x", "log", "reference"]) at(id).addEventListener("change", () => changed(true));
  at("smoothing").addEventListener("input", () => { at("amount").textContent = at("smoothing").value; changed(true); });
  addEventListener("resize", () => charts.forEach((chart) => chart.setSize({ width: chart.root.parentElement.clientWidth - 32, height: 320 })));

  (async function start() {
    try {
      listing = await answer("runs");
      for (const run of settings.getAll("run")) if (listing.includes(run)) chosen.runs.add(run);
      for (const name of settings.getAll("name")) chosen.names.add(name);
      if (!chosen.runs.size) listing.slice(0, 3).forEach((run) => chosen.runs.add(run));
      for (const run of listing) {
        box(at("runs"), run, chosen.runs, run);
        const option = document.createElement("option");
        option.value = option.textContent = run;
        at("reference").append(option);
      }
      for (const option of at("reference").options) option.selected = settings.getAll("reference").includes(option.value);
      for (const id of ["x", "smoothing"]) if (settings.has(id)) at(id).value = settings.get(id);
      at("amount").textContent = at("smoothing").value;
      at("log").checked = settings.has("log");
      await changed();
    } catch (error) { say(String(error.message || error)); }
  })();
})();
