// Puts the charts in their places and keeps them and the tables on the same model, score and metric.
(() => {
  "use strict";
  const ink = "var(--ink)", soft = "var(--soft)", line = "var(--line)", accent = "var(--accent)";
  const font = "ui-sans-serif, system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif";
  const config = {
    font,
    view: { stroke: null },
    axis: {
      labelColor: soft, titleColor: soft, gridColor: line, domainColor: line, tickColor: line,
      labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal", titlePadding: 6, labelPadding: 5,
    },
    legend: { labelColor: ink, labelFontSize: 12, symbolStrokeWidth: 2.5, symbolSize: 220, rowPadding: 4 },
    style: {
      context: { color: "var(--others)", filled: true, shape: "circle", size: 34, opacity: 1 },
      span: { color: accent, strokeWidth: 2, opacity: 0.5, strokeCap: "round" },
      mean: { color: accent, filled: true, shape: "circle", size: 64, opacity: 1 },
      zero: { color: soft, strokeDash: [3, 3] },
      band: { color: "var(--series-1)", opacity: 0.12, line: false },
      curve: { strokeWidth: 2.25 },
      others: { color: soft, strokeWidth: 1, opacity: 0.65 },
      target: { filled: true, color: ink, shape: "circle", size: 160, opacity: 0 },
      calibrated: { color: "var(--band)", opacity: 1, line: false },
      diagonal: { color: soft, strokeWidth: 1, strokeDash: [3, 3] },
      observed: { color: accent, strokeWidth: 2 },
      bar: { color: "var(--bars)", opacity: 1 },
    },
  };
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const chosen = { model: 0, score: 0, metric: 0 };
  const views = [];

  const show = (signal) => {
    for (const part of document.querySelectorAll(`[data-${signal}]`)) {
      part.hidden = Number(part.dataset[signal]) !== chosen[signal];
    }
    for (const select of document.querySelectorAll(`select[data-signal="${signal}"]`)) {
      select.value = String(chosen[signal]);
    }
    for (const { view, signals } of views) {
      if (signals.has(signal)) view.signal(signal, chosen[signal]).runAsync();
    }
  };

  for (const select of document.querySelectorAll("select[data-signal]")) {
    chosen[select.dataset.signal] = Number(select.value);
    select.addEventListener("change", () => {
      chosen[select.dataset.signal] = Number(select.value);
      show(select.dataset.signal);
    });
  }
  for (const signal of Object.keys(chosen)) show(signal);

  const theme = document.getElementById("theme");
  const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme ?? (prefersDark.matches ? "dark" : "light")) === "dark";
  const nameTheme = () => { theme.textContent = isDark() ? "Light" : "Dark"; };
  theme.hidden = false;
  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    nameTheme();
  });
  prefersDark.addEventListener("change", nameTheme);
  nameTheme();

  const copy = document.getElementById("copy");
  copy.hidden = !navigator.clipboard;
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById("paragraph").textContent);
    copy.textContent = "Copied";
  });

  // On phones, rows of wide tables are laid out as lists, so that no column is cut.
  for (const table of document.querySelectorAll(".scroll table:not(.matrix, .scores)")) {
    const heads = [...table.querySelectorAll("thead th")];
    if (heads.length < 5) continue;
    table.classList.add("listed");
    table.setAttribute("role", "table");
    for (const row of table.querySelectorAll("tbody tr")) {
      row.setAttribute("role", "row");
      [...row.cells].forEach((cell, i) => {
        cell.setAttribute("role", cell.tagName === "TH" ? "rowheader" : "cell");
        cell.dataset.label = heads[i].firstChild.textContent.trim();
      });
    }
  }

  // On paper nothing can be unfolded, so the definitions are, and tables that are not long. Charts are as wide
  // as their places there, in pixels of an A4 page, so that their texts are not scaled down.
  const longest = 32;
  const length = (part) => [...part.querySelectorAll("tbody tr")].filter((row) => !row.closest("[hidden]")).length;
  let unfolded = [];
  window.addEventListener("beforeprint", () => {
    unfolded = [...document.querySelectorAll("details:not([open])")].filter((part) => length(part) <= longest);
    for (const part of unfolded) part.open = true;
    for (const { view, place } of views) {
      const few = place.closest(".single"), several = place.closest(".panels"), pair = place.closest(".two, .stack");
      const [width, height] = few ? [330, 220] : several ? [160, 105] : pair ? [330, 150] : [680, null];
      view.signal("width", width);
      if (height && place.closest(".two, .panels")) view.signal("height", height);
      view.run();
    }
  });
  window.addEventListener("afterprint", () => {
    for (const part of unfolded) part.open = false;
    for (const { view, place, height } of views) view.signal("width", place.clientWidth).signal("height", height).run();
  });

  const draw = async () => {
    for (const place of document.querySelectorAll("[data-chart]")) {
      const spec = charts[place.dataset.chart];
      const signals = new Set((spec.params ?? []).map((param) => param.name));
      for (const param of spec.params ?? []) if (param.name in chosen) param.value = chosen[param.name];
      const label = place.getAttribute("aria-label");
      spec.description = label;
      const { view } = await window.vegaEmbed(place, spec, {
        mode: "vega-lite", ast: true, actions: false, renderer: "svg", config, defaultStyle: false,
        tooltip: { theme: "verax" },
      });
      // Vega names every chart a visualization; each keeps its own name.
      for (const [name, value] of [["role", "img"], ["aria-label", label]]) place.setAttribute(name, value);
      place.removeAttribute("aria-roledescription");
      views.push({ view, signals, place, height: view.signal("height") });
    }
    for (const signal of Object.keys(chosen)) show(signal);
    document.documentElement.dataset.drawn = String(views.length);
  };
  draw();
})();
