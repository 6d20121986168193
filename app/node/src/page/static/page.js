// What moves. The server makes all HTML; this asks for it again when something happened, and puts in what differs.
const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
const html = document.documentElement;
const base = new URL("..", import.meta.url).pathname;
const main = () => $("#main");
const skew = Date.parse(main().dataset.at) - Date.now(); // the database's clock against this one
const now = () => Date.now() + skew;

// Times: the reader's zone by a cookie, so that the server writes it; countdowns by one timer.
const cookie = (name, value) => document.cookie = `${name}=${value}; Path=${base}; Max-Age=31536000; SameSite=Strict`;
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const zoneUnknown = !html.hasAttribute("data-zone-known") && !!main().dataset.at;
if (zone && !document.cookie.includes("carillon_zone=")) cookie("carillon_zone", zone);
const ownZone = $("#own-zone");
if (ownZone && zone !== "UTC") ownZone.hidden = false;

export function coarse(seconds) {
  const units = [["d", Math.floor(seconds / 86400)], ["h", Math.floor(seconds / 3600) % 24], ["min", Math.floor(seconds / 60) % 60], ["s", Math.floor(seconds) % 60]];
  const first = units.findIndex(([, n]) => n > 0);
  return first < 0 ? "0 s" : units.slice(first, first + 2).filter(([, n]) => n > 0).map(([unit, n]) => `${n} ${unit}`).join(" ");
}
function tick() {
  if (document.hidden) return;
  for (const time of $$("time[data-rel], time[data-since]")) {
    const seconds = (Date.parse(time.dateTime) - now()) / 1000;
    const text = time.hasAttribute("data-since") ? coarse(Math.max(0, -seconds)) : seconds >= 0 ? `in ${coarse(seconds)}` : `${coarse(-seconds)} ago`;
    if (time.textContent !== text) time.textContent = text;
  }
  for (const bar of $$("progress[data-from]")) bar.value = now() - Date.parse(bar.dataset.from);
  told();
}
setInterval(tick, 1000);

// Putting in what differs: nodes with the same id are the same node, so focus, selection and open menus stay.
function morph(from, to) {
  if (from.isEqualNode(to)) return;
  if (from.nodeType !== to.nodeType || from.nodeName !== to.nodeName || (from.id || "") !== (to.id || "")) return from.replaceWith(to);
  if (from.nodeType !== 1) { from.nodeValue = to.nodeValue; return; }
  if (from.hasAttribute("data-keep")) return;
  for (const { name, value } of [...to.attributes]) if (from.getAttribute(name) !== value) from.setAttribute(name, value);
  for (const { name } of [...from.attributes]) {
    if (!to.hasAttribute(name) && !(name === "open" || name === "hidden" && from.dataset.copy !== undefined)) from.removeAttribute(name);
  }
  if (/^(INPUT|TEXTAREA|SELECT)$/.test(from.nodeName)) return;
  let at = from.firstChild;
  for (const wanted of [...to.childNodes]) {
    const same = wanted.id && [...from.children].find((child) => child.id === wanted.id);
    if (same && same !== at) from.insertBefore(same, at);
    if (same) at = same;
    if (!at) { from.append(wanted); continue; }
    const next = at.nextSibling;
    if (!same && (at.id || at.nodeName !== wanted.nodeName)) { from.insertBefore(wanted, at); continue; }
    morph(at, wanted);
    at = next;
  }
  while (at) { const next = at.nextSibling; at.remove(); at = next; }
}

