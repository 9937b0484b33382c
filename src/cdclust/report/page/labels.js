// Clusters against labels: the matrix, the most common confusions with their images, a row a class.
if ($("labels")) (() => {
  const L = page.labels;
  $("labels-lead").textContent = `Each cluster is matched to one class so that most images agree: ${percent(L.accuracy, 1)} of ${number(L.n_labelled)} images. ${L.about} Labels were never used to train or to choose anything.`;

  const totals = L.matrix.map((row) => Math.max(1, row.reduce((a, b) => a + b, 0)));
  const columnName = (j) => (L.columns[j] == null ? "no cluster" : clusterName(L.columns[j]));
  const cell = { i: 0, j: 0 };

  function imagesOf(i, j) {
    const found = [];
    for (let n = 0; n < count; n++) if (images.label[n] === i && images.cluster[n] === L.columns[j]) found.push(n);
    return found.sort((a, b) => images.probability[b] - images.probability[a]);
  }

  function showCell(i, j) {
    const found = imagesOf(i, j);
    const n = L.matrix[i][j];
    $("cell").replaceChildren(
      el("h3", {}, `${classTitle(i)[0].toUpperCase()}${classTitle(i).slice(1)} in ${L.columns[j] == null ? "no cluster" : clusterName(L.columns[j])}`),
      el("p", { class: "lead" }, `${images_(n)}, ${percent(n / totals[i])} of the class${i === j ? "; the matched cluster" : ""}`),
      found.length ? el("div", { class: "tiles" }, ...found.slice(0, 40).map((m) => tile(m, found, true))) : el("p", { class: "none" }, n ? "None of them is among the images shown." : "None."));
  }

  function matrixCanvas() {
    const [rows, columnsN] = [L.matrix.length, L.columns.length];
    const width = Math.min($("matrix").clientWidth, 720);
    const room = Math.min(rows <= 60 ? 130 : 8, width / 4);
    const side = Math.max(1.2, Math.min(44, (width - room) / columnsN));
    const top = rows <= 60 ? 26 : 8;
    const [w, h] = [room + side * columnsN, top + side * rows];
    const ratio = devicePixelRatio || 1;
    const canvas = el("canvas", { id: "matrix-canvas", tabindex: 0, role: "application", "aria-label": `Confusion matrix: ${rows} classes by ${columnsN} clusters, matched on the diagonal. Arrow keys move, Enter shows the images.` });
    canvas.width = w * ratio; canvas.height = h * ratio;
    canvas.style.width = `${w}px`; canvas.style.height = `${h}px`;
    const pen = canvas.getContext("2d");
    const draw = () => {
      const style = getComputedStyle(document.documentElement);
      const [ink, soft, heat, line] = ["--ink", "--soft", "--heat", "--line"].map((n) => style.getPropertyValue(n));
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      pen.clearRect(0, 0, w, h);
      pen.font = `${Math.min(12.5, side * 0.9)}px system-ui, sans-serif`;
      pen.textBaseline = "middle";
      for (let i = 0; i < rows; i++) {
        for (let j = 0; j < columnsN; j++) {
          const share = L.matrix[i][j] / totals[i];
          pen.fillStyle = `rgba(${heat}, ${share ? 0.06 + 0.94 * Math.sqrt(share) : 0.025})`;
          pen.fillRect(room + j * side, top + i * side, side - (side > 4 ? 1 : 0), side - (side > 4 ? 1 : 0));
          if (side >= 30 && L.matrix[i][j]) {
            pen.fillStyle = share > 0.3 ? style.getPropertyValue("--ground") : soft;
            pen.textAlign = "center";
            pen.fillText(L.matrix[i][j] > 9999 ? figure(L.matrix[i][j] / 1000) + "k" : String(L.matrix[i][j]), room + (j + 0.5) * side, top + (i + 0.5) * side);
          }
        }
        if (rows <= 60 && side >= 8) {
          pen.textAlign = "right";
          pen.fillStyle = soft;
          pen.fillText(fitted(pen, className(i), room - 10), room - 8, top + (i + 0.5) * side);
        }
      }
      if (side >= 13) for (let j = 0; j < columnsN; j++) {
        pen.textAlign = "center";
        pen.fillStyle = soft;
        pen.fillText(L.columns[j] == null ? "–" : String(L.columns[j]), room + (j + 0.5) * side, top - 10);
      }
      pen.strokeStyle = line;
      if (columnsN > rows) pen.strokeRect(room + rows * side - 0.5, top, 0.01, rows * side);
      pen.strokeStyle = ink;
      pen.lineWidth = 1.5;
      pen.strokeRect(room + cell.j * side - 0.5, top + cell.i * side - 0.5, side, side);
    };
    const at = (event) => {
      const box = canvas.getBoundingClientRect();
      const [x, y] = [((event.clientX - box.left) / box.width) * w, ((event.clientY - box.top) / box.height) * h];
      const [i, j] = [Math.floor((y - top) / side), Math.floor((x - room) / side)];
      return i >= 0 && j >= 0 && i < rows && j < columnsN ? [i, j] : null;
    };
    canvas.addEventListener("pointermove", (event) => {
      const found = at(event);
      canvas.title = found ? `${className(found[0])} in ${columnName(found[1])}: ${images_(L.matrix[found[0]][found[1]])}` : "";
    });
    canvas.addEventListener("click", (event) => { const found = at(event); if (found) { [cell.i, cell.j] = found; draw(); showCell(...found); } });
    canvas.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
      if (by) { cell.i = Math.min(rows - 1, Math.max(0, cell.i + by[0])); cell.j = Math.min(columnsN - 1, Math.max(0, cell.j + by[1])); draw(); showCell(cell.i, cell.j); }
      else if (event.key === "Enter") { const found = imagesOf(cell.i, cell.j); if (found.length) view(found[0], found); }
      else return;
      event.preventDefault();
    });
    addEventListener("themechange", draw);
    draw();
    return canvas;
  }

  function fitted(pen, text, width) {
    if (pen.measureText(text).width <= width) return text;
    while (text.length > 1 && pen.measureText(text + "…").width > width) text = text.slice(0, -1);
    return text + "…";
  }

  if (L.matrix.length) {
    const worst = L.confusions.find((c) => L.columns.includes(c.cluster));
    if (worst) [cell.i, cell.j] = [worst.label, L.columns.indexOf(worst.cluster)];
    $("matrix").append(el("p", { class: "legend" }, "Rows are classes, columns the clusters matched to them, by number; darker is a larger share of the class. Click a cell to see its images."), matrixCanvas());
    showCell(cell.i, cell.j);
  } else $("matrix").append(el("p", { class: "none" }, "There are too many classes or clusters for a matrix that can be looked at."));

  const matchedTo = new Map(L.scores.filter((s) => s.cluster != null).map((s) => [s.cluster, s.label]));
  $("confusions").append(...L.confusions.map((c) => {
    const owner = matchedTo.get(c.cluster);
    return el("li", {},
      el("p", { class: "said" }, el("b", {}, classTitle(c.label)), owner == null ? " in " : " taken for ", owner == null ? "" : el("b", {}, classTitle(owner)), owner == null ? "" : ", in ",
        el("a", { href: `#cluster-${c.cluster}` }, clusterName(c.cluster)), `: ${images_(c.count)}`),
      c.images.length ? tiles(c.images) : el("p", { class: "none" }, "None of them is among the images shown."));
  }));
  if (!L.confusions.length) $("confusions").append(el("li", { class: "none" }, "None: every cluster holds one class."));

  const row = (s) => el("tr", {}, el("td", { class: "name" }, className(s.label)), el("td", { class: "n" }, number(s.size)),
    el("td", {}, s.cluster == null ? "none" : el("a", { href: `#cluster-${s.cluster}` }, clusterName(s.cluster))),
    el("td", {}, meter(s.recall), percent(s.recall, 1)), el("td", {}, meter(s.precision), percent(s.precision, 1)));
  const box = $("class-scores");
  box.append(el("table", {}, el("thead", {}, el("tr", {}, ...["class", "images", "matched cluster", "recall", "precision"].map((t, i) => el("th", { scope: "col", class: i === 1 ? "n" : null }, t)))),
    el("tbody", {}, ...[...L.scores].sort((a, b) => b.recall - a.recall).map(row))));
  if (L.scores.length > 14) { box.tabIndex = 0; box.setAttribute("role", "region"); box.setAttribute("aria-label", "Scores of each class"); }
})();
