// The galleries, a row a cluster. A row's images are drawn when it comes near the window.
const gallery = { view: "overview", open: new Set(), drawn: new Set(), order: page.clusters.map((c) => c.number) };
const BY = {
  typical: (a, b) => images.typical[b] - images.typical[a],
  doubt: (a, b) => images.probability[a] - images.probability[b],
};
const AT_ONCE = 120; // more on request

function ordered(k, view) {
  const list = members[k].filter(inRange);
  return view === "random" ? shuffled(list) : list.sort(BY[view]);
}

function columns(width) {
  const style = getComputedStyle(document.documentElement);
  return Math.max(1, Math.floor((width + 4) / (parseFloat(style.getPropertyValue("--tile")) + 4)));
}

function drawRow(k) {
  const body = $(`cluster-${k}`).querySelector(".body");
  gallery.drawn.add(k);
  const view = gallery.view;
  const list = ordered(k, view === "overview" ? "typical" : view);
  const said = $(`cluster-${k}`).querySelector(".more");
  if (!list.length) {
    const why = members[k].length ? "No image in this range of confidence." : "No image.";
    body.replaceChildren(el("p", { class: "none" }, why));
    said.hidden = true;
    return;
  }
  const narrow = innerWidth <= 640;
  const across = columns(body.clientWidth - (view === "overview" && !narrow ? 260 : 0));
  const most = gallery.open.has(k) ? gallery.limit?.get(k) ?? AT_ONCE : across * 2;
  said.hidden = list.length <= across * 2 && view !== "overview";
  said.textContent = gallery.open.has(k) ? "Show fewer" : `Show all ${number(list.length)}`;
  said.setAttribute("aria-expanded", gallery.open.has(k));
  if (view === "overview" && !gallery.open.has(k)) {
    const doubt = ordered(k, "doubt");
    body.replaceChildren(el("div", { class: "views" },
      el("div", { class: "part" }, el("p", {}, "most typical"), some(list, most)),
      el("div", { class: "part doubt" }, el("p", {}, "least certain"), some(doubt, narrow ? across : 6, true))));
    return;
  }
  body.replaceChildren(some(list, most, view !== "typical" && view !== "overview"));
  if (gallery.open.has(k) && list.length > most) {
    const more = el("button", { type: "button" }, `${number(Math.min(AT_ONCE, list.length - most))} more`);
    more.addEventListener("click", () => { gallery.limit.set(k, most + AT_ONCE); drawRow(k); });
    body.append(el("p", {}, more));
  }
}
gallery.limit = new Map();

function some(list, most, withProbability = false) {
  return el("div", { class: "tiles" }, ...list.slice(0, most).map((i) => tile(i, list, withProbability)));
}

function clusterRow(c) {
  const k = c.number;
  const name = el("h3", { id: `title-${k}` }, dot(clusterColour(k)), clusterName(k));
  const meta = el("span", { class: "meta" }, [
    c.name ? `cluster ${k}` : null,
    images_(c.size),
    percent(c.size / Math.max(1, page.summary.n_readable), 1),
    c.size ? `confidence ${sure(c.confidence)}` : null,
    c.largest_class != null ? `${percent(c.share)} ${classTitle(c.largest_class)}` : null,
  ].filter(Boolean).join(" · "));
  const near = c.nearest.slice(0, 3);
  if (near.length) {
    meta.append(" · near ");
    near.forEach((n, i) => meta.append(i ? ", " : "", el("a", { href: `#cluster-${n.cluster}` }, clusterShort(n.cluster))));
  }
  const more = el("button", { type: "button", class: "link more", hidden: true, "aria-expanded": "false" });
  more.addEventListener("click", () => {
    gallery.open.has(k) ? gallery.open.delete(k) : gallery.open.add(k);
    gallery.limit.delete(k);
    drawRow(k);
  });
  const body = el("div", { class: "body" }, el("div", { class: "tiles" }));
  if (c.size) body.style.minHeight = "176px";
  return el("article", { class: "cluster", id: `cluster-${k}`, "data-cluster": k, "aria-labelledby": `title-${k}` },
    el("header", {}, name, meta, more), body);
}

