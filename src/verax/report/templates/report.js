// Keeps figures and tables on the same model, score and metric.
(() => {
  "use strict";
  const chosen = { model: 0, score: 0, metric: 0 };

  const show = (signal) => {
    for (const part of document.querySelectorAll(`[data-${signal}]`)) {
      part.hidden = Object.entries(chosen).some(([name, value]) => name in part.dataset && Number(part.dataset[name]) !== value);
    }
    for (const select of document.querySelectorAll(`select[data-signal="${signal}"]`)) {
      select.value = String(chosen[signal]);
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
  for (const table of document.querySelectorAll(".scroll table:not(.matrix, .scores, .numbers table)")) {
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

  // On paper nothing can be unfolded, so the definitions are, and tables that are not long.
  const longest = 32;
  const length = (part) => [...part.querySelectorAll("tbody tr")].filter((row) => !row.closest("[hidden]")).length;
  let unfolded = [];
  window.addEventListener("beforeprint", () => {
    unfolded = [...document.querySelectorAll("details:not([open], .numbers)")].filter((part) => length(part) <= longest);
    for (const part of unfolded) part.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const part of unfolded) part.open = false;
  });
})();
