// The top of the page, what may not belong, and how the run was made.
(() => {
  const s = page.summary;
  $("headline").append(`${images_(s.n_images)} of `, shown(s.source), ` in ${number(s.n_nonempty)} cluster${s.n_nonempty === 1 ? "" : "s"}`);
  const entry = (name, value, title) => el("div", title ? { title } : {}, el("dt", {}, name), el("dd", {}, value));
  $("figures").append(
    entry("mean confidence", sure(s.confidence), "mean probability of the chosen cluster"),
    entry("surer than 90%", percent(s.sure), "share of images"),
    ...Object.entries(s.scores).map(([name, value]) => entry(name.toUpperCase(), value.toFixed(3))),
    ...(s.n_images > s.n_readable ? [entry("unreadable", number(s.n_images - s.n_readable))] : []));
  if (s.scored) $("figures").append(el("div", { class: "said" }, el("dt", {}, `ACC, NMI and ARI: ${s.scored}.`), el("dd", { class: "hidden" }, "Labels were only ever used to report.")));
  const faces = page.clusters.filter((c) => members[c.number].length).map((c) => {
    const best = members[c.number].reduce((a, b) => (images.typical[b] > images.typical[a] ? b : a));
    const link = el("a", { href: `#cluster-${c.number}`, "aria-label": `${clusterName(c.number)}, ${images_(c.size)}`, title: `${clusterName(c.number)}${c.largest_class == null ? "" : `, ${classTitle(c.largest_class)}`}` }, picture(best));
    if (page.clusters.length <= 100) link.append(el("span", { class: "p" }, shortened(clusterShort(c.number))));
    return el("li", {}, link);
  });
  $("faces").append(...faces);
  $("faces").classList.toggle("few", faces.length < 8);
  $("faces").classList.toggle("some", faces.length > 12);
  $("faces").classList.toggle("many", faces.length > 100);
  if (!images.thumbnail.some(Boolean)) $("faces").remove();
  const notices = $("notices");
  notices.append(...s.notices.map((n) => el("li", { class: n.kind }, shown(n.text, "span"))));
  notices.hidden = !s.notices.length;

  const o = page.oddities;
  $("outliers").append(...o.outliers.map((i) => tile(i, o.outliers)));
  if (!o.outliers.length) $("outliers").replaceWith(el("p", { class: "none" }, "Too few images to tell."));
  $("duplicates-lead").textContent = o.duplicates.length
    ? "Pairs that are each other's nearest and look the same in small, most alike first."
    : "No two of the images shown look the same.";
  $("duplicates").append(...o.duplicates.map((p) => el("li", {},
    el("p", { class: "said" }, `similarity ${p.similarity.toFixed(3)}${p.same_cluster ? "" : ", in different clusters"}`), tiles([p.first, p.second]))));
  if (o.n_unreadable) {
    const rows = o.unreadable.map(([name, reason]) => el("tr", {}, el("td", { class: "name" }, shown(name)), el("td", { class: "name" }, shown(reason, "span"))));
    const rest = o.n_unreadable > rows.length ? `The first ${number(rows.length)} of ${number(o.n_unreadable)}; assignments.csv has them all.` : "They have no cluster.";
    $("unreadable").append(el("h3", {}, "Files that could not be read"), el("p", { class: "lead" }, rest),
      el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Files that could not be read" }, el("table", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "file"), el("th", { scope: "col" }, "reason"))), el("tbody", {}, ...rows))));
  }
  for (const [name, value] of page.about) $("about").append(el("dt", {}, name), el("dd", {}, shown(value, "span")));
})();
