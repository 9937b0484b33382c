// How the map is moved: by mouse, touch and keys.
function zoom(by, x = atlas.width / 2, y = atlas.height / 2) {
  const to = Math.min(80, Math.max(1, atlas.scale * by));
  const [dx, dy] = [x - atlas.width / 2, y - atlas.height / 2];
  atlas.x += dx / atlas.across * (1 / atlas.scale - 1 / to);
  atlas.y += dy / atlas.side * (1 / atlas.scale - 1 / to);
  atlas.scale = to;
  moved();
}

function moved() {
  if (atlas.scale <= 1) atlas.x = atlas.y = 0.5;
  atlas.x = Math.min(1, Math.max(0, atlas.x));
  atlas.y = Math.min(1, Math.max(0, atlas.y));
  $("map-canvas").style.touchAction = atlas.scale > 1 ? "none" : "pan-x pan-y";
  $("map-said").textContent = atlas.scale > 1 ? `${figure(atlas.scale)} times` : "";
  drawLater();
}

function pan(dx, dy) {
  atlas.x -= dx / (atlas.across * atlas.scale);
  atlas.y -= dy / (atlas.side * atlas.scale);
  moved();
}

function openAt(i, x, y) {
  if (i < 0) return;
  const around = (atlas.seen ?? []).filter(([j]) => lit(j)).map(([j, px, py]) => [j, (px - x) ** 2 + (py - y) ** 2]);
  around.sort((a, b) => a[1] - b[1]);
  view(i, [i, ...around.slice(0, 60).map(([j]) => j).filter((j) => j !== i)]);
}

function listenToPointers(canvas) {
  const down = new Map();
  let start = null;
  const at = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  canvas.addEventListener("pointerdown", (event) => {
    down.set(event.pointerId, at(event));
    start = at(event);
    atlas.keys = false;
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = at(event);
    const before = down.get(event.pointerId);
    if (!before) { hoverOver(nearestTo(x, y, 14), x, y); return; }
    if (down.size === 2) {
      const [other] = [...down].filter(([id]) => id !== event.pointerId).map(([, p]) => p);
      const [was, is] = [Math.hypot(before[0] - other[0], before[1] - other[1]), Math.hypot(x - other[0], y - other[1])];
      if (was > 0) zoom(is / was, (x + other[0]) / 2, (y + other[1]) / 2);
    } else if (atlas.scale > 1) {
      canvas.classList.add("moving");
      pan(x - before[0], y - before[1]);
    }
    down.set(event.pointerId, [x, y]);
  });
  const up = (event) => {
    const [x, y] = at(event);
    const single = down.size === 1;
    down.delete(event.pointerId);
    canvas.classList.remove("moving");
    if (event.type === "pointerup" && single && start && Math.hypot(x - start[0], y - start[1]) < 5) openAt(nearestTo(x, y, 20), x, y);
  };
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("pointerleave", () => hoverOver(-1));
  canvas.addEventListener("wheel", (event) => {
    if (document.activeElement !== canvas && !event.ctrlKey) return; // the page scrolls until the map is chosen
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 300), ...at(event));
  }, { passive: false });
  canvas.addEventListener("dblclick", (event) => zoom(2, ...at(event)));
}

function listenToKeys(canvas) {
  const moves = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
  canvas.addEventListener("keydown", (event) => {
    atlas.keys = true;
    const middle = [atlas.width / 2, atlas.height / 2];
    if (moves[event.key]) pan(...moves[event.key]);
    else if (event.key === "+" || event.key === "=") zoom(1.4);
    else if (event.key === "-") zoom(1 / 1.4);
    else if (event.key === "0" || event.key === "Escape") { atlas.scale = 1; moved(); }
    else if (event.key === "Enter" || event.key === " ") openAt(nearestTo(...middle, 1e4), ...middle);
    else return;
    event.preventDefault();
  });
  canvas.addEventListener("blur", () => { atlas.keys = false; drawLater(); });
}