async function fetched(url, fragment) {
  const address = new URL(url, location);
  address.searchParams.set("fragment", fragment);
  const answer = await fetch(address, { headers: { accept: "text/html" }, credentials: "same-origin" });
  if (answer.redirected || !answer.ok) { if (answer.redirected) location.reload(); throw new Error(answer.status); }
  return new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("#main");
}
function titled(wanted) {
  const alerts = +(wanted.dataset.alerts ?? main().dataset.alerts ?? 0);
  document.title = `${alerts ? `(${alerts}) ` : ""}${wanted.dataset.title} · Carillon`;
  const icon = $("#icon"), href = alerts ? icon?.dataset.alert : icon?.dataset.calm;
  if (icon && icon.getAttribute("href") !== href) icon.href = href;
}
let waiting = 0, page = 0; // new rows that are not shown yet, and all rows of a page
// Rows keep their place: one that is there changes in place, new ones are announced.
function put(wanted, all) {
  const list = $("[data-rows]"), fresh = $("[data-rows]", wanted);
  waiting = 0;
  if (list && fresh && $("#news") && !all) {
    const shown = new Set([...list.children].map((row) => row.id));
    page = fresh.children.length;
    waiting = [...fresh.children].filter((row) => row.id && !shown.has(row.id)).length;
    const rows = new Map([...fresh.children].map((row) => [row.id, row]));
    fresh.replaceChildren(...[...list.children].map((row) => rows.get(row.id) ?? row.cloneNode(true)));
  }
  titled(wanted);
  const times = $("#times"), zoned = $("#times", wanted.ownerDocument);
  if (times && zoned && times.dataset.zone !== zoned.dataset.zone) times.replaceWith(zoned);
  morph(main(), wanted);
  const news = $("#news");
  if (news) { news.hidden = !waiting; news.textContent = `${waiting}${waiting < page ? "" : "+"} new, show`; }
  ready();
}
let asked = 0;
export async function look(all = false, url = location.href) {
  const mine = ++asked;
  try {
    const wanted = await fetched(url, "main");
    if (mine === asked) { put(wanted, all); heard(); }
  } catch { broken ||= Date.now(); told(); }
}
async function lookAtRow(id) {
  const row = document.getElementById(id);
  if (!row) return;
  const wanted = await fetched(location.href, id).catch(() => null);
  const fresh = wanted?.ownerDocument.getElementById(id);
  if (fresh) { morph(row, fresh); ready(); } else look();
}

// Events: one connection, none while paused or hidden; many at once are one look.
let source, paused = false, broken = 0, hiddenTimer, soon, dirty = new Set();
const live = $("#live"), pause = $("#pause-live");
function heard() { broken = 0; html.dataset.seen = Date.now(); }
function told() {
  const place = $("#connection");
  if (!place || !broken || paused) return place?.classList.remove("bad");
  place.classList.add("bad");
  place.textContent = `No word from this node for ${coarse((Date.now() - broken) / 1000)}. What you see is of ${new Date(+html.dataset.seen || Date.parse(main().dataset.at)).toLocaleTimeString()}.`;
}
function noted(event) {
  let told = {};
  try { told = JSON.parse(event.data); } catch { /* an event without data */ }
  const job = told.job?.name ?? told.job;
  dirty.add(job ? `row:${told.namespace}/${job}` : "");
  soon ??= setTimeout(() => {
    const rows = [...dirty];
    soon = undefined; dirty = new Set();
    if ($("[data-rows=jobs]") && rows.length <= 4 && rows.every((id) => id && document.getElementById(id))) rows.forEach(lookAtRow);
    else look();
  }, 250);
}
function connect() {
  const address = main().dataset.live;
  if (!address || paused || source || document.hidden) return;
  source = new EventSource(address);
  // A page that was made while nobody followed tells no position: it looks again once the events have begun.
  let behind = !address.includes("since=");
  source.onopen = () => { if (broken || behind) look(); behind = false; heard(); told(); };
  source.addEventListener("reset", () => look());
  source.onerror = () => {
    broken ||= Date.now(); told();
    if (source?.readyState === 2) { disconnect(); setTimeout(connect, 5000); } // refused: the browser itself does not try again
  };
  for (const type of ["run.started", "run.ended", "run.skipped", "job.changed", "session.changed", "alert", "audit.written"]) source.addEventListener(type, noted);
}
function disconnect() { source?.close(); source = undefined; }
if (live && main().dataset.live) live.hidden = false;
pause?.addEventListener("click", () => {
  paused = !paused;
  pause.setAttribute("aria-pressed", paused);
  pause.textContent = paused ? "Paused" : "Live";
  if (paused) { disconnect(); clearTimeout(soon); soon = undefined; } else { connect(); look(); }
});
document.addEventListener("visibilitychange", () => {
  clearTimeout(hiddenTimer);
  if (document.hidden) hiddenTimer = setTimeout(disconnect, 60000);
  else if (!source && !paused && main().dataset.live) { connect(); look(); } else tick();
});

