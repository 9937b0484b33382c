"use strict";
// The page's content, and the few helpers everything is drawn with. Text from the run goes through textContent alone.
const page = JSON.parse(document.getElementById("data").textContent);
const images = page.images;
const count = images.name.length;
const $ = (id) => document.getElementById(id);

function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "class") made.className = value;
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child != null));
  return made;
}

function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// Control characters and marks that turn the direction of writing are shown, not obeyed.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\ufff9-\ufffb\ud800-\udfff]|[\u{e0000}-\u{e007f}]/u;

function code(character) {
  return "\\u" + character.codePointAt(0).toString(16).padStart(4, "0");
}

function plain(text) {
  return Array.from(text, (c) => (UNSEEN.test(c) ? code(c) : c)).join("");
}

function shown(text, tag = "bdi") {
  const made = el(tag);
  let run = "";
  for (const c of text) {
    if (UNSEEN.test(c)) {
      made.append(run, el("span", { class: "control", title: "an invisible character" }, code(c)));
      run = "";
    } else run += c;
  }
  made.append(run);
  return made;
}

const whole = new Intl.NumberFormat("en");
const number = (n) => whole.format(n);
const figure = (x) => (Math.abs(x) >= 1000 ? number(Math.round(x)) : Math.abs(x) >= 100 ? x.toFixed(0) : String(+x.toPrecision(3)));
const percent = (p, digits = 0) => (p > 0 && p < 0.005 && !digits ? "<1%" : (100 * p).toFixed(digits) + "%");
const sure = (p) => (p >= 0.9995 ? "100%" : p >= 0.99 ? (Math.floor(1000 * p) / 10).toFixed(1) + "%" : percent(p));
const images_ = (n) => `${number(n)} image${n === 1 ? "" : "s"}`;

const clusterName = (k) => plain(page.clusters[k].name ?? `Cluster ${k}`);
const clusterShort = (k) => plain(page.clusters[k].name ?? String(k));
const className = (c) => (c < 0 ? "unknown" : plain(page.labels.classes[c]));
const classTitle = (c) => (/^\d+$/.test(className(c)) ? `class ${className(c)}` : className(c));

// Ten colours that can be told apart; beyond them hues by the golden angle, in three degrees of lightness.
const TEN = ["#4269d0", "#d79b00", "#e8604a", "#3aa38c", "#3ca951", "#e06a9c", "#9a5fe0", "#6d9ff0", "#9c6b4e", "#868c96"];
function colour(i, of) {
  if (i < 0) return "#9aa0a6";
  if (of <= TEN.length) return TEN[i];
  return `hsl(${((i * 137.508) % 360).toFixed(1)} ${[62, 50, 72][i % 3]}% ${[52, 40, 62][Math.floor(i / 3) % 3]}%)`;
}
const clusterColour = (k) => colour(k, page.clusters.length);
function dot(fill) {
  const made = el("span", { class: "dot" });
  made.style.background = fill;
  return made;
}
function meter(share) {
  const bar = el("i");
  bar.style.width = `${100 * Math.min(1, Math.max(0, share))}%`;
  return el("span", { class: "meter", "aria-hidden": "true" }, bar);
}

// A cheap shuffle that is the same whenever the page is opened.
function shuffled(list) {
  const found = [...list];
  let state = 12345;
  for (let i = found.length - 1; i > 0; i--) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const j = state % (i + 1);
    [found[i], found[j]] = [found[j], found[i]];
  }
  return found;
}

const members = page.clusters.map(() => []);
images.cluster.forEach((k, i) => members[k].push(i));

// What several parts of the page follow: the range of confidence.
const range = { low: 0, high: 1, listeners: [] };
const inRange = (i) => images.probability[i] >= range.low && images.probability[i] <= range.high;

// Light or dark: the system's choice until somebody chooses here.
(() => {
  const button = $("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  const said = () => { button.textContent = dark() ? "Light" : "Dark"; button.setAttribute("aria-label", `Use the ${dark() ? "light" : "dark"} theme`); };
  const changed = () => { said(); dispatchEvent(new Event("themechange")); };
  try { const kept = localStorage.getItem("cdclust-theme"); if (kept) document.documentElement.dataset.theme = kept; } catch { /* not allowed from disk everywhere */ }
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    try { localStorage.setItem("cdclust-theme", document.documentElement.dataset.theme); } catch { /* the same */ }
    changed();
  });
  system.addEventListener("change", changed);
  said();
})();
