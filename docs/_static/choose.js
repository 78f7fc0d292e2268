// The questions of "Choose a score": built from the table of cases, answered by its first row that fits.
document.addEventListener("DOMContentLoaded", () => {
  const place = document.querySelector(".chooser");
  const table = document.querySelector(".cases table");
  if (!place || !table) return;
  const text = (cell) => cell.textContent.trim();
  const questions = [...table.querySelectorAll("thead th")].map(text).slice(0, -1);
  const rows = [...table.querySelectorAll("tbody tr")].map((row) => [...row.cells]);
  const form = document.createElement("form");
  questions.forEach((question, i) => {
    const field = document.createElement("fieldset");
    field.append(Object.assign(document.createElement("legend"), { textContent: question }));
    const answers = [...new Set(rows.map((row) => text(row[i])))].filter((answer) => answer !== "any");
    // Special cases come first in the table, and last among the answers.
    (answers.length > 2 ? answers.reverse() : answers).forEach((answer) => {
      const label = document.createElement("label");
      const input = Object.assign(document.createElement("input"), { type: "radio", name: i, value: answer });
      label.append(input, answer);
      field.append(label);
    });
    form.append(field);
  });
  const output = document.createElement("output");
  form.append(output);
  place.append(form);

  const show = () => {
    const answers = questions.map((_, i) => new FormData(form).get(i));
    const open = (row) => row.slice(0, -1).every((cell, i) => ["any", answers[i] ?? text(cell)].includes(text(cell)));
    const fitting = rows.filter(open);
    const decided = fitting[0].slice(0, -1).every((cell, i) => text(cell) === "any" || answers[i]);
    const left = new Set(fitting.map((row) => row.at(-1).querySelector("a").hash));
    if (!decided && left.size > 1) {
      output.textContent = `${answers.filter(Boolean).length} of ${questions.length} answered; ${left.size} recommendations are left.`;
      return;
    }
    const section = document.getElementById(decodeURIComponent(fitting[0].at(-1).querySelector("a").hash.slice(1)));
    const copy = section.cloneNode(true);
    copy.removeAttribute("id");
    copy.querySelectorAll("[id]").forEach((element) => element.removeAttribute("id"));
    copy.querySelectorAll(".headerlink").forEach((link) => link.remove());
    output.replaceChildren(copy);
  };
  form.addEventListener("change", show);
  show();
});