function redraw() {
  const wanted = [...gallery.drawn];
  gallery.drawn.clear();
  for (const k of wanted) {
    const box = $(`cluster-${k}`).getBoundingClientRect();
    if (box.bottom > -800 && box.top < innerHeight + 800) drawRow(k);
    else { watch.unobserve($(`cluster-${k}`)); watch.observe($(`cluster-${k}`)); }
  }
}

function indexTitle(c) {
  if (!c.name && c.largest_class == null) return [clusterName(c.number)];
  return [el("span", { class: "no" }, String(c.number)), c.name ? clusterName(c.number) : classTitle(c.largest_class)];
}

function indexEntry(c) {
  const link = el("a", { href: `#cluster-${c.number}` }, dot(clusterColour(c.number)),
    el("span", { class: "label" }, ...indexTitle(c)),
    el("span", { class: "n" }, number(c.size)));
  return el("li", { "data-cluster": c.number }, link);
}

const watch = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    const k = Number(entry.target.dataset.cluster);
    if (entry.isIntersecting && !gallery.drawn.has(k)) drawRow(k);
  }
}, { rootMargin: "600px 0px" });

function sortClusters(how) {
  const c = page.clusters;
  const keys = { number: (k) => k, size: (k) => -c[k].size, confidence: (k) => (c[k].size ? c[k].confidence : 2), mixed: (k) => (c[k].size ? c[k].share : 2) };
  gallery.order.sort((a, b) => keys[how](a) - keys[how](b) || a - b);
  $("rows").append(...gallery.order.map((k) => $(`cluster-${k}`)));
  const entries = new Map([...$("index").children].map((entry) => [Number(entry.dataset.cluster), entry]));
  $("index").append(...gallery.order.map((k) => entries.get(k)));
}

function find(text) {
  const wanted = text.trim().toLowerCase();
  let found = 0;
  for (const c of page.clusters) {
    const texts = [`cluster ${c.number}`, c.name ?? "", c.largest_class != null ? className(c.largest_class) : ""];
    const hit = !wanted || (/^\d+$/.test(wanted) ? String(c.number) === wanted : texts.some((t) => t.toLowerCase().includes(wanted)));
    found += hit;
    $(`cluster-${c.number}`).hidden = !hit;
    $("index").querySelector(`[data-cluster="${c.number}"]`).hidden = !hit;
  }
  $("no-cluster").hidden = found > 0;
}

function setRange() {
  const [low, high] = [Number($("low").value), Number($("high").value)];
  range.low = Math.min(low, high) / 100;
  range.high = high >= 100 || low >= 100 ? 1 : Math.max(low, high) / 100;
  const within = images.probability.reduce((n, _, i) => n + inRange(i), 0);
  $("range-said").textContent = `${Math.min(low, high)}–${Math.max(low, high)}%, ${images_(within)}`;
  redraw();
  range.listeners.forEach((listener) => listener());
}

(() => {
  if (images.label) {
    $("rows").append(el("p", { class: "legend" }, el("i"), "of another class than most of its cluster"));
  }
  $("rows").append(el("p", { class: "none", id: "no-cluster", hidden: true }, "No cluster of that number or name."));
  $("rows").append(...page.clusters.map(clusterRow));
  $("index").append(...page.clusters.map(indexEntry));
  page.clusters.forEach((c) => watch.observe($(`cluster-${c.number}`)));
  for (const button of document.querySelectorAll("[data-view]")) {
    button.addEventListener("click", () => {
      document.querySelectorAll("[data-view]").forEach((b) => b.setAttribute("aria-pressed", b === button));
      gallery.view = button.dataset.view;
      gallery.open.clear();
      redraw();
    });
  }
  $("sort").addEventListener("change", (event) => sortClusters(event.target.value));
  $("find").addEventListener("input", (event) => find(event.target.value));
  $("low").addEventListener("input", setRange);
  $("high").addEventListener("input", setRange);
  setRange();
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; redraw(); } });
})();
