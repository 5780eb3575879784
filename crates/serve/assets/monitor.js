// Shows the data of the server: docs/reference/control.md documents every field. `data-state` of the root element is
// `live` while frames arrive, `preparing` before the device is served, `lost` when no frames arrive, and `failed`, with
// `data-failure`, after an error. `make check-monitor` reads it.
(() => {
  "use strict";
  const root = document.documentElement;
  const at = (id) => document.getElementById(id);
  // Maximum number of drawn frames: five minutes.
  const most = 600;
  const operations = [["read", "reads"], ["write", "writes"], ["trim", "TRIMs"], ["write_zeroes", "write zeroes"],
    ["flush", "flushes"]];
  const darkness = window.matchMedia("(prefers-color-scheme: dark)");
  // Colors with sufficient contrast. Dashes distinguish the lines as well.
  const colors = () => (darkness.matches ? ["#7cb7ff", "#f0a35a", "#8bd08b", "#e08be0"] :
    ["#0b57a4", "#b35900", "#1a6b2a", "#8a2a8a"]);
  const dashes = ["solid", "dash", "dot", "dashdot"];
  let frames = [];
  let latest = null;
  let blocks = null;
  let info = {};
  let cursor = 0;
  let connected = false;
  // Time of the last frame, by the clock of this page.
  let heard = 0;
  // Data shown while the page is paused.
  let held = null;
  const shown = () => held || { frames, latest, blocks };

  function failed(what) {
    root.dataset.state = "failed";
    root.dataset.failure = String(what);
    trouble(`The page failed: ${what}`);
  }
  window.addEventListener("error", (event) => failed(event.message));
  window.addEventListener("unhandledrejection", (event) => failed(event.reason));

  function trouble(text) {
    at("trouble").textContent = text || "";
    at("trouble").hidden = !text;
  }

  // --- numbers -----------------------------------------------------------------------------------------------------
  const known = (value) => value !== null && value !== undefined && Number.isFinite(value);
  const whole = (value) => Math.round(value).toLocaleString("en-US");
  function short(value) {
    if (!known(value)) return "–";
    const steps = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e4, "k", 1e3]];
    for (const [from, letter, by] of steps) {
      if (Math.abs(value) >= from) return `${Number((value / (by || from)).toPrecision(3))} ${letter}`;
    }
    return Math.abs(value) >= 100 || Number.isInteger(value) ? whole(value) : String(Number(value.toPrecision(3)));
  }
  const percent = (share) => (known(share) ? `${Number((share * 100).toPrecision(2))} %` : "–");
  function time(us) {
    if (!known(us)) return "–";
    if (us >= 1e6) return `${Number((us / 1e6).toPrecision(3))} s`;
    return us >= 1e3 ? `${Number((us / 1e3).toPrecision(3))} ms` : `${Number(us.toPrecision(3))} µs`;
  }
  function bytes(count) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let unit = 0;
    for (; count >= 1024 && unit < units.length - 1; unit += 1) count /= 1024;
    return `${Number(count.toPrecision(3))} ${units[unit]}`;
  }
  const clock = (frame) => new Date(frame.unix_s * 1000).toLocaleTimeString("en-GB");
  const sumOf = (counts) => Object.values(counts).reduce((all, count) => all + count, 0);
  const sum = (frame, what) => operations.reduce((all, [name]) => all + frame.requests[name][what], 0);

  // --- tiles and tables --------------------------------------------------------------------------------------------
  function setText(element, text) {
    if (element.textContent !== text) element.textContent = text;
  }
  function tiles(frame) {
    const { requests: { read, write, trim }, flash, lateness, mix } = frame;
    const isMerging = Object.keys(flash.merges).length > 0;
    const all = [
      ["IOPS", short(sum(frame, "iops"))],
      ["MiB/s", short(sum(frame, "mib_per_s"))],
      ["read requests", short(read.count)],
      ["write requests", short(write.count)],
      ["sectors read", short(read.sectors)],
      ["sectors written", short(write.sectors)],
      ["TRIM requests", short(trim.count)],
      ["reads : writes", known(mix.read_share) ? `${Math.round(mix.read_share * 100)} : ${100 - Math.round(mix.read_share * 100)} %` : "–"],
      ["mean request", known(mix.mean_bytes) ? bytes(mix.mean_bytes) : "–"],
      isMerging ? ["merges", short(sumOf(flash.merges))] : ["GC victims", short(flash.gc_victims)],
      ["amplification", short(flash.write_amplification)],
      ["pages merged", short(flash.programs.merge)],
      ["min. free", short(flash.free_blocks_min)],
      ["late replies", percent(lateness.share), lateness.faithful === false],
    ];
    const list = at("tiles");
    all.forEach(([name, value, late], index) => {
      if (!list.children[index]) {
        list.append(document.createElement("div"));
        list.children[index].append(document.createElement("dt"), document.createElement("dd"));
      }
      const tile = list.children[index];
      tile.title = name;
      tile.classList.toggle("late", Boolean(late));
      setText(tile.children[0], name);
      setText(tile.children[1], value);
    });
  }

  // Fills a table, and keeps unchanged elements.
  function table(id, head, rows) {
    const place = at(id);
    if (!place.tHead) {
      const row = place.createTHead().insertRow();
      head.forEach((name) => {
        const cell = document.createElement("th");
        cell.scope = "col";
        cell.textContent = name;
        row.append(cell);
      });
      place.createTBody();
    }
    const body = place.tBodies[0];
    while (body.rows.length > rows.length) body.deleteRow(-1);
    rows.forEach((cells, index) => {
      const row = body.rows[index] || body.insertRow();
      while (row.cells.length < cells.length) {
        const cell = document.createElement(row.cells.length ? "td" : "th");
        if (!row.cells.length) cell.scope = "row";
        else cell.dataset.name = head[row.cells.length] || "";
        row.append(cell);
      }
      cells.forEach((text, column) => setText(row.cells[column], text));
    });
  }

  function logRows(logs) {
    if (!logs) return [];
    return [...Object.entries(logs.writes).map(([kind, units]) => [kind === "all" ? "units to log blocks" : `units to ${kind} log blocks`,
      whole(units)]), ["log blocks reclaimed", whole(logs.reclaimed)],
    ["associativity: all, now", `${short(logs.associativity)}, ${short(logs.associativity_now)}`],
    ["copies saved by TRIM", whole(logs.copies_saved)], ["trimmed, not merged yet", whole(logs.trim_list)]];
  }

  function tables(frame) {
    table("requests", ["", "requests", "bytes", "mean size", "sectors", "errors", "IOPS", "MiB/s", "mean", "p50", "p99", "p99.9", "max"],
      operations.map(([name, shown]) => {
        const r = frame.requests[name];
        return [shown, whole(r.count), bytes(r.bytes), r.count ? bytes(r.bytes / r.count) : "–", whole(r.sectors), whole(r.errors), short(r.iops), short(r.mib_per_s),
          time(r.mean_us), time(r.p50_us), time(r.p99_us), time(r.p99_9_us), time(r.max_us)];
      }));
    const programs = Object.entries(frame.flash.programs).filter(([, pages]) => pages > 0);
    table("programs", ["cause", "pages"], programs.map(([cause, pages]) => [cause.replace("_", " "), whole(pages)]));
    const parallel = frame.flash.parallel.map(({ kind, dies, planes, commands }) =>
      [kind.replace("_", " "), String(dies), String(planes), whole(commands)]);
    table("parallel", ["command", "dies", "planes", "commands"], parallel.length ? parallel : [["none", "", "", ""]]);
    const late = frame.lateness;
    table("late", ["cause", "replies"], [...Object.entries(late.causes).map(([cause, count]) => [cause, whole(count)]),
      ["late", whole(late.late)], ["all", whole(late.replies)]]);
    const { flash, buffer } = frame;
    table("flash", ["", ""], [["pages read", whole(flash.pages_read)], ["pages programmed", whole(flash.pages_programmed)],
      ["blocks erased", whole(flash.blocks_erased)],
      ["bad blocks", whole(flash.bad_blocks)], ["accepts writes", flash.read_only ? "no: read-only" : "yes"],
      ["failed programs, erases", `${whole(flash.programs_failed)}, ${whole(flash.erases_failed)}`],
      ["uncorrectable reads", whole(flash.uncorrectable_reads)], [`units moved by ${Object.keys(flash.merges).length ? "merges" : "GC"}`, whole(flash.units_moved)],
      ["units trimmed", whole(flash.units_trimmed)], ["copy-backs", whole(flash.copy_backs)],
      ...Object.entries(flash.merges).map(([kind, count]) => [`${kind} merges`, whole(count)]),
      ...logRows(flash.log_blocks),
      ["map: hits, misses", `${whole(flash.map_hits)}, ${whole(flash.map_misses)}`],
      ["free blocks", whole(flash.free_blocks)], ["buffer: units, dirty", `${whole(buffer.units)}, ${whole(buffer.dirty)}`],
      ["payload memory", bytes(frame.payload_bytes)]]);
    const members = frame.members || [];
    at("members").hidden = !members.length;
    table("members", ["member", "state", "outstanding", "busy", "pages read/s", "programmed/s", "pages read",
      "programmed", "GC victims", "blocks erased", "free blocks (least)", "bad blocks"], members.map((member, number) =>
      [String(number), member.read_only ? `${member.state}, read-only` : member.state, whole(member.outstanding),
        `${(member.busy * 100).toFixed(0)} %`, short(member.pages_read_per_s), short(member.pages_programmed_per_s),
        whole(member.pages_read), whole(member.pages_programmed), whole(member.gc_victims), whole(member.blocks_erased),
        whole(member.free_blocks_min), whole(member.bad_blocks)]));
    const clients = (frame.clients || []).map((client) => [client.process ? `${client.process} (${client.pid})` :
      client.address, client.frontend, `${whole(client.connected_s)} s`, whole(client.in_progress),
      client.turns ? `${whole(client.late_turns)} of ${whole(client.turns)}` : "-"]);
    table("clients", ["client", "by", "since", "outstanding", "late turnarounds"],
      clients.length ? clients : [["none", "", "", "", ""]]);
  }

  // --- charts ------------------------------------------------------------------------------------------------------
  function layout(extra) {
    const [text, line] = darkness.matches ? ["#e6e8eb", "#3a414b"] : ["#1b1f24", "#d0d7de"];
    const axis = { gridcolor: line, linecolor: text, zerolinecolor: line, tickcolor: text, automargin: true };
    return { paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", margin: { l: 44, r: 8, t: 4, b: 24 },
      font: { color: text, size: 11, family: 'system-ui, "DejaVu Sans", sans-serif' }, hovermode: "x",
      showlegend: true, legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", font: { size: 11 } },
      xaxis: { ...axis, ticksuffix: " s", nticks: 6 }, yaxis: { ...axis, rangemode: "tozero", nticks: 5 }, ...extra };
  }
  const options = { displayModeBar: false, responsive: true };

  // Draws lines over the seconds before now, or over the time of day. `lines` are pairs of a name and a function of a
  // frame.
  function chart(id, lines, extra) {
    const { frames } = shown();
    const now = frames.length ? frames[frames.length - 1].wall_s : 0;
    const isClock = at("axis").value === "clock";
    // The library shows a time without a zone unchanged, so pass local time.
    const local = (frame) => new Date((frame.unix_s - new Date(frame.unix_s * 1000).getTimezoneOffset() * 60) * 1000)
      .toISOString().slice(0, -1);
    const x = frames.map((frame) => (isClock ? local(frame) : frame.wall_s - now));
    const times = frames.map(clock);
    const data = lines.map(([name, of, more], index) => ({ x, y: frames.map((frame, number) => of(frame, number) ?? null),
      name, mode: "lines", customdata: times, hovertemplate: "%{y:.4~g} at %{customdata}", line: { color: colors()[index], dash: dashes[index], width: 1.6 }, ...more }));
    const look = layout(extra);
    look.xaxis = isClock ? { ...look.xaxis, type: "date", ticksuffix: "", tickformat: "%H:%M:%S", nticks: 4 } :
      { ...look.xaxis, type: "linear" };
    Plotly.react(at(`plot-${id}`), data, look, options);
    const last = frames[frames.length - 1];
    const values = lines.map(([name, of]) => `${name} ${short(last ? of(last, frames.length - 1) : null)}`);
    at(`plot-${id}`).setAttribute("aria-label", `${at(`plot-${id}`).parentElement.querySelector("figcaption").firstChild
      .textContent.trim()}: now ${values.join(", ")}; the table below has all figures`);
  }

  function bars(id, names, shares) {
    const x = shares.map((_, index) => index);
    const patterns = ["", "/"];
    const data = names.map((name, which) => ({ type: "bar", name, x, y: shares.map((share) => share[which] * 100),
      marker: { color: colors()[which], pattern: { shape: patterns[which] } } }));
    const look = layout({ barmode: "stack", bargap: shares.length > 40 ? 0 : 0.15, showlegend: false });
    look.xaxis = { ...look.xaxis, ticksuffix: "", nticks: 8, rangemode: "normal" };
    look.yaxis.range = [0, 100];
    look.yaxis.nticks = 3;
    Plotly.react(at(`plot-${id}`), data, look, options);
    const mean = (which) => (shares.length ? shares.reduce((all, share) => all + share[which], 0) / shares.length : 0);
    at(`plot-${id}`).setAttribute("aria-label", `${shares.length} ${id}, mean: ${names.map((name, which) =>
      `${name} ${percent(mean(which))}`).join(", ")}`);
  }

  // Returns the operation of the latency chart. Until the user chooses one, it is the one that had the most requests when
  // the first of them were seen.
  function shownOperation() {
    const choice = at("operation");
    if (!choice.dataset.chosen) {
      const count = ({ value }) => shown().frames.reduce((all, frame) => all + frame.requests[value].count, 0);
      const [most] = [...choice.options].sort((one, other) => count(other) - count(one));
      choice.value = most.value;
      choice.dataset.chosen = count(most) ? "most" : "";
    }
    return choice.value;
  }

  function charts() {
    const of = (operation, what) => (frame) => frame.requests[operation][what];
    chart("iops", [["reads", of("read", "iops")], ["writes", of("write", "iops")], ["TRIMs", of("trim", "iops")]]);
    chart("bandwidth", [["read", of("read", "mib_per_s")], ["written", of("write", "mib_per_s")]]);
    const operation = shownOperation();
    chart("latency", [["p50", of(operation, "p50_us")], ["p99", of(operation, "p99_us")],
      ["p99.9", of(operation, "p99_9_us")], ["max", of(operation, "max_us")]], {});
    chart("lateness", [["p50", (frame) => frame.lateness.p50_us], ["p99", (frame) => frame.lateness.p99_us],
      ["max", (frame) => frame.lateness.max_us]]);
    chart("queue", [["mean", (frame) => frame.queue_mean], ["at the end", (frame) => frame.outstanding]]);
    const rate = (what) => (frame, number) => {
      const before = shown().frames[number - 1];
      return before ? Math.max(0, (frame.flash[what] - before.flash[what]) / frame.wall_span_s) : null;
    };
    chart("gc", [["write amplification", (frame) => frame.flash.write_amplification_now],
      ["erases per second (right)", rate("blocks_erased"), { yaxis: "y2" }]],
    { yaxis2: { overlaying: "y", side: "right", rangemode: "tozero", nticks: 5, showgrid: false, automargin: true } });
    const { latest } = shown();
    if (latest) mergeCharts(latest.flash);
    if (latest) {
      bars("channels", ["data", "commands"], latest.channels);
      bars("dies", ["cells busy", "otherwise held"], latest.dies);
    }
  }

  // Draws merges and associativity, if the device merges blocks.
  function mergeCharts(flash) {
    const kinds = ["switch", "partial", "full"].filter((kind) => kind in flash.merges);
    at("merges").hidden = !kinds.length;
    at("associativity").hidden = !flash.log_blocks;
    if (kinds.length) {
      chart("merges", kinds.map((kind) => [kind, (frame) => (frame.flash.merges_per_s || {})[kind]]));
    }
    if (flash.log_blocks) {
      const of = (what) => (frame) => (frame.flash.log_blocks || {})[what];
      chart("associativity", [["now", of("associativity_now"), { mode: "lines+markers", marker: { size: 4 } }],
        ["all merges", of("associativity")]]);
    }
  }

  // --- pause and export --------------------------------------------------------------------------------------------
  function pause() {
    held = held ? null : { frames: frames.slice(), latest, blocks };
    at("pause").setAttribute("aria-pressed", String(Boolean(held)));
    setText(at("pause"), held ? "Continue" : "Pause");
    drawSoon();
  }

  // Returns the shown frames, one per row.
  function csv() {
    const of = (name, get) => [name, get];
    const columns = [of("time", (f) => new Date(f.unix_s * 1000).toISOString()), of("wall_s", (f) => f.wall_s),
      of("simulated_s", (f) => f.simulated_s), of("speed", (f) => f.speed),
      ...operations.flatMap(([name]) => ["count", "errors", "iops", "mib_per_s", "mean_us", "p50_us", "p99_us",
        "p99_9_us", "max_us"].map((what) => of(`${name}_${what}`, (f) => f.requests[name][what]))),
      of("outstanding", (f) => f.outstanding), of("queue_mean", (f) => f.queue_mean),
      ...["write_amplification", "write_amplification_now", "gc_victims", "blocks_erased", "units_moved", "free_blocks",
        "free_blocks_min", "bad_blocks", "programs_failed", "erases_failed", "uncorrectable_reads", "read_only"]
        .map((what) => of(what, (f) => f.flash[what])),
      ...Object.keys((shown().latest || { flash: { merges: {} } }).flash.merges).map((kind) =>
        of(`merges_${kind}`, (f) => f.flash.merges[kind])),
      of("associativity_now", (f) => (f.flash.log_blocks || {}).associativity_now),
      ...["read_share", "read_share_now", "mean_bytes", "mean_bytes_now"].map((what) => of(what, (f) => f.mix[what])),
      ...["replies", "late", "p50_us", "p99_us", "max_us"].map((what) => of(`lateness_${what}`, (f) => f.lateness[what]))];
    const rows = shown().frames.map((frame) => columns.map(([, get]) => get(frame) ?? "").join(","));
    return `${[columns.map(([name]) => name).join(","), ...rows].join("\n")}\n`;
  }

  function save() {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
    link.download = `${(info.device || "floatgate").replace(/[^A-Za-z0-9_.-]/g, "-")}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  // --- block map ---------------------------------------------------------------------------------------------------
  // From dark to light in even steps, so that it is readable without color (after cividis).
  const stops = [[0, 32, 77], [62, 75, 107], [124, 123, 120], [187, 175, 113], [255, 234, 70]];
  function color(share) {
    const place = Math.min(1, Math.max(0, share)) * (stops.length - 1);
    const first = Math.min(stops.length - 2, Math.floor(place));
    const mix = stops[first].map((value, index) => Math.round(value + (stops[first + 1][index] - value) * (place - first)));
    return `rgb(${mix.join(",")})`;
  }

  // Colors of kinds of blocks. Kinds of external schemes get those at the end. Letters distinguish them as well.
  const kindColors = { free: null, "awaiting erase": "#8c8c8c", data: "#b7c3d0", bad: "#454545",
    "target of a full merge": "#cc79a7", "sequential log": "#0072b2", "random log": "#e69f00", log: "#e69f00",
    "hot log": "#d55e00", "cold log": "#56b4e9" };
  const otherColors = ["#009e73", "#f0e442", "#7a3fa0", "#004d40"];
  const byKind = () => at("color").value === "kind" && Boolean(shown().blocks && shown().blocks.kinds);
  const kindColor = (kind) => {
    const name = info.block_kinds[kind];
    return name in kindColors ? kindColors[name] : otherColors[kind % otherColors.length];
  };
  const kindLetter = (kind) => (info.block_kinds[kind] === "data" ? "" : info.block_kinds[kind][0].toUpperCase());

  // Shows the kinds of blocks with their numbers, in place of the scale.
  function tellKinds() {
    const { blocks } = shown();
    const list = at("kinds");
    list.hidden = !byKind();
    for (const id of ["legend", "keys"]) at(id).hidden = byKind();
    if (list.hidden) return;
    info.block_kinds.forEach((name, kind) => {
      if (!list.children[kind]) {
        list.append(document.createElement("li"));
        list.children[kind].append(document.createElement("span"), document.createTextNode(""));
        list.children[kind].firstChild.className = "mark";
        list.children[kind].firstChild.style.background = kindColor(kind) || "transparent";
      }
      const letter = kindLetter(kind) && kind ? ` (${kindLetter(kind)})` : "";
      setText(list.children[kind].lastChild, ` ${name}${letter} ${whole(blocks.blocks_of_kind[kind] || 0)}`);
    });
  }

  // Returns the value that determines the color of each cell, and the ends of the scale.
  function shades() {
    const { blocks } = shown();
    const mode = at("color").value;
    if (byKind()) return { values: blocks.kinds.map((kind) => (kind ? 1 : null)), low: 0, high: 1, unit: "" };
    if (mode === "valid") return { values: blocks.valid.map((v) => (v === 255 ? null : v)), low: 0, high: 100, unit: " %" };
    const list = mode === "erases" ? blocks.erases : mode === "writes" ? blocks.writes : blocks.age_s.map((age) => (age < 0 ? null : age));
    const there = list.filter(known);
    const low = there.length ? Math.min(...there) : 0;
    const high = there.length ? Math.max(...there) : 0;
    return { values: list, low: mode === "age" ? 0 : low, high, unit: mode === "age" ? " s" : "" };
  }

  // Wraps long rows if there are few of them, so that cells are not thin lines.
  function grid(canvas) {
    const { blocks } = shown();
    const { width, height } = canvas;
    let lines = 1;
    const squareness = (n) => Math.abs(Math.log((width / Math.ceil(blocks.columns / n)) / (height / (blocks.rows * n))));
    while (lines < blocks.columns && squareness(lines + 1) < squareness(lines)) lines += 1;
    const columns = Math.ceil(blocks.columns / lines);
    return { lines, columns, w: width / columns, h: height / (blocks.rows * lines) };
  }

  function place(index, { lines, columns, w, h }) {
    const { blocks } = shown();
    const [row, column] = [Math.floor(index / blocks.columns), index % blocks.columns];
    return [(column % columns) * w, (row * lines + Math.floor(column / columns)) * h];
  }

  function drawMap() {
    const { blocks } = shown();
    const canvas = at("map");
    const scale = window.devicePixelRatio || 1;
    canvas.width = Math.round(canvas.clientWidth * scale);
    canvas.height = Math.round(canvas.clientHeight * scale);
    if (!blocks || !canvas.width) return;
    const pen = canvas.getContext("2d");
    const cells = grid(canvas);
    const { values, low, high, unit } = shades();
    const style = getComputedStyle(root);
    const [ground, text] = [style.getPropertyValue("--ground"), style.getPropertyValue("--text")];
    const kinds = byKind() ? blocks.kinds : null;
    pen.font = `bold ${Math.min(14 * scale, Math.floor(Math.min(cells.w, cells.h)))}px system-ui, sans-serif`;
    [pen.textAlign, pen.textBaseline] = ["center", "middle"];
    const gap = cells.w > 4 && cells.h > 4 ? 1 : 0;
    pen.fillStyle = ground;
    pen.fillRect(0, 0, canvas.width, canvas.height);
    const mark = darkness.matches ? "#ff8a70" : "#d1242f";
    values.forEach((value, index) => {
      const [x, y] = place(index, cells);
      const box = [x, y, Math.max(1, cells.w - gap), Math.max(1, cells.h - gap)];
      if (known(value)) {
        const kind = kinds && kinds[index];
        pen.fillStyle = kinds ? kindColor(kind) : color(high > low ? (value - low) / (high - low) : 0.5);
        pen.fillRect(...box);
        if (kinds && kindLetter(kind) && Math.min(cells.w, cells.h) >= 9) {
          pen.fillStyle = ["awaiting erase", "bad", "sequential log"].includes(info.block_kinds[kind]) ? "#ffffff" : "#000000";
          pen.fillText(kindLetter(kind), x + box[2] / 2, y + box[3] / 2);
        }
      }
      // Kinds have letters in place of marks.
      if (kinds) return;
      if (blocks.marks[index] & 4) {
        pen.fillStyle = known(value) && (value - low) / (high - low || 1) < 0.5 ? "#ffffff" : text;
        if (known(value) && (value - low) / (high - low || 1) >= 0.5) pen.fillStyle = "#000000";
        pen.beginPath();
        pen.arc(x + cells.w / 2, y + cells.h / 2, Math.max(1, Math.min(cells.w, cells.h) / 4), 0, 7);
        pen.fill();
      }
      if (blocks.marks[index] & 2) {
        pen.strokeStyle = mark;
        pen.lineWidth = Math.max(1, Math.min(3, cells.w / 4));
        pen.strokeRect(x + 1, y + 1, Math.max(1, cells.w - 2 - gap), Math.max(1, cells.h - 2 - gap));
      }
    });
    if (document.activeElement === canvas) {
      const [x, y] = place(cursor, cells);
      pen.strokeStyle = text;
      pen.lineWidth = 2;
      pen.strokeRect(x, y, Math.max(3, cells.w), Math.max(3, cells.h));
    }
    tellKinds();
    setText(at("low"), `${short(low)}${unit}`);
    setText(at("high"), `${short(high)}${unit}`);
  }

  function drawScale() {
    const pen = at("scale").getContext("2d");
    for (let x = 0; x < 80; x += 1) {
      pen.fillStyle = color(x / 79);
      pen.fillRect(x, 0, 1, 10);
    }
  }

  function tellCell() {
    const { blocks } = shown();
    if (!blocks) return;
    cursor = Math.min(cursor, blocks.valid.length - 1);
    const [row, column] = [Math.floor(cursor / blocks.columns), cursor % blocks.columns];
    const range = (first, count, all) => {
      const last = Math.min(first + count, all) - 1;
      return last > first ? `s ${first}–${last}` : ` ${first}`;
    };
    const planes = range(row * blocks.planes_per_row, blocks.planes_per_row, info.planes);
    const numbers = range(column * blocks.blocks_per_cell, blocks.blocks_per_cell, info.blocks_per_plane);
    const kind = blocks.kinds ? `${(info.block_kinds || [])[blocks.kinds[cursor]]}, ` : "";
    const valid = blocks.valid[cursor] === 255 ? "free" : `${blocks.valid[cursor]} % valid`;
    const age = blocks.age_s[cursor] < 0 ? "" : `, erased ${short(blocks.age_s[cursor])} s ago`;
    const marks = [[1, "being written"], [2, "being collected"], [8, "holds the map"], [16, "being migrated"]]
      .filter(([bit]) => blocks.marks[cursor] & bit).map(([, name]) => `, ${name}`).join("");
    setText(at("cell"), `plane${planes}, block${numbers}: ${kind}${valid}, ${whole(blocks.writes[cursor])} units written, ` +
      `${whole(blocks.erases[cursor])} erases${age}${marks}`);
  }

  function move(event) {
    const { blocks } = shown();
    const canvas = at("map");
    if (!blocks) return;
    const cells = grid(canvas);
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -cells.columns, ArrowDown: cells.columns,
      Home: -blocks.valid.length, End: blocks.valid.length };
    if (!(event.key in steps)) return;
    event.preventDefault();
    cursor = Math.min(blocks.valid.length - 1, Math.max(0, cursor + steps[event.key]));
    tellCell();
    drawMap();
  }

  function point(event) {
    const { blocks } = shown();
    const canvas = at("map");
    if (!blocks) return;
    const cells = grid(canvas);
    const scale = canvas.width / canvas.clientWidth;
    const line = Math.floor((event.offsetY * scale) / cells.h);
    const column = Math.floor((event.offsetX * scale) / cells.w);
    const inRow = (line % cells.lines) * cells.columns + column;
    const index = Math.floor(line / cells.lines) * blocks.columns + inRow;
    if (inRow < blocks.columns && index >= 0 && index < blocks.valid.length) {
      cursor = index;
      tellCell();
    }
  }

  // --- updates ------------------------------------------------------------------------------------------------------
  function showInfo(status) {
    info = status.info;
    setText(at("device"), info.device);
    document.title = `${info.device} – Floatgate monitor`;
    setText(at("about"), `${bytes(info.logical_bytes)} visible of ${bytes(info.physical_bytes)}; ${info.channels} channels, ` +
      `${info.dies} dies, ${info.planes} planes of ${info.blocks_per_plane} blocks; at ${[...info.addresses, ...(info.vhost_user ? [`vhost-user ${info.vhost_user}`] : []), ...info.nvme.map((address) => `NVMe tcp://${address}`)].join(", ")}`);
    at("control").hidden = !status.controls;
    at("read-only").hidden = status.controls;
    at("control").querySelector("[value=power-cut]").hidden = !info.power_cut;
    at("faults").hidden = !info.faults;
    const kind = at("color").querySelector("[value=kind]");
    const hasKinds = Boolean((info.block_kinds || []).length);
    // Kinds are shown first, unless the user has chosen.
    [kind.hidden, kind.disabled] = [!hasKinds, !hasKinds];
    if (hasKinds && !at("color").dataset.chosen) at("color").value = "kind";
  }

  function showFrame(frame) {
    connected = true;
    heard = performance.now();
    latest = frame;
    if (frame.preparing) {
      drawSoon();
      return;
    }
    const last = frames[frames.length - 1];
    // A restarted server counts from the beginning.
    if (last && frame.number <= last.number) frames = [];
    frames.push(frame);
    frames = frames.slice(-most);
    drawSoon();
  }

  // Draws frames together that arrive while the page is busy, and leaves half of the time for the user: on a slow
  // machine, drawing must not delay buttons.
  let waits = false;
  let spent = 0;
  function drawSoon() {
    if (waits) return;
    waits = true;
    setTimeout(() => requestAnimationFrame(() => {
      const began = performance.now();
      waits = false;
      if (latest && latest.preparing) prepare(latest);
      else if (latest) draw(shown().latest);
      spent = performance.now() - began;
    }), spent);
  }

  function setState(state) {
    if (root.dataset.state !== "failed") root.dataset.state = connected ? state : "lost";
  }

  // Shows the progress of the preparation, before the device is served.
  function prepare(frame) {
    const { what, share } = frame.preparing;
    const told = known(share) ? `${what}, ${Math.floor(share * 100)} %` : what;
    at("preparing").hidden = false;
    setText(at("preparing").firstElementChild, `Not ready yet: ${told}. Clients wait.`);
    if (known(share)) at("preparing").lastElementChild.value = share;
    else at("preparing").lastElementChild.removeAttribute("value");
    if (connected) setText(at("state"), told);
    setState("preparing");
  }

  // Shows the current speed in the field, unless the user is typing there.
  function showSpeed(frame) {
    const field = at("speed");
    if (!field.dataset.typed && document.activeElement !== field) field.value = known(frame.speed) ? frame.speed : "";
    field.disabled = !known(frame.speed);
    at("control").querySelector("[value=speed]").disabled = !known(frame.speed);
    field.title = known(frame.speed) ? "simulated seconds per second of real time" :
      "as fast as possible: the server runs with --no-delay";
  }

  const isOfReadOnly = (warning) => warning.startsWith("the device is read-only");
  function alarm(frame) {
    const { flash } = frame;
    const why = (frame.warnings || []).find(isOfReadOnly) || "the device is read-only";
    const text = flash.read_only ? `${why[0].toUpperCase()}${why.slice(1)}. ${whole(flash.bad_blocks)} bad ` +
      `blocks, ${whole(flash.programs_failed)} failed programs, ${whole(flash.erases_failed)} failed erases, ` +
      `${whole(sum(frame, "errors"))} failed requests.` : "";
    setText(at("alarm"), text);
    at("alarm").hidden = !text;
  }

  function draw(frame) {
    at("preparing").hidden = true;
    alarm(frame);
    showSpeed(latest);
    const warnings = (frame.warnings || []).filter((warning) => !(frame.flash.read_only && isOfReadOnly(warning)));
    trouble([frame.fatal_error, ...warnings].filter(Boolean).join(" — "));
    const pace = known(frame.speed) ? `speed ${frame.speed}` : "as fast as possible";
    const times = `${short(frame.wall_s)} s, simulated ${Number(frame.simulated_s.toFixed(2))} s`;
    if (connected) setText(at("state"), `${held ? `paused at ${clock(frame)}` : "live"}: ${times} (${pace})`);
    tiles(frame);
    tables(frame);
    charts();
    drawMap();
    root.dataset.frames = frames.length;
    root.dataset.blocks = blocks ? blocks.valid.length : 0;
    setState("live");
  }

  // Marks the shown data as outdated.
  function lose(why) {
    connected = false;
    if (root.dataset.state !== "failed") root.dataset.state = "lost";
    const last = latest ? `; last seen at ${clock(latest)}` : "";
    setText(at("state"), `${why}${last}; reconnecting`);
  }

  function listen() {
    const source = new EventSource("api/events");
    source.addEventListener("frame", (event) => showFrame(JSON.parse(event.data)));
    source.addEventListener("blocks", (event) => {
      blocks = JSON.parse(event.data);
      drawSoon();
    });
    source.addEventListener("open", () => fetch("api/status").then((answer) => answer.json()).then(showInfo).catch(() => {}));
    source.addEventListener("error", () => {
      lose("the server does not respond");
      // A browser stops reconnecting after some responses. This page continues.
      if (source.readyState === EventSource.CLOSED) setTimeout(listen, 2000);
    });
  }

  // --- control -----------------------------------------------------------------------------------------------------
  const questions = {
    "trim-all": ["Trim the whole device? All data on it will be lost.", "Trim all"],
    "power-cut": ["Cut the power? Data that is not yet in flash will be lost, as on a real drive.", "Cut the power"],
  };

  function ask(command) {
    const dialog = at("sure");
    [at("sure-text").textContent, at("sure-yes").textContent] = questions[command];
    dialog.dataset.command = command;
    dialog.showModal();
  }

  function control(event) {
    event.preventDefault();
    // The Enter key in a field sets the speed.
    const command = event.submitter ? event.submitter.value : "speed";
    if (questions[command]) ask(command); else send(command);
  }

  async function send(command) {
    const asked = { command };
    if (command === "speed") asked.value = at("speed").value.trim();
    if (command === "fail") asked.place = at("fault").value.trim();
    at("done").value = "…";
    try {
      const answer = await fetch("api/control", { method: "POST", body: JSON.stringify(asked),
        headers: { Authorization: `Bearer ${at("token").value}`, "Content-Type": "application/json" } });
      const told = await answer.json();
      at("done").value = told.ok ? told.message : `failed: ${told.error}`;
      if (told.ok && command === "speed") delete at("speed").dataset.typed;
    } catch (error) {
      at("done").value = `failed: ${error.message}`;
    }
  }

  async function start() {
    drawScale();
    at("color").addEventListener("change", () => { at("color").dataset.chosen = "yes"; tellCell(); drawMap(); });
    at("operation").addEventListener("change", ({ target }) => {
      target.dataset.chosen = "true";
      drawSoon();
    });
    at("map").addEventListener("keydown", move);
    at("map").addEventListener("mousemove", point);
    for (const event of ["focus", "blur"]) at("map").addEventListener(event, () => { tellCell(); drawMap(); });
    at("control").addEventListener("submit", control);
    // Not `close`: the dialog may emit it only after it has opened again for the next question.
    at("sure").addEventListener("submit", (event) => {
      if (event.submitter.value === "yes") send(at("sure").dataset.command);
    });
    at("speed").addEventListener("input", () => { at("speed").dataset.typed = "yes"; });
    at("speed").addEventListener("blur", () => { if (!at("speed").value.trim()) delete at("speed").dataset.typed; });
    at("pause").addEventListener("click", pause);
    at("axis").addEventListener("change", drawSoon);
    at("csv").addEventListener("click", save);
    // A stopped server or a sleeping machine does not close the connection.
    setInterval(() => { if (connected && performance.now() - heard > 5000) lose("no data received"); }, 1000);
    window.addEventListener("resize", drawSoon);
    darkness.addEventListener("change", drawSoon);
    frames = await (await fetch("api/history")).json();
    listen();
  }
  start();
})();
