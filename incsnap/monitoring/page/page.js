"use strict";
// The page of a job. It asks its own server every second and draws the answer. Texts are set as text, never as HTML.

const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

const count = (n) => Math.abs(n) < 1e7 ? Math.round(n).toLocaleString("en") : `${(n / 1e6).toPrecision(3)} M`;
// Return events or rows per second. Two digits tell a rate of one event in a minute from none.
const rate = (n) => `${n > 0 && n < 10 ? +n.toPrecision(2) : count(n)}/s`;
const size = (n) => {
  for (const unit of ["B", "kB", "MB", "GB", "TB"]) {
    if (n < 999.5 || unit === "TB") return `${n >= 99.5 || unit === "B" ? Math.round(n) : +n.toPrecision(2)} ${unit}`;
    n /= 1000;
  }
};
const duration = (s) => {
  if (s < 10) return `${+s.toPrecision(2)} s`;
  const whole = Math.round(s);
  for (const [unit, name, next, nextName] of [[86400, "d", 3600, "h"], [3600, "h", 60, "min"], [60, "min", 1, "s"]]) {
    if (whole >= unit) {
      const rest = Math.floor(whole % unit / next);
      return `${Math.floor(whole / unit)} ${name}${rest ? ` ${rest} ${nextName}` : ""}`;
    }
  }
  return `${whole} s`;
};
const moment = (ms) => new Date(ms).toLocaleString("sv");
const clock = (ms) => new Date(ms).toLocaleTimeString("sv");

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function drawn(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function curve(id, values) {
  const svg = $(id), top = Math.max(...values, 1e-9), last = Math.max(1, values.length - 1);
  svg.setAttribute("viewBox", "0 0 100 40");
  svg.setAttribute("preserveAspectRatio", "none");
  const points = values.map((value, i) => `${(100 * i / last).toFixed(2)},${(39 - 37 * value / top).toFixed(2)}`);
  svg.replaceChildren(
    drawn("polygon", {class: "area", points: `0,40 ${points.join(" ")} 100,40`}),
    drawn("polyline", {class: "curve", points: points.join(" ")}));
}

// Return the largest value of each few seconds, so that a peak does not vanish in a narrow chart.
function thinned(points, column, most = 150) {
  const step = Math.ceil(points.length / most), found = [];
  for (let i = 0; i < points.length; i += step) {
    found.push(Math.max(...points.slice(i, i + step).map((point) => point[column])));
  }
  return found;
}

function showHistory(points) {
  if (!points.length) return;
  const period = duration(Math.max(1, (points[points.length - 1][0] - points[0][0]) / 1000));
  [["lag", 1, (n) => duration(n / 1000)], ["events", 2, rate], ["rows", 3, rate],
   ["bytes", 4, (n) => `${size(n)}/s`]].forEach(([name, column, text]) => {
    curve(`${name}-line`, thinned(points, column));
    $(`${name}-scale`).textContent = `peak ${text(Math.max(...points.map((point) => point[column])))} in ${period}`;
  });
}

// Return the tables of snapshots that were not read to their end.
const failedTables = (status) => status.snapshot.finished.filter((each) => !["SUCCEEDED", "EMPTY"].includes(each.status));

// Until the tables are compared, the topics lack what was changed in a gap of the binlog.
const isClosingGap = (status) => Boolean(status.gap) && !status.gap.ended_ms;

// Return why somebody should look at a job that runs, the worst first.
function troubles(status) {
  const stream = status.stream, verification = status.verification;
  const differs = verification && (verification.failure || verification.tables.some((each) => each.differing));
  const purged = stream && stream.purge_not_before_ms && stream.purge_not_before_ms - status.written_ms < 3600000;
  return [...(purged ? ["binlog purged soon"] : []), ...(isClosingGap(status) ? ["closing a gap"] : []),
    ...(differs ? [verification.failure ? "comparison failed" : "tables differ"] : []),
    ...(status.snapshot.tables.some((each) => each.quarantined.length) ? ["keys given up"] : [])];
}

function showState(status) {
  $("prefix").textContent = status.topic_prefix;
  const silent = status.asked_ms && status.state === "running" && status.written_ms - status.asked_ms > 120000;
  const state = silent ? "stalled" : status.state, failed = failedTables(status);
  // The worst of what holds comes first: a job that does not run, a table that failed, a pause.
  const told = [...(state === "running" ? [] : [state]), ...(failed.length ? [`${failed.length} failed`] : []),
    ...(status.snapshot.paused ? ["paused"] : []), ...troubles(status)];
  document.title = `${status.topic_prefix}: ${told.length ? told.join(", ") : state}`;
  const more = [...(status.snapshot.paused ? ["snapshot paused"] : []), ...troubles(status),
    ...(failed.length ? [`${failed.length} ${failed.length === 1 ? "table" : "tables"} failed`] : [])];
  $("state").textContent = [state, ...more].join(" · ");
  $("state").className = `state ${state}${more.length ? " attention" : ""}`;
  document.body.classList.remove("gone");
  document.body.classList.toggle("paused", status.snapshot.paused);
  $("failed").hidden = !failed.length;
  $("failed").textContent = `Not read completely: ${failed.slice(-3).map((each) =>
    `${each.table} (${each.status})`).join(", ")}${failed.length > 3 ? ` and ${failed.length - 3} more` : ""}`;
  $("servers").textContent = [status.mysql && `MySQL ${status.mysql}`, status.kafka && `Kafka ${status.kafka}`].filter(Boolean).join(" → ");
  $("since").textContent = `incsnap ${status.release} on ${status.host}, process ${status.pid}, for ${
    duration((status.written_ms - status.started_ms) / 1000)}`;
  const failure = status.failure;
  $("trouble").hidden = !failure;
  if (failure) {
    const passed = status.state === "retrying" || status.state === "failed" ? "" : " (it has passed)";
    $("trouble").textContent = `${moment(failure.at_ms)}: ${failure.message} → ${failure.hint}${passed}`;
  }
}

function showGap(status) {
  const gap = status.gap;
  $("gap").hidden = !gap;
  if (!gap) return;
  const told = [gap.ended_ms ? `${count(gap.compared)} tables were compared until ${moment(gap.ended_ms)}`
    : `tables are compared with their topics: ${count(gap.compared)} done, ${count(gap.left)} left`,
    `${count(gap.keys)} keys that differ are sent again${gap.whole ? `, and ${count(gap.whole)} tables are read whole` : ""}`];
  if (gap.failure) told.push(`the last attempt failed: ${gap.failure}`);
  $("gap").textContent = `Gap in the binlog: ${told.join("; ")}`;
  $("gap").className = gap.failure || !gap.ended_ms ? "trouble" : "quiet";
}

function showVerification(status) {
  const verification = status.verification;
  $("verified").hidden = !verification;
  if (!verification) return;
  const differing = verification.tables.filter((each) => each.differing);
  const names = differing.slice(0, 3).map((each) => `${each.table} differs in ${count(each.differing)} ${each.differing === 1 ? "key" : "keys"}`);
  const more = differing.length > 3 ? [`${differing.length - 3} more tables differ`] : [];
  const refused = verification.tables.filter((each) => each.refused).length;
  const told = !verification.rounds ? ["no comparison has ended yet"]
    : [...(names.length ? names : ["no difference is known"]), ...more, `compared last at ${moment(verification.ended_ms)}`];
  if (refused) told.push(`${refused} ${refused === 1 ? "table" : "tables"} cannot be compared`);
  if (verification.failure) told.push(`the last comparison failed: ${verification.failure}`);
  $("verified").textContent = `Tables and topics: ${told.join("; ")}`;
  $("verified").className = differing.length || verification.failure ? "trouble" : "quiet";
}

function showFigures(status) {
  const stream = status.stream, sums = status.sums;
  $("lag").textContent = stream ? duration(stream.lag_ms / 1000) : "…";
  // The lag is known only while the server sends.
  $("lag").className = stream && !stream.connected ? "old" : "";
  $("behind").textContent = stream && !stream.connected ? "not connected to the binlog"
    : stream && stream.lag_bytes !== null ? `${size(stream.lag_bytes)} of binlog behind` : "";
  $("events").textContent = rate(status.rates.events);
  $("events-sum").textContent = `${count(sums.events)} in all`;
  $("rows").textContent = rate(status.rates.rows);
  $("rows-sum").textContent = `${count(sums.reads)} in all, ${count(sums.discarded)} overtaken`;
  $("bytes").textContent = `${size(status.rates.bytes)}/s`;
  $("bytes-sum").textContent = `${size(sums.bytes)} in all, ${count(sums.batches)} batches`;
}

function tableOf(table) {
  const known = table.rows_expected !== null && table.rows_expected > 0;
  const share = known ? Math.min(1, table.rows_done / table.rows_expected) : 0;
  const told = [];
  if (known) told.push(`${Math.round(100 * share)} %`);
  told.push(`${count(table.rows_done)} rows${known ? ` of about ${count(table.rows_expected)}` : ""}`);
  if (known && table.rows_high - table.rows_low > table.rows_expected / 50) {
    told[told.length - 1] += ` (${count(table.rows_low)} to ${count(table.rows_high)})`;
  }
  if (table.rows_per_second !== null) told.push(`${count(table.rows_per_second)} rows/s`);
  if (table.seconds_left !== null) told.push(`${duration(table.seconds_left)} left`);
  const fill = element("i");
  if (known) fill.style.width = `${100 * share}%`;
  const bar = element("div", {class: known ? "bar" : "bar unknown", role: "progressbar", "aria-label": table.table}, fill);
  if (known) bar.setAttribute("aria-valuenow", String(Math.round(100 * share)));
  const made = element("div", {class: "table"},
    element("header", {}, element("b", {}, table.table), element("span", {class: "quiet"}, told.join(" · "))), bar,
    element("small", {}, `signal ${table.signal}${table.condition ? `, where ${table.condition}` : ""}; ${
      table.planned_key ? `read up to ${table.planned_key} of ${table.maximum_key}` : "not begun"}`));
  if (table.read_again) {
    made.append(element("div", {class: "warn"}, `${table.read_again} ranges are read again, one of them ${table.readings} times so far`));
  }
  if (table.lost_readings) {
    made.append(element("div", {class: "warn"}, `${count(table.lost_readings)} readings of its chunks were lost and repeated`));
  }
  if (table.quarantined.length) {
    const keys = table.quarantined.slice(0, 5).map((each) => each.lower === each.upper ? each.upper : `(${each.lower}, ${each.upper}]`).join("; ");
    made.append(element("div", {class: "warn"}, `given up (quarantine): keys ${keys}${table.quarantined.length > 5 ? "; …" : ""}`));
  }
  return made;
}

const button = (signal) => document.querySelector(`button[data-signal="${signal}"]`);

function showSnapshot(status) {
  const snapshot = status.snapshot, active = snapshot.tables.length + snapshot.waiting > 0;
  const told = active
    ? [`${snapshot.tables.length} being read, ${snapshot.waiting} waiting`,
       snapshot.retried ? `${count(snapshot.retried)} readings repeated` : "", snapshot.waits_for]
    : ["none"];
  if (snapshot.limits.length) told.push(`limits: ${snapshot.limits.map((each) =>
    `${each.name} ${count(each.most)}${each.measured === null ? "" : ` (now ${count(each.measured)})`}`).join(", ")}`);
  $("snapshot").textContent = told.filter(Boolean).join("; ");
  $("tables").replaceChildren(...snapshot.tables.map(tableOf));
  const more = snapshot.waiting - snapshot.waiting_first.length;
  $("waiting").textContent = snapshot.waiting ? `waiting: ${snapshot.waiting_first.join(", ")}${more > 0 ? ` and ${more} more` : ""}` : "";
  $("actions").hidden = !status.actions;
  button("pause-snapshot").disabled = snapshot.paused;
  button("resume-snapshot").disabled = !snapshot.paused;
}

// Draw a row for each window: the distance in the binlog from the stream's position to the window's high watermark.
function showWindows(status) {
  const stream = status.stream, snapshot = status.snapshot, windows = snapshot.windows.slice(0, 24);
  $("windows").textContent = snapshot.windows_in_flight
    ? `${snapshot.windows_in_flight}, that hold ${count(snapshot.rows_held)} rows which are read and not sent` : "none";
  const svg = $("windows-line"), width = Math.max(280, svg.clientWidth || 600), row = 18;
  svg.setAttribute("viewBox", `0 0 ${width} ${windows.length * row + 4}`);
  svg.style.height = `${windows.length ? windows.length * row + 4 : 0}px`;
  if (!stream || !windows.length) { svg.replaceChildren(); return; }
  const here = windows.filter((each) => each.file === stream.file).map((each) => each.pos - stream.pos);
  const reach = Math.max(1, ...here.map(Math.abs));
  const label = Math.min(190, width * .42), middle = label + (width - label) / 2, half = (width - label) / 2 - 8;
  // Left: windows that the stream has passed, which are being sent. Right: windows that wait. The scale is the square
  // root, because distances differ by orders of magnitude.
  const place = (distance) => middle + Math.sign(distance) * half * Math.sqrt(Math.min(1, Math.abs(distance) / reach));
  const shapes = [drawn("line", {x1: middle, x2: middle, y1: 0, y2: windows.length * row})];
  windows.forEach((each, i) => {
    const y = i * row + 3;
    const at = each.state === "reading" ? middle + half
      : each.file === stream.file ? place(each.pos - stream.pos)
      : middle + (each.state === "releasing" ? -half : half);
    const from = Math.min(middle, at), long = Math.max(6, Math.abs(at - middle));
    shapes.push(drawn("rect", {class: each.state, x: from, y, width: long, height: row - 6, rx: 3}));
    const text = drawn("text", {x: 0, y: y + 10});
    const sent = each.sent ? `, ${each.sent}/${each.parts} sent` : "";
    const told = `${each.table} ${count(each.rows)}${sent}`, most = Math.floor(label / 6.3);
    text.textContent = told.length > most ? `…${told.slice(-most + 1)}` : told;
    const title = drawn("title", {});
    title.textContent = `${each.table}: ${each.state}, ${count(each.rows)} rows, ${size(each.bytes)}${sent}${
      each.file ? `, high watermark ${each.file}:${each.pos}` : ""}`;
    text.append(title);
    shapes.push(text);
  });
  svg.replaceChildren(...shapes);
}

function showStream(status) {
  const stream = status.stream, rows = [];
  if (stream) {
    const purge = stream.purge_not_before_ms === null ? "not known"
      : stream.purge_not_before_ms === 0 ? "no purge by itself now" : `at ${moment(stream.purge_not_before_ms)} at the earliest`;
    rows.push(["position", `${stream.file}:${stream.pos.toLocaleString("en")}`],
      ["end of the binlog", stream.end_file ? `${stream.end_file}:${stream.end_pos.toLocaleString("en")}${
        stream.connected ? "" : ", before the connection was lost"}` : "not known"],
      ["connected", `${stream.connected ? "yes" : "no"}, ${stream.disconnects} connections lost`],
      ["batch", `${stream.batch.toLocaleString("en")}${stream.batch_ms ? `, took ${stream.batch_ms} ms` : ""}`],
      ["read ahead", `${size(stream.buffered_bytes)} of ${size(stream.buffer_bytes)}`],
      ["oldest binlog file needed", `${stream.needs_file || "none yet"}; purged by the server: ${purge}`],
      ["prepared XA transactions", stream.prepared.length ? stream.prepared.join(", ") : "none"],
      ["delivered", stream.delivered || "nothing"]);
  }
  $("stream").replaceChildren(...rows.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

function showTold(status) {
  const told = status.notifications.slice().reverse().map((each) => element("li", {},
    element("time", {}, clock(each.timestamp_ms)), element("b", {}, each.type),
    ` ${each.id} ${each.fields.scanned_collection || each.fields.data_collections || ""} ${each.fields.status || ""}`));
  $("told").replaceChildren(...(told.length ? told : [element("li", {class: "quiet"}, "none since the start")]));
  const ended = status.snapshot.finished.slice().reverse().map((each) => {
    const made = element("li", {}, element("time", {}, clock(each.ended_ms)), element("b", {}, each.table),
      ` ${each.status}, ${count(each.rows)} rows`);
    if (each.missing_keys) made.append(element("div", {class: "warn"}, `without the keys ${each.missing_keys}`));
    if (each.reason) made.append(element("div", {class: "warn"}, each.reason));
    return made;
  });
  $("finished").replaceChildren(...(ended.length ? ended : [element("li", {class: "quiet"}, "none since the start")]));
}

// Milliseconds for an answer of the job. A job that is stopped (SIGSTOP), or behind a cut cable, gives no error.
const LONGEST_MS = 10000;

async function ask(path, options) {
  const answer = await fetch(path, {cache: "no-store", ...options});
  return [answer.ok, await answer.json()];
}

let points = [];
async function renew() {
  try {
    const [, status] = await ask("status", {signal: AbortSignal.timeout(LONGEST_MS)});
    points.push([status.written_ms, status.stream ? status.stream.lag_ms : 0, status.rates.events, status.rates.rows, status.rates.bytes]);
    points = points.slice(-900);
    for (const show of [showState, showGap, showVerification, showFigures, showSnapshot, showWindows, showStream, showTold]) show(status);
    showHistory(points);
  } catch (error) {
    const name = $("prefix").textContent;
    document.title = `${name}: gone`;
    document.body.classList.add("gone");
    $("state").textContent = "gone";
    $("state").className = "state gone";
    $("trouble").hidden = false;
    $("trouble").textContent = `The job does not answer any more: ${error.message}`;
  }
  setTimeout(renew, document.hidden ? 5000 : 1000);
}

async function begin() {
  try {
    [, points] = await ask("history", {signal: AbortSignal.timeout(LONGEST_MS)});
    const [, settings] = await ask("settings", {signal: AbortSignal.timeout(LONGEST_MS)});
    $("settings").replaceChildren(...settings.map((each) => element("tr", {}, element("td", {}, each.name),
      element("td", {}, each.value), element("td", {class: "quiet"}, [each.origin, each.fate, each.note].filter(Boolean).join("; ")))));
  } catch (error) { /* renew() says so */ }
  renew();
}

function answered(text, kind = "") {
  $("answer").textContent = text;
  $("answer").className = kind;
}

$("actions").noValidate = true;  // the server says that the token is missing, in the same place as other answers
$("actions").addEventListener("submit", async (event) => {
  event.preventDefault();
  const type = event.submitter ? event.submitter.dataset.signal : "execute-snapshot";
  const named = $("collections").value.split(",").map((each) => each.trim()).filter(Boolean);
  const data = type === "execute-snapshot" || type === "stop-snapshot"
    ? {type: "incremental", ...(named.length ? {"data-collections": named} : {})}
    : type === "incsnap-throttle" ? {[$("limited").value]: Number($("limit").value)} : {};
  if (type === "stop-snapshot" && !named.length && !confirm("Stop the snapshots of all tables?")) return;
  answered("…");
  try {
    const [ok, answer] = await ask("signal", {method: "POST", body: JSON.stringify({type, data}),
      headers: {Authorization: `Bearer ${$("token").value}`, "Content-Type": "application/json"}});
    const warned = (answer.warnings || []).map((each) => `. Warning: ${each}`).join("");
    if (ok) answered(`${type} is sent; its id is ${answer.id}${warned}`);
    else answered(`${answer.problem}${answer.hint ? ` → ${answer.hint}` : ""}`, "bad");
  } catch (error) { answered(`The job does not answer: ${error.message}`, "bad"); }
});

begin();
