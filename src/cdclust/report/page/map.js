// The map of all images shown. Dots or images on a canvas; it moves by mouse, touch and keys.
const atlas = { scale: 1, x: 0.5, y: 0.5, colour: "cluster", draw: "dots", only: null, hover: -1, pictures: new Map(), pending: false };
const KEPT_PICTURES = 1500;

function drawLater() {
  if (atlas.pending || !$("map-canvas")) return;
  atlas.pending = true;
  requestAnimationFrame(() => { atlas.pending = false; drawMap(); });
}

function toScreen(i) {
  const { side, width, height } = atlas;
  return [width / 2 + (images.x[i] - atlas.x) * atlas.across * atlas.scale, height / 2 + (images.y[i] - atlas.y) * side * atlas.scale];
}

// Blue-violet where the model is unsure, yellow-green where it is sure; readable on both grounds.
function ramp(p) {
  return `hsl(${(265 - 175 * p).toFixed(0)} ${(45 + 15 * p).toFixed(0)}% ${(42 + 10 * p).toFixed(0)}%)`;
}

function pointColour(i) {
  if (atlas.colour === "confidence") return ramp(Math.round(images.probability[i] * 20) / 20);
  if (atlas.colour === "class") return colour(images.label[i], page.labels.classes.length);
  return clusterColour(images.cluster[i]);
}

const groupOf = (i) => (atlas.colour === "class" ? images.label[i] : images.cluster[i]);
const lit = (i) => inRange(i) && (atlas.only == null || atlas.colour === "confidence" || groupOf(i) === atlas.only);

function drawMap() {
  const canvas = $("map-canvas");
  const ratio = devicePixelRatio || 1;
  atlas.width = canvas.clientWidth;
  atlas.height = canvas.clientHeight;
  atlas.side = Math.min(atlas.height * 0.94, atlas.width * 1.4);
  atlas.across = Math.min(atlas.width * 0.94, atlas.side * 1.5); // its axes have no meaning, so it may fill a wide frame
  canvas.width = Math.round(atlas.width * ratio);
  canvas.height = Math.round(atlas.height * ratio);
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  const style = getComputedStyle(document.documentElement);
  atlas.ink = style.getPropertyValue("--ink");
  atlas.ground = style.getPropertyValue("--panel");
  const seen = [];
  for (let i = 0; i < count; i++) {
    const [x, y] = toScreen(i);
    if (x > -40 && y > -40 && x < atlas.width + 40 && y < atlas.height + 40) seen.push([i, x, y]);
  }
  const radius = Math.max(1.6, Math.min(6, (count > 4000 ? 1.9 : count > 1500 ? 2.6 : 3.4) * Math.sqrt(atlas.scale)));
  drawDots(pen, seen, radius);
  if (atlas.draw === "images") drawPictures(pen, seen);
  if (atlas.draw === "dots") drawNames(pen);
  drawCursor(pen, radius);
  atlas.seen = seen;
}

function drawDots(pen, seen, radius) {
  pen.globalAlpha = 0.12;
  pen.fillStyle = atlas.ink;
  for (const [i, x, y] of seen) if (!lit(i)) disc(pen, x, y, radius);
  pen.globalAlpha = atlas.draw === "images" ? 0.35 : 0.82;
  const by = new Map();
  for (const point of seen) {
    if (!lit(point[0])) continue;
    const fill = pointColour(point[0]);
    if (!by.has(fill)) by.set(fill, []);
    by.get(fill).push(point);
  }
  for (const [fill, points] of by) {
    pen.fillStyle = fill;
    for (const [, x, y] of points) disc(pen, x, y, radius);
  }
  pen.globalAlpha = 1;
}

function disc(pen, x, y, radius) {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 7);
  pen.fill();
}

// As many images as fit without covering each other; more of them come when the map is made larger.
function drawPictures(pen, seen) {
  const side = Math.min(80, 30 + 8 * Math.log2(atlas.scale + 1));
  const taken = [];
  const typicalFirst = seen.filter(([i]) => lit(i) && images.thumbnail[i]).sort((a, b) => images.typical[b[0]] - images.typical[a[0]]);
  for (const [i, x, y] of typicalFirst) {
    if (taken.some(([ox, oy]) => Math.abs(ox - x) < side && Math.abs(oy - y) < side)) continue;
    taken.push([x, y]);
    const loaded = pictureFor(i);
    if (!loaded) continue;
    pen.drawImage(loaded, x - side / 2 + 1, y - side / 2 + 1, side - 2, side - 2);
    pen.strokeStyle = pointColour(i);
    pen.lineWidth = 2;
    pen.strokeRect(x - side / 2 + 1, y - side / 2 + 1, side - 2, side - 2);
  }
}

function pictureFor(i) {
  let kept = atlas.pictures.get(i);
  if (!kept) {
    if (atlas.pictures.size > KEPT_PICTURES) atlas.pictures.delete(atlas.pictures.keys().next().value);
    kept = new Image();
    kept.onload = drawLater;
    kept.src = address(i);
    atlas.pictures.set(i, kept);
  }
  return kept.complete && kept.naturalWidth ? kept : null;
}

// Names where each group's middle lies; those that would cover another wait until the map is larger.
function middles() {
  const groups = new Map();
  for (let i = 0; i < count; i++) {
    const k = groupOf(i);
    if (k < 0) continue;
    if (!groups.has(k)) groups.set(k, [[], []]);
    groups.get(k)[0].push(images.x[i]);
    groups.get(k)[1].push(images.y[i]);
  }
  const middle = (list) => list.sort((a, b) => a - b)[list.length >> 1];
  return [...groups].map(([k, [x, y]]) => ({ k, n: x.length, x: middle(x), y: middle(y) })).sort((a, b) => b.n - a.n);
}