// A page that the browser keeps for Back would keep its connections too, and six of them are all that there are.
addEventListener("pagehide", disconnect);
addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  if (output?.dataset.follow) return location.reload();
  if (!paused && main().dataset.live) { connect(); look(); }
});

// Filters: the address holds them; while typing the list follows.
let typing;
document.addEventListener("input", (event) => {
  const form = event.target.closest("form[data-filter]");
  if (!form) return;
  clearTimeout(typing);
  typing = setTimeout(() => filter(form), event.target.matches("[type=search]") ? 120 : 0);
});
function filter(form) {
  const url = new URL(form.action);
  for (const [key, value] of new FormData(form)) if (value) url.searchParams.append(key, value);
  history.replaceState(null, "", url);
  look(true);
}

// The schedule of a form is explained while it is typed.
let explaining;
document.addEventListener("input", (event) => {
  const form = event.target.closest("form[data-explain]");
  if (!form || !/^(schedule|timezone|name|namespace)$/.test(event.target.name)) return;
  clearTimeout(explaining);
  explaining = setTimeout(() => explain(form), 60);
});
async function explain(form) {
  const url = new URL(form.dataset.explain, location), place = $("#explained"), field = (name) => $(`[name="${name}"]`, form)?.value ?? "";
  url.searchParams.set("schedule", field("schedule"));
  url.searchParams.set("timezone", field("timezone"));
  url.searchParams.set("key", `${field("namespace")}/${field("name")}`);
  const wanted = field("schedule") && await fetched(url, "explained").catch(() => null);
  if (!wanted) place.replaceChildren(); else if (url.searchParams.get("schedule") === field("schedule")) { morph(place, $("#explained", wanted)); tick(); }
}

// Dragging over the timeline shows that part of it. Links do the same.
document.addEventListener("pointerdown", (event) => {
  const lanes = event.target.closest("[data-brush]");
  if (!lanes || event.button || event.pointerType === "touch") return;
  event.preventDefault();
  const box = lanes.getBoundingClientRect(), mark = document.createElement("div"), done = new AbortController(), signal = done.signal;
  const at = (x) => Math.min(box.width, Math.max(0, x - box.left)), begin = at(event.clientX);
  let end = begin;
  mark.className = "brush";
  Object.assign(mark.style, { top: `${box.top + scrollY}px`, height: `${box.height}px` });
  document.body.append(mark);
  const finish = (keeps) => {
    done.abort(); mark.remove();
    if (!keeps || Math.abs(end - begin) < 6) return;
    const from = Date.parse(lanes.dataset.from), length = Date.parse(lanes.dataset.until) - from, url = new URL(location);
    const time = (x) => `${new Date(from + x / box.width * length).toISOString().slice(0, 19)}Z`;
    url.searchParams.set("from", time(Math.min(begin, end)));
    url.searchParams.set("until", time(Math.max(begin, end)));
    location.assign(url);
  };
  addEventListener("pointermove", (event) => {
    end = at(event.clientX);
    Object.assign(mark.style, { left: `${box.left + scrollX + Math.min(begin, end)}px`, width: `${Math.abs(end - begin)}px` });
  }, { signal });
  addEventListener("pointerup", () => finish(true), { signal });
  addEventListener("pointercancel", () => finish(false), { signal });
  addEventListener("keydown", (event) => { if (event.key === "Escape") finish(false); }, { signal });
});

