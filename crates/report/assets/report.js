// Draws the figures of the page, whose data are in the page: see `page.rs`.
(() => {
  "use strict";
  const root = document.documentElement;
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const names = Object.keys(figures);
  const plots = [];
  // Width of A4 without margins, in CSS pixels.
  const paper = 680;
  // Same factor as in report.css.
  const lower = 0.66;
  root.dataset.expected = names.length;
  root.dataset.drawn = 0;
  root.dataset.state = "drawing";

  function failed(what) {
    root.dataset.state = "failed";
    root.dataset.failure = String(what);
    const note = document.getElementById("no-figures");
    note.hidden = false;
    note.querySelector("span").textContent = String(what);
  }
  window.addEventListener("error", (event) => failed(event.message));
  window.addEventListener("unhandledrejection", (event) => failed(event.reason));

  async function unpacked(id) {
    if (typeof DecompressionStream === "undefined") {
      throw new Error("this browser lacks DecompressionStream (use Chromium 80, Firefox 113, Safari 16.4, or later)");
    }
    const packed = Uint8Array.from(atob(document.getElementById(id).textContent.trim()), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }

  // Style of figures: dark or light. Printed figures are smaller and have smaller margins.
  function theme(dark, printed = false) {
    const [size, top, bottom] = printed ? [10, 14, 36] : [12, 30, 50];
    const [text, line] = dark ? ["#e6e8eb", "#3a414b"] : ["#1b1f24", "#d0d7de"];
    const axis = { gridcolor: line, linecolor: text, zerolinecolor: line, tickcolor: text, automargin: true,
      showline: true, ticks: "outside", title: { standoff: 8, font: { size: size + 1 } } };
    return { layout: { paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: text, size, family: 'system-ui, "DejaVu Sans", sans-serif' }, xaxis: axis, yaxis: axis,
      legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, traceorder: "normal" }, hovermode: "closest",
      modebar: { bgcolor: "rgba(0,0,0,0)", color: line, activecolor: text },
      margin: { l: 60, r: 20, t: top, b: bottom } } };
  }

  // Shows the meaning of a trace, its `meta`, when a pointer is over its entry in the legend.
  function explain(place) {
    for (const entry of place.querySelectorAll(".legend .traces")) {
      const meaning = entry.__data__?.[0]?.trace?.meta;
      if (!meaning || entry.querySelector("title")) continue;
      const title = document.createElementNS("http://www.w3.org/2000/svg", "title");
      title.textContent = meaning;
      entry.prepend(title);
    }
  }

  const darkness = window.matchMedia("(prefers-color-scheme: dark)");

  async function draw() {
    const library = document.createElement("script");
    library.textContent = await unpacked("plotly");
    document.head.append(library);
    const options = { responsive: true, displaylogo: false, toImageButtonOptions: { format: "svg" },
      modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]] };
    for (const name of names) {
      const place = document.querySelector(`[data-figure="${name}"]`);
      const { data, layout } = figures[name];
      layout.template = theme(darkness.matches);
      await Plotly.newPlot(place, data, layout, options);
      explain(place);
      place.on("plotly_afterplot", () => explain(place));
      plots.push(place);
      root.dataset.drawn = plots.length;
    }
    root.dataset.state = "ready";
  }

  function each(change) {
    for (const place of plots) Plotly.relayout(place, change(figures[place.dataset.figure].layout.height));
  }
  darkness.addEventListener("change", (event) => each(() => ({ template: theme(event.matches) })));
  window.addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details")) details.open = true;
    each((height) => ({ template: theme(false, true), width: paper, height: height * lower, autosize: false }));
  });
  window.addEventListener("afterprint", () =>
    each((height) => ({ template: theme(darkness.matches), width: null, height, autosize: true })));
  draw().catch(failed);
})();
