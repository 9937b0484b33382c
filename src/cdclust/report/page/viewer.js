// One image, enlarged, with what is known of it; the arrow keys go through the list it was opened from.
const viewer = { list: [], at: 0, from: null };

function view(i, list) {
  viewer.list = list;
  viewer.at = list.indexOf(i);
  const before = document.activeElement;
  drawViewer();
  if ($("viewer").open) return;
  viewer.from = before;
  $("viewer").showModal();
  $("viewer-close").focus();
}

function drawViewer() {
  const i = viewer.list[viewer.at];
  $("viewer-picture").replaceChildren(picture(i, plain(images.name[i])));
  $("viewer-name").replaceChildren(shown(images.name[i]));
  $("viewer-place").textContent = `${number(viewer.at + 1)} of ${number(viewer.list.length)}`;
  $("viewer-previous").disabled = viewer.at === 0;
  $("viewer-next").disabled = viewer.at === viewer.list.length - 1;
  const rows = [
    ["Cluster", clusterLink(images.cluster[i]), images.probability[i]],
    ["Second choice", clusterLink(images.second[i]), images.second_probability[i]],
  ].map(([title, what, p]) => el("tr", {}, el("th", { scope: "row" }, title), el("td", {}, what), el("td", {}, meter(p), sure(p))));
  const body = el("tbody", {}, ...rows);
  if (images.label) {
    const wrong = isOther(i) ? "another class than most of this cluster" : "";
    body.append(el("tr", {}, el("th", { scope: "row" }, "Class"), el("td", {}, className(images.label[i])), el("td", {}, wrong)));
  }
  $("viewer-facts").replaceChildren(el("table", {}, body));
  const near = images.near[i] ?? [];
  $("viewer-near").replaceChildren(...near.map((j) => tile(j, near)));
}

function clusterLink(k) {
  const link = el("a", { href: `#cluster-${k}` }, clusterName(k));
  link.addEventListener("click", () => { viewer.from = null; $("viewer").close(); });
  return link;
}

function step(by) {
  const to = viewer.at + by;
  if (to < 0 || to >= viewer.list.length) return;
  viewer.at = to;
  drawViewer();
}

$("viewer-previous").addEventListener("click", () => step(-1));
$("viewer-next").addEventListener("click", () => step(1));
$("viewer-close").addEventListener("click", () => $("viewer").close());
$("viewer").addEventListener("click", (event) => { if (event.target === $("viewer")) $("viewer").close(); });
$("viewer").addEventListener("close", () => viewer.from?.focus());
document.addEventListener("keydown", (event) => {
  if (!$("viewer").open) return;
  if (event.key === "ArrowLeft") step(-1);
  else if (event.key === "ArrowRight") step(1);
  else return;
  event.preventDefault();
});
