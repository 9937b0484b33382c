// Small charts, each with its figures as a table for those who would rather read.
function chart(title, meaning, drawing, heads, rows) {
  const table = el("table", {},
    el("thead", {}, el("tr", {}, ...heads.map((h) => el("th", { scope: "col" }, h)))),
    el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((cell) => el("td", {}, String(cell)))))));
  const details = el("details", {}, el("summary", {}, "Figures"));
  details.addEventListener("toggle", () => { if (details.open && !details.querySelector("table")) details.append(el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": title }, table)); });
  return [el("figcaption", {}, el("b", {}, title), meaning ? `, ${meaning}` : ""), drawing, details];
}

function ticks(low, high, most = 4) {
  if (!(high > low)) return [low];
  const rough = (high - low) / most;
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * size).find((s) => s >= rough);
  const found = [];
  for (let t = Math.ceil(low / step - 1e-9) * step; t <= high + step * 1e-9; t += step) found.push(+t.toPrecision(12));
  return found;
}

// Bars over a shared base line; `bars` have a height, a title, and perhaps a colour.
function barChart(label, bars, { height = 180, width = 560, unit = number, fair = null, fairSaid = "", left = 44, names = [], onpick = null }) {
  const top = Math.max(1, fair ?? 0, ...bars.map((b) => b.value));
  const box = svg("svg", { viewBox: `0 0 ${width} ${height + 24}`, role: "img", "aria-label": label });
  const y = (v) => height - (v / top) * (height - 14);
  for (const t of ticks(0, top)) {
    box.append(svg("line", { x1: left, x2: width, y1: y(t), y2: y(t), class: "axis" }), svg("text", { x: left - 8, y: y(t) + 4, "text-anchor": "end" }, unit(t)));
  }
  const each = (width - left) / bars.length;
  const gap = each > 12 ? 3 : each > 5 ? 1 : 0;
  bars.forEach((bar, i) => {
    const mark = svg("rect", { x: left + i * each + gap / 2, y: y(bar.value), width: Math.max(0.5, each - gap), height: Math.max(0, height - y(bar.value)), class: "fill" }, svg("title", {}, bar.title));
    if (bar.fill) mark.style.fill = bar.fill;
    if (onpick) { mark.style.cursor = "pointer"; mark.addEventListener("click", () => onpick(i)); }
    box.append(mark);
  });
  names.forEach(({ at, text }) => box.append(svg("text", { x: left + at * (width - left), y: height + 17, "text-anchor": at === 0 ? "start" : at === 1 ? "end" : "middle" }, text)));
  if (fair != null) {
    box.append(svg("line", { x1: left, x2: width, y1: y(fair), y2: y(fair), class: "fair" }));
    box.append(svg("text", { x: width, y: y(fair) - 5, "text-anchor": "end" }, fairSaid));
  }
  return box;
}

function lineChart(label, xs, ys, { width = 300, height = 120 } = {}) {
  const left = 44;
  let [low, high] = [Math.min(...ys), Math.max(...ys)];
  if (high - low < 1e-9 * Math.max(1, Math.abs(high))) { low -= Math.abs(low) * 0.1 || 0.1; high += Math.abs(high) * 0.1 || 0.1; }
  const [first, last] = [xs[0], xs[xs.length - 1]];
  const x = (v) => left + (last > first ? (v - first) / (last - first) : 0.5) * (width - left - 8);
  const y = (v) => height - 8 - ((v - low) / (high - low)) * (height - 30);
  const box = svg("svg", { viewBox: `0 0 ${width} ${height + 22}`, role: "img", "aria-label": label });
  for (const t of ticks(low, high, 4)) box.append(svg("line", { x1: left, x2: width, y1: y(t), y2: y(t), class: "axis" }), svg("text", { x: left - 8, y: y(t) + 4, "text-anchor": "end" }, figure(t)));
  box.append(svg("text", { x: left, y: height + 16 }, figure(first)), svg("text", { x: width - 8, y: height + 16, "text-anchor": "end" }, `epoch ${figure(last)}`));
  box.append(svg("path", { class: "curve", d: xs.map((v, i) => `${i ? "L" : "M"}${x(v).toFixed(1)} ${y(ys[i]).toFixed(1)}`).join("") }));
  const at = svg("circle", { r: 3.5, class: "at", cx: x(last), cy: y(ys[ys.length - 1]) });
  const said = svg("text", { x: width - 8, y: 10, "text-anchor": "end", class: "value" }, figure(ys[ys.length - 1]));
  box.append(at, said);
  const show = (i) => { at.setAttribute("cx", x(xs[i])); at.setAttribute("cy", y(ys[i])); said.textContent = i === xs.length - 1 ? figure(ys[i]) : `${figure(ys[i])} at ${figure(xs[i])}`; };
  box.addEventListener("pointermove", (event) => {
    const frame = box.getBoundingClientRect();
    const here = ((event.clientX - frame.left) / frame.width) * width;
    let best = 0;
    xs.forEach((v, i) => { if (Math.abs(x(v) - here) < Math.abs(x(xs[best]) - here)) best = i; });
    show(best);
  });
  box.addEventListener("pointerleave", () => show(xs.length - 1));
  return box;
}

(() => {
  const bySize = [...page.clusters].sort((a, b) => b.size - a.size || a.number - b.number);
  const fair = page.summary.n_readable / page.clusters.length;
  const few = bySize.length <= 24;
  $("sizes").append(...chart("Cluster sizes", "largest first", barChart(
    `Sizes of ${bySize.length} clusters, from ${number(bySize[0].size)} to ${number(bySize[bySize.length - 1].size)} images; the equal share is ${figure(fair)}`,
    bySize.map((c) => ({ value: c.size, title: `${clusterName(c.number)}: ${images_(c.size)}` })),
    { fair, fairSaid: `equal share ${figure(fair)}`, names: few ? bySize.map((c, i) => ({ at: (i + 0.5) / bySize.length, text: shortened(clusterShort(c.number)).slice(0, 6) })) : [{ at: 0, text: "largest" }, { at: 1, text: "smallest" }], onpick: (i) => { location.hash = `cluster-${bySize[i].number}`; } },
  ), ["cluster", "images"], bySize.map((c) => [clusterName(c.number), number(c.size)])));

  const { edges, counts } = page.confidence;
  const span = (i) => `${percent(edges[i])} to ${percent(edges[i + 1])}`;
  $("histogram").append(...chart("Confidence", "probability of the chosen cluster; click a bar to see its images", barChart(
    `Histogram of the confidence of ${number(page.summary.n_readable)} images; the mean is ${sure(page.summary.confidence)}`,
    counts.map((n, i) => ({ value: n, title: `${span(i)}: ${images_(n)}` })),
    { names: [0, 0.25, 0.5, 0.75, 1].map((at) => ({ at, text: `${100 * at}%` })), onpick: (i) => {
      $("low").value = 100 * edges[i]; $("high").value = 100 * edges[i + 1];
      setRange(); location.hash = "clusters";
    } },
  ), ["confidence", "images"], counts.map((n, i) => [span(i), number(n)])));

  for (const c of page.curves) {
    const last = c.values[c.values.length - 1];
    $("curves").append(el("figure", {}, ...chart(c.title, c.meaning,
      lineChart(`${c.title} over epochs, ${figure(last)} at the end`, c.epochs, c.values),
      ["epoch", c.title.toLowerCase()], c.epochs.map((e, i) => [figure(e), figure(c.values[i])]))));
  }

  const pairs = [];
  for (const c of page.clusters) for (const n of c.nearest) if (c.number < n.cluster || !page.clusters[n.cluster].nearest.some((m) => m.cluster === c.number)) {
    const back = page.clusters[n.cluster].nearest.find((m) => m.cluster === c.number);
    pairs.push({ a: c.number, b: n.cluster, similarity: n.similarity, second: n.second_choice + (back?.second_choice ?? 0) });
  }
  pairs.sort((a, b) => b.similarity - a.similarity);
  const top = (k) => [...members[k]].sort(BY.typical).slice(0, 3);
  const name = (k) => el("a", { href: `#cluster-${k}` }, clusterName(k));
  $("nearest").append(...pairs.slice(0, 9).map((p) => el("li", {},
    el("p", { class: "said" }, name(p.a), " and ", name(p.b), `: similarity ${p.similarity.toFixed(2)}, ${number(p.second)} with the other as second choice`),
    el("div", { class: "sides" }, tiles(top(p.a)), tiles(top(p.b))))));
  if (!pairs.length) $("nearest").append(el("li", { class: "none" }, "There is one cluster alone."));
})();
