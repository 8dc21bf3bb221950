"use strict";
(function () {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue("--" + name).trim();
  const TONES = { good: "good", warning: "warn", bad: "bad", info: "second", faint: "faint" };

  // Folded sections open when a link leads into them.
  function openTarget() {
    let element = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!element) return;
    const inner = element.querySelector("details");
    if (inner) inner.open = true;
    for (; element; element = element.parentElement) if (element.tagName === "DETAILS") element.open = true;
  }
  addEventListener("hashchange", openTarget);
  openTarget();

  // Tables: a click on a heading sorts, a field above a long table filters.
  function key(row, position) {
    const cell = row.cells[position];
    return cell.dataset.sort !== undefined ? Number(cell.dataset.sort) : cell.textContent.trim();
  }
  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
    return a < b ? -1 : a > b ? 1 : 0;
  }
  function sort(table, position, heading) {
    const before = heading.getAttribute("aria-sort");
    const rises = before ? before === "descending" : !heading.classList.contains("number");
    const rows = [...table.tBodies[0].rows].map((row) => [key(row, position), row]);
    rows.sort((a, b) => (rises ? 1 : -1) * compare(a[0], b[0]));
    for (const other of heading.parentElement.cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", rises ? "ascending" : "descending");
    table.tBodies[0].append(...rows.map((row) => row[1]));
  }
  function arm(table) {
    [...table.tHead.rows[0].cells].forEach((heading, position) => {
      heading.tabIndex = 0;
      heading.addEventListener("click", () => sort(table, position, heading));
      heading.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(table, position, heading); });
    });
    const rows = [...table.tBodies[0].rows];
    if (rows.length < 12) return;
    const field = document.createElement("input");
    field.type = "search";
    field.placeholder = "filter";
    field.setAttribute("aria-label", "show only rows that contain this");
    field.addEventListener("input", () => {
      const wanted = field.value.toLowerCase();
      for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    });
    table.parentElement.before(field);
  }
  const armAll = () => document.querySelectorAll("table.sortable").forEach(arm);
  armAll();

  // Charts: the data stands in an attribute, uPlot draws it.
  const PALETTE = ["second", "bad", "good", "warn", "faint"];
  function tick(value) {
    if (value === 0) return "0";
    const size = Math.abs(value);
    return size >= 1e5 || size < 1e-3 ? value.toExponential(size < 1e-3 ? 1 : 0) : String(+value.toPrecision(6));
  }
  function axis(of, extra) {
    const names = of.categories;
    const values = (u, splits) => splits.map((v) => (v === null ? "" : names.length
      ? (Number.isInteger(v) ? names[v] || "" : "") : tick(v)));
    return Object.assign({ label: extra.isPlain ? undefined : of.label, stroke: colour("ink"), grid: { stroke: colour("line"), width: 1 },
      ticks: { stroke: colour("line"), width: 1 }, values }, extra);
  }
  // Series on x positions of their own, with bars side by side or on one another.
  function tables(chart) {
    const isBars = chart.kind !== "line" && chart.kind !== "points";
    const isStacked = chart.kind === "stacked bars";
    const count = chart.series.length;
    const steps = chart.series.flatMap((s) => s.x.slice(1).map((x, i) => x - s.x[i])).filter((step) => step > 0);
    const step = steps.length ? Math.min(...steps) : 1;
    const below = new Map();
    return chart.series.flatMap((s, k) => {
      const shift = isBars && !isStacked ? ((k - (count - 1) / 2) * step * 0.8) / count : 0;
      const x = s.x.map((value) => value + shift);
      if (isStacked) return [[x, s.y.map((y, i) => { const sum = (below.get(x[i]) || 0) + (y || 0); below.set(x[i], sum); return sum; })]];
      return s.low && s.high ? [[x, s.y], [x, s.low], [x, s.high]] : [[x, s.y]];
    });
  }
  function series(chart, width) {
    const isBars = chart.kind !== "line" && chart.kind !== "points";
    const share = chart.kind === "bars" ? 0.95 : 0.8;
    const bands = [];
    const found = [{ label: chart.x.label, value: (u, v) => (v == null ? "" : chart.x.categories[v] || tick(v)) }];
    chart.series.forEach((s, k) => {
      const line = colour(PALETTE[k % PALETTE.length]);
      const one = { label: s.name, stroke: line, width: isBars ? 0 : 2, dash: k >= PALETTE.length ? [6, 4] : undefined,
        value: (u, v) => (v == null ? "–" : tick(v)) };
      if (isBars) { one.fill = line; one.paths = uPlot.paths.bars({ size: [share, 60] }); one.points = { show: false }; }
      if (chart.kind === "points" || s.x.length === 1) { one.paths = () => null; one.points = { show: true, size: 5, fill: line }; }
      found.push(one);
      if (!isBars && s.low && s.high) {
        for (const name of ["low", "high"]) found.push({ label: s.name + " " + name, stroke: line, width: 0.5, points: { show: false } });
        bands.push({ series: [found.length - 1, found.length - 2], fill: line + "22" });
      }
    });
    return [found, bands];
  }
  function drawMarks(u, marks) {
    const c = u.ctx;
    const area = u.bbox;
    for (const mark of marks) {
      if (mark.at === null) continue;
      const at = u.valToPos(mark.at, mark.level ? "y" : "x", true);
      c.save();
      c.strokeStyle = c.fillStyle = colour(TONES[mark.tone] || "faint");
      c.setLineDash([5, 4]);
      c.textAlign = "left";
      c.beginPath();
      if (mark.level) { c.moveTo(area.left, at); c.lineTo(area.left + area.width, at); }
      else { c.moveTo(at, area.top); c.lineTo(at, area.top + area.height); }
      c.stroke();
      c.font = 12 * devicePixelRatio + "px system-ui, sans-serif";
      c.fillText(mark.label, mark.level ? area.left + 6 : at + 5, mark.level ? at - 5 : area.top + 14 * devicePixelRatio);
      c.restore();
    }
  }
  function draw(figure) {
    const chart = JSON.parse(figure.dataset.chart);
    const isStacked = chart.kind === "stacked bars";
    const isBars = isStacked || chart.kind === "bars";
    const isSmall = figure.classList.contains("small");
    const parts = tables(chart);
    if (!parts.length) return;
    let [lines, bands] = series(chart);
    let data = uPlot.join(parts);
    if (isStacked) { // the tallest first, so that the lower ones stay visible
      data = [data[0], ...data.slice(1).reverse()];
      lines = [lines[0], ...lines.slice(1).reverse()];
    }
    const levels = chart.marks.filter((mark) => mark.level && mark.at !== null).map((mark) => mark.at);
    const y = chart.y.log ? { distr: 3, range: (u, low, high) => {
        const all = [low, high, ...levels].filter((value) => value > 0);
        if (!all.length) return [0.1, 1];
        const least = Math.min(...all) / (isBars ? 2 : 1), greatest = Math.max(...all);
        return [10 ** Math.floor(Math.log10(least)), 10 ** Math.ceil(Math.log10(greatest) + 1e-9)];
      } } : {
      range: (u, low, high) => {
        const least = Math.min(isBars ? 0 : low, ...levels);
        const greatest = Math.max(high, ...levels);
        const pad = (greatest - least || Math.abs(greatest) || 1) * 0.05;
        return [isBars && least === 0 ? 0 : least - pad, greatest + pad];
      } };
    const x = { time: false, distr: chart.x.log ? 3 : 1 };
    if (isBars && !chart.x.log) x.range = (u, low, high) => [low - 0.7, high + 0.7];
    const names = chart.x.categories.length;
    figure.plot = new uPlot({
      width: figure.clientWidth || 640, height: isSmall ? 150 : 260,
      scales: { x, y }, series: lines, bands,
      axes: [axis(chart.x, isSmall ? { isPlain: true, size: 30 } : names ? { splits: () => chart.x.categories.map((_, i) => i), rotate: names > 8 ? -45 : 0, size: names > 8 ? 110 : 50 } : {}),
        axis(chart.y, { size: isSmall ? 50 : 70, isPlain: isSmall })],
      legend: { show: !isSmall }, hooks: { draw: [(u) => drawMarks(u, chart.marks)] },
    }, data, figure);
  }
  function drawAll() {
    for (const figure of document.querySelectorAll("figure.chart")) {
      if (figure.plot) { figure.plot.destroy(); figure.plot = null; }
      if (figure.offsetParent !== null) draw(figure);
    }
  }
  // A server's page whose content was written anew.
  document.addEventListener("isograd:drawn", () => {
    armAll();
    openTarget();
    if (typeof uPlot !== "undefined") drawAll();
  });
  if (typeof uPlot !== "undefined") {
    drawAll();
    addEventListener("resize", drawAll);
    document.addEventListener("toggle", drawAll, true);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  }
})();
