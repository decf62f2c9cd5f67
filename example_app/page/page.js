// The page asks this service as any client does: chats, and GET /v1/usage once a second, which is free.

const $ = (id) => document.getElementById(id);
const numbers = new Intl.NumberFormat("en", { maximumFractionDigits: 6 });
const pause = 1000; // between two questions for the usage, in milliseconds
const kept = 20; // decisions that are shown

let key = ""; // never stored
let asker = 0; // counts changes of the key, so that answers for one before are dropped
let sending = null; // the AbortController of what is being sent
let opensAt = 0; // on performance.now(), 0 where nothing is waited for
let opening = ""; // what is waited for

function element(name, text, attributes = {}) {
  const e = document.createElement(name);
  e.textContent = text;
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  return e;
}

// say tells what happened to who does not see the page.
function say(text) {
  $("said").textContent = text;
}

// Who is calling

async function begin() {
  const about = await (await fetch("/page.json")).json();
  showShares(about.shares);
  if (about.keys.length === 0) {
    $("key-form").hidden = false;
    return;
  }
  about.keys.forEach((demo, i) => {
    const label = element("label", "");
    const radio = element("input", "", { type: "radio", name: "tier", value: demo.tier });
    radio.checked = i === 0;
    radio.addEventListener("change", () => use(demo.key));
    label.append(radio, demo.tier);
    $("tiers").append(label);
  });
  $("tiers").hidden = false;
  use(about.keys[0].key);
}

function use(newKey) {
  key = newKey;
  asker++;
  sending?.abort();
  opensAt = 0;
  $("notice").hidden = true;
  $("notice").dataset.state = "none";
  $("signed-in").hidden = true;
  $("budgets").replaceChildren();
  $("upstream-budgets").replaceChildren();
  $("usage-problem").hidden = true;
  $("upstream").hidden = true;
  showButtons();
  refresh();
}

$("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const given = $("key").value.trim();
  $("key").value = "";
  $("key-form").hidden = true;
  $("forget").hidden = false;
  use(given);
  $("message").focus();
});

$("forget").addEventListener("click", forget);

function forget() {
  use("");
  $("forget").hidden = true;
  $("key-form").hidden = false;
  $("key").focus();
}

// Budgets

async function refresh() {
  if (key === "") return;
  const mine = asker;
  let report;
  let problem = "";
  try {
    const res = await fetch("/v1/usage", { headers: { Authorization: `Bearer ${key}` }, cache: "no-store" });
    const body = await res.json();
    if (res.ok) report = body;
    else problem = body.error.message;
    if (res.status === 401 && mine === asker) forget();
  } catch {
    problem = "The service cannot be reached.";
  }
  if (mine !== asker && !problem) return;
  $("usage-problem").textContent = problem;
  $("usage-problem").hidden = problem === "";
  if (report) showUsage(report);
}

function showUsage(report) {
  $("user").textContent = report.user;
  $("tier").textContent = report.tier;
  $("signed-in").hidden = false;
  const ofProvider = (b) => b.window.startsWith("upstream-");
  showBudgets($("budgets"), report.budgets.filter((b) => !ofProvider(b)));
  const shared = report.budgets.filter(ofProvider);
  showBudgets($("upstream-budgets"), shared);
  $("upstream").hidden = shared.length === 0;
}

// showBudgets keeps the elements of a budget, so that its bar moves.
function showBudgets(list, budgets) {
  const rows = new Map([...list.children].map((row) => [row.dataset.window, row]));
  for (const budget of budgets) {
    const row = rows.get(budget.window) ?? list.appendChild(budgetRow(budget.window));
    rows.delete(budget.window);
    fillRow(row, budget);
  }
  for (const row of rows.values()) row.remove();
}

function budgetRow(name) {
  const row = element("li", "", { "data-window": name });
  const line = element("div", "", { class: "line" });
  line.append(element("span", budgetTitle(name), { class: "name" }), element("span", "", { class: "left" }));
  row.append(line, element("progress", "", { "aria-label": `Left of ${budgetTitle(name)}` }));
  return row;
}

function budgetTitle(name) {
  const [, what, window] = name.replace(/^upstream-/, "").match(/^(?:(tokens|spend)-)?(.*)$/);
  if (window === "concurrent") return "requests at once";
  return `${what ?? "requests"} per ${window}`;
}

function fillRow(row, budget) {
  const bar = row.querySelector("progress");
  const left = budget.limit > 0 ? budget.remaining / budget.limit : 0;
  bar.max = Math.max(budget.limit, 1e-6);
  bar.value = budget.remaining;
  bar.dataset.level = budget.remaining <= 0 ? "none" : left <= 0.25 ? "low" : "good";
  let text = `${numbers.format(budget.remaining)} of ${numbers.format(budget.limit)} left`;
  if (budget.retry_after > 0) text += `, again in ${duration(budget.retry_after)}`;
  row.querySelector(".left").textContent = text;
}

function showShares(shares) {
  const parts = Object.entries(shares ?? {}).map(([tier, share]) => `${tier} ${numbers.format(share * 100)} %`);
  $("shares").textContent = `Shares of the cap: ${parts.join(", ")}; other tiers may use all of it.`;
  $("shares").hidden = parts.length === 0;
}