// Selecting rows, ranges by shift.
let anchor;
document.addEventListener("click", (event) => {
  const box = event.target.closest("input[name=job]");
  if (box) {
    const boxes = $$("input[name=job]");
    if (event.shiftKey && anchor?.isConnected) {
      const [a, b] = [boxes.indexOf(anchor), boxes.indexOf(box)].sort((x, y) => x - y);
      boxes.slice(a, b + 1).forEach((one) => one.checked = box.checked);
    }
    anchor = box;
    selected();
  }
  if (event.target.id === "select-all") { $$("input[name=job]").forEach((one) => one.checked = event.target.checked); selected(); }
  if (event.target.id === "news") { event.preventDefault(); look(true); }
  const copy = event.target.closest("[data-copy]");
  if (copy) copied(copy);
  for (const menu of $$("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
});
function selected() {
  const count = $$("input[name=job]:checked").length, bulk = $("#bulk");
  $$("input[name=job]").forEach((one) => one.closest("tr")?.setAttribute("aria-selected", one.checked));
  if (bulk) { bulk.classList.toggle("on", count > 0); $("output", bulk).textContent = count ? `${count} selected` : "None selected"; }
}
async function copied(button) {
  const text = button.dataset.copy;
  if (navigator.clipboard && isSecureContext) await navigator.clipboard.writeText(text).catch(() => {});
  else {
    const area = document.createElement("textarea");
    area.value = text; area.className = "hidden"; document.body.append(area); area.select();
    document.execCommand("copy"); area.remove(); button.focus();
  }
  button.textContent = "Copied";
  setTimeout(() => button.textContent = "Copy", 2000);
}

// Keys.
let going = 0, at = -1;
const goTo = { o: "", j: "jobs", t: "timeline", c: "cluster", a: "audit", s: "schedules", l: "alerts" };
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const field = event.target.closest("input:not([type=checkbox]), textarea, select");
  if (event.key === "Escape") { field?.blur(); $("#help")?.close(); $$("details.menu[open]").forEach((menu) => menu.open = false); }
  if (field) return;
  const rows = $$("[data-rows] > [id], [data-list] > *"), row = rows[at];
  const press = (selector) => { const found = $(selector, row ?? document) ?? $(selector); if (found) { event.preventDefault(); found.tagName === "A" || found.tagName === "BUTTON" ? found.click() : found.focus(); } };
  if (Date.now() - going < 1500 && goTo[event.key] !== undefined) {
    const link = $(`nav a[href="${base}${goTo[event.key]}"]`);
    going = 0;
    if (link) { event.preventDefault(); link.click(); }
    return;
  }
  switch (event.key) {
    case "g": going = Date.now(); break;
    case "/": press("input[type=search]"); break;
    case "?": event.preventDefault(); $("#help")?.showModal(); break;
    case "j": case "k":
      if (!rows.length) break;
      at = Math.max(0, Math.min(rows.length - 1, at + (event.key === "j" ? 1 : -1)));
      rows.forEach((one, n) => one.classList.toggle("at", n === at));
      rows[at].scrollIntoView({ block: "nearest" });
      $("a", rows[at])?.focus({ preventScroll: true });
      break;
    case "x": { const box = row && $("input[name=job]", row); if (box) { box.checked = !box.checked; anchor = box; selected(); } break; }
    case "o": press("[data-do=output]"); break;
    case "r": press("[data-do=run]"); break;
    case "p": press("[data-do=pause]"); break;
  }
});