function drawNames(pen) {
  if (atlas.colour === "confidence") return;
  if (atlas.named !== atlas.colour) { atlas.middles = middles(); atlas.named = atlas.colour; }
  pen.font = "600 12.5px system-ui, sans-serif";
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  const placed = [];
  for (const group of atlas.middles) {
    if (atlas.only != null && atlas.only !== group.k) continue;
    const text = shortened(atlas.colour === "class" ? className(group.k) : clusterShort(group.k));
    const x = atlas.width / 2 + (group.x - atlas.x) * atlas.across * atlas.scale;
    const y = atlas.height / 2 + (group.y - atlas.y) * atlas.side * atlas.scale;
    const half = pen.measureText(text).width / 2 + 6;
    if (placed.some((p) => Math.abs(p.x - x) < p.half + half && Math.abs(p.y - y) < 20)) continue;
    placed.push({ x, y, half });
    pen.fillStyle = atlas.ground;
    pen.globalAlpha = 0.86;
    pen.beginPath();
    pen.roundRect(x - half, y - 10, 2 * half, 20, 4);
    pen.fill();
    pen.globalAlpha = 1;
    pen.fillStyle = atlas.ink;
    pen.fillText(text, x, y + 0.5);
  }
}

const shortened = (text) => (text.length > 22 ? text.slice(0, 21) + "…" : text);

function drawCursor(pen, radius) {
  if (atlas.hover >= 0) {
    const [x, y] = toScreen(atlas.hover);
    pen.strokeStyle = atlas.ink;
    pen.lineWidth = 2;
    pen.beginPath();
    pen.arc(x, y, radius + 3, 0, 7);
    pen.stroke();
  }
  if (atlas.keys) {
    const [x, y] = [atlas.width / 2, atlas.height / 2];
    pen.strokeStyle = atlas.ink;
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(x - 9, y); pen.lineTo(x + 9, y); pen.moveTo(x, y - 9); pen.lineTo(x, y + 9);
    pen.stroke();
  }
}

function nearestTo(x, y, within) {
  let best = -1;
  let least = within * within;
  for (const [i, px, py] of atlas.seen ?? []) {
    const d = (px - x) ** 2 + (py - y) ** 2;
    if (d < least && lit(i)) { least = d; best = i; }
  }
  return best;
}

function hoverOver(i, x, y) {
  const card = $("map-card");
  if (i !== atlas.hover) {
    atlas.hover = i;
    if (i >= 0) {
      const lines = [
        el("p", {}, el("b", {}, clusterName(images.cluster[i])), `, ${sure(images.probability[i])}`),
        images.label ? el("p", {}, className(images.label[i])) : null,
        el("p", { class: "path" }, shown(images.name[i])),
      ];
      card.replaceChildren(...[images.thumbnail[i] ? picture(i) : null, ...lines].filter(Boolean));
    }
    card.hidden = i < 0;
    drawLater();
  }
  if (i >= 0) {
    card.style.left = `${Math.max(4, x + 196 > atlas.width ? x - 192 : x + 16)}px`;
    card.style.top = `${Math.max(4, Math.min(y - 40, atlas.height - card.offsetHeight - 8))}px`;
  }
}

function drawKey() {
  const list = $("map-key");
  if (atlas.colour === "confidence") {
    const strip = el("canvas", { width: 160, height: 1, "aria-hidden": "true" });
    const pen = strip.getContext("2d");
    for (let x = 0; x < 160; x++) { pen.fillStyle = ramp(x / 160); pen.fillRect(x, 0, 1, 1); }
    list.replaceChildren(el("li", { class: "ramp" }, "0%", strip, "100%"));
    return;
  }
  const byClass = atlas.colour === "class";
  const n = byClass ? page.labels.classes.length : page.clusters.length;
  const entries = [...Array(n).keys()].filter((k) => byClass || page.clusters[k].size).map((k) => {
    const button = el("button", { type: "button", "aria-pressed": "false" }, dot(colour(k, n)), byClass ? className(k) : clusterShort(k));
    button.addEventListener("click", () => {
      atlas.only = atlas.only === k ? null : k;
      list.querySelectorAll("button").forEach((b) => b.setAttribute("aria-pressed", b === button && atlas.only === k));
      drawLater();
    });
    return el("li", {}, button);
  });
  list.replaceChildren(...entries);
}

if ($("map-canvas")) (() => {
  const canvas = $("map-canvas");
  const { n_shown: n, n_readable: all } = page.summary;
  $("map-lead").textContent = (n < all
    ? `${number(n)} of ${number(all)} images: each cluster's most typical and least certain, and others drawn at random. `
    : `All ${number(n)} images. `) + "Images that the model finds alike lie near each other (t-SNE of its features); distances across the map mean little. Click the map, then scroll to zoom.";
  listenToPointers(canvas);
  listenToKeys(canvas);
  $("map-colour").addEventListener("change", (event) => { atlas.colour = event.target.value; atlas.only = null; drawKey(); drawLater(); });
  for (const button of document.querySelectorAll("[data-draw]")) {
    button.addEventListener("click", () => {
      document.querySelectorAll("[data-draw]").forEach((b) => b.setAttribute("aria-pressed", b === button));
      atlas.draw = button.dataset.draw;
      drawLater();
    });
  }
  $("map-in").addEventListener("click", () => zoom(1.6));
  $("map-out").addEventListener("click", () => zoom(1 / 1.6));
  $("map-reset").addEventListener("click", () => { atlas.scale = 1; moved(); });
  range.listeners.push(drawLater);
  addEventListener("themechange", drawLater);
  drawKey();
  new ResizeObserver(drawLater).observe(canvas);
})();
