// Thumbnails: buttons that open the viewer.
const address = (i) => `data:image/webp;base64,${images.thumbnail[i]}`;

function picture(i, alt = "") {
  if (!images.thumbnail[i]) return el("span", { class: "nothing" }, shown(images.name[i]));
  const made = el("img", { alt, decoding: "async", draggable: "false" });
  made.addEventListener("load", () => made.classList.toggle("pixels", made.naturalWidth <= 40));
  made.src = address(i);
  return made;
}

function described(i) {
  const label = images.label ? `, ${classTitle(images.label[i])}` : "";
  return `${plain(images.name[i])}, ${clusterName(images.cluster[i])}, ${sure(images.probability[i])}${label}`;
}

const isOther = (i) => {
  const largest = page.clusters[images.cluster[i]].largest_class;
  return images.label != null && largest != null && images.label[i] >= 0 && images.label[i] !== largest;
};

function tile(i, list, withProbability = false) {
  const made = el("button", { type: "button", class: "tile", "aria-label": described(i), "data-image": i }, picture(i));
  if (isOther(i)) made.append(el("span", { class: "other" }));
  if (withProbability) made.append(el("span", { class: "p" }, sure(images.probability[i])));
  made.addEventListener("click", () => view(i, list));
  return made;
}

function tiles(list, withProbability = false) {
  return el("div", { class: "tiles" }, ...list.map((i) => tile(i, list, withProbability)));
}