// After each change: buttons that need the script are shown. The end of a message is no event, so a page that shows one under way looks again.
let again;
function ready() {
  $$("[data-copy][hidden]").forEach((button) => button.hidden = false);
  offered(); tick();
  clearTimeout(again);
  if ($("[data-again]")) again = setTimeout(() => { if (!paused && !document.hidden) look(); }, 1500);
}
// What can be undone is offered for 10 seconds, and for as long as the button is focused. Then the address forgets it too.
let offer;
function offered() {
  if (!$("[data-undo]")) return;
  offer ??= setTimeout(() => {
    offer = undefined;
    if ($("[data-undo]")?.contains(document.activeElement)) return offered();
    const url = new URL(location);
    for (const key of [...url.searchParams.keys()]) if (key === "said" || key.startsWith("undo-")) url.searchParams.delete(key);
    history.replaceState(null, "", url);
    $("[data-undo]")?.remove();
  }, 10000);
}
ready();
connect();
if (zoneUnknown && zone && zone !== "UTC") look(true);

// Output: the server makes it into HTML; what comes is appended, and it scrolls along until the reader scrolls up.
const output = $("#output"), following = $("#following"), find = $("#find");
if (output?.dataset.follow) {
  const lines = new EventSource(output.dataset.follow);
  const append = (text) => {
    const atEnd = output.scrollHeight - output.scrollTop - output.clientHeight < 40;
    const piece = document.createElement("template");
    piece.innerHTML = text;
    output.append(piece.content);
    while (output.childNodes.length > 20000) output.firstChild.remove();
    if (following?.checked && atEnd) output.scrollTop = output.scrollHeight;
  };
  let begun = false;
  lines.addEventListener("output", (event) => { if (!begun) { begun = true; output.textContent = ""; output.scrollTop = 0; } append(event.data); if (following?.checked && output.scrollTop === 0) output.scrollTop = output.scrollHeight; });
  addEventListener("pagehide", () => lines.close());
  lines.addEventListener("end", () => { lines.close(); output.removeAttribute("data-keep"); look(true); });
  output.addEventListener("scroll", () => { if (following) following.checked = output.scrollHeight - output.scrollTop - output.clientHeight < 40; });
}
if (find && window.Highlight) {
  find.hidden = false;
  let ranges = [], shown = -1;
  const jump = (step) => {
    if (!ranges.length) return;
    shown = (shown + step + ranges.length) % ranges.length;
    ranges[shown].startContainer.parentElement.scrollIntoView({ block: "nearest" });
    const box = ranges[shown].getBoundingClientRect(), frame = output.getBoundingClientRect();
    output.scrollTop += box.top - frame.top - output.clientHeight / 2;
    $("#found").textContent = `${shown + 1} of ${ranges.length}`;
  };
  find.addEventListener("input", () => {
    // A colour may begin or end within what is looked for, so all text is one.
    const text = find.value.toLowerCase(), walker = document.createTreeWalker(output, NodeFilter.SHOW_TEXT);
    const nodes = [], starts = [];
    let whole = "";
    for (let node; (node = walker.nextNode());) { nodes.push(node); starts.push(whole.length); whole += node.data.toLowerCase(); }
    const place = (at) => { let low = 0, high = starts.length - 1; while (low < high) { const middle = (low + high + 1) >> 1; if (starts[middle] <= at) low = middle; else high = middle - 1; } return [nodes[low], at - starts[low]]; };
    ranges = []; shown = -1;
    for (let at = text ? whole.indexOf(text) : -1; at >= 0 && ranges.length < 5000; at = whole.indexOf(text, at + text.length)) {
      const range = new Range();
      range.setStart(...place(at)); range.setEnd(...place(at + text.length - 1)); range.setEnd(range.endContainer, range.endOffset + 1);
      ranges.push(range);
    }
    CSS.highlights.set("found", new Highlight(...ranges));
    $("#found").textContent = text ? (ranges.length ? `${ranges.length} found` : "Nothing found") : "";
    jump(1);
  });
  find.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); jump(event.shiftKey ? -1 : 1); } });
}