function duration(seconds) {
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.ceil(seconds / 60)} min`;
  return `${Math.ceil(seconds / 3600)} h`;
}

setInterval(() => {
  if (!document.hidden) refresh();
}, pause);

// Chat

$("chat").addEventListener("submit", (event) => {
  event.preventDefault();
  run(1);
});
$("burst").addEventListener("click", () => run(Infinity));
$("stop").addEventListener("click", () => sending?.abort());

// run sends up to a number of chats, one after the other, until one fails.
async function run(times) {
  if (sending || key === "" || !$("chat").reportValidity()) return;
  sending = new AbortController();
  showButtons();
  const { signal } = sending;
  try {
    for (let i = 0; i < times && !signal.aborted; i++) {
      if (!(await chat(signal))) break;
    }
  } catch (error) {
    if (!signal.aborted) showProblem("The service cannot be reached.");
  } finally {
    sending = null;
    showButtons();
    refresh();
  }
}

function showButtons() {
  $("send").disabled = $("burst").disabled = sending !== null || key === "";
  $("stop").hidden = sending === null;
}

// chat sends one message and reports whether it was answered.
async function chat(signal) {
  const stream = $("stream").checked;
  const res = await fetch("/v1/chat/completions", {
    method: "POST",
    signal,
    headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
    body: JSON.stringify({ model: "any", stream, messages: [{ role: "user", content: $("message").value }] }),
  });
  addDecision(res, stream);
  refresh();
  if (!res.ok) {
    const body = await res.json().catch(() => null);
    showRejection(res, body?.error?.message ?? `The service answered ${res.status}.`);
    return false;
  }
  if (opensAt === 0) $("notice").hidden = true;
  $("reply").setAttribute("aria-busy", "true");
  $("reply").textContent = "";
  try {
    if (stream) await readStream(res);
    else $("reply").textContent = (await res.json()).choices[0]?.message?.content ?? "";
  } finally {
    $("reply").removeAttribute("aria-busy");
  }
  return true;
}

// readStream shows server-sent events as they come.
async function readStream(res) {
  let rest = "";
  for await (const text of texts(res.body)) {
    const lines = (rest + text).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      const data = line.replace(/\r$/, "").match(/^data: ?(.*)$/)?.[1];
      if (!data || data === "[DONE]") continue;
      $("reply").textContent += JSON.parse(data).choices?.[0]?.delta?.content ?? "";
    }
  }
}

async function* texts(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}

// Rejections

function showProblem(text) {
  opensAt = 0;
  $("notice").hidden = false;
  $("notice").dataset.state = "rejected";
  $("notice-text").textContent = text;
  $("countdown").textContent = "";
  say(text);
}

function showRejection(res, message) {
  const wait = Number(res.headers.get("Retry-After"));
  showProblem(message);
  if (!(wait > 0)) return;
  $("notice-text").textContent = message.replace(/ Retry in \d+ s\.$/, ""); // the countdown says it
  const window = res.headers.get("X-RateLimit-Window");
  opensAt = performance.now() + wait * 1000;
  opening = window ? `The ${window} budget` : "The service";
  tick();
}

function tick() {
  if (opensAt === 0) return;
  const left = Math.ceil((opensAt - performance.now()) / 1000);
  if (left > 0) {
    $("countdown").textContent = `Open again in ${duration(left)}.`;
    return;
  }
  opensAt = 0;
  $("notice").dataset.state = "open";
  $("notice-text").textContent = `${opening} is open again.`;
  $("countdown").textContent = "";
  say($("notice-text").textContent);
  refresh();
}
setInterval(tick, 250);

function addDecision(res, stream) {
  const now = new Date();
  const h = (name) => res.headers.get(name);
  const summary = element("summary", "");
  summary.append(
    element("time", now.toLocaleTimeString("en-GB"), { datetime: now.toISOString() }),
    element("span", `${res.status} ${statusName(res.status)}`, { class: "status", "data-ok": res.ok }),
    element("span", `${$("tier").textContent}, ${stream ? "stream" : "chat"}`),
  );
  if (h("X-RateLimit-Window")) {
    const left = `${h("X-RateLimit-Remaining")} of ${h("X-RateLimit-Limit")} left`;
    summary.append(element("span", `${h("X-RateLimit-Window")}: ${left}`));
  }
  if (h("Retry-After")) summary.append(element("span", `Retry-After: ${h("Retry-After")}`));
  const list = element("dl", "");
  for (const [name, value] of [...res.headers].sort()) list.append(element("dt", name), element("dd", value));
  const details = element("details", "");
  details.append(summary, list);
  const item = element("li", "");
  item.append(details);
  $("decisions").prepend(item);
  while ($("decisions").children.length > kept) $("decisions").lastElementChild.remove();
  $("none-yet").hidden = true;
}

function statusName(status) {
  const names = { 200: "admitted", 401: "unknown key", 429: "rejected", 503: "unavailable" };
  return names[status] ?? (status < 400 ? "answered" : "failed");
}

// Light and dark

const dark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";
const showTheme = () => $("theme").setAttribute("aria-pressed", isDark());
$("theme").addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  showTheme();
});
dark.addEventListener("change", showTheme);
showTheme();

begin().catch(() => showProblem("The service cannot be reached."));
