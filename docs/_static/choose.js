// The questions of "Choose a score": built from the table of cases, answered by its first row that fits.
document.addEventListener("DOMContentLoaded", () => {
  const place = document.querySelector(".chooser");
  const table = document.querySelector(".cases table");
  if (!place || !table) return;
  const text = (cell) => cell.textContent.trim();
  const questions = [...table.querySelectorAll("thead th")].map(text).slice(0, -1);
  const rows = [...table.querySelectorAll("tbody tr")].map((row) => [...row.cells]);
  const choices = questions.map((_, i) => [...new Set(rows.map((row) => text(row[i])))].filter((answer) => answer !== "any"));
  const form = document.createElement("form");
  questions.forEach((question, i) => {
    const field = document.createElement("fieldset");
    field.append(Object.assign(document.createElement("legend"), { textContent: question }));
    const answers = [...choices[i]];
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
    // A recommendation is reachable if it is the first that fits some way of answering the open questions.
    const paths = choices.reduce((some, all, i) => some.flatMap((path) => (answers[i] ? [answers[i]] : all).map((each) => [...path, each])), [[]]);
    const first = (path) => rows.find((row) => path.every((answer, i) => ["any", answer].includes(text(row[i]))));
    const left = [...new Set(paths.map((path) => first(path).at(-1).querySelector("a").hash))];
    if (left.length > 1) {
      output.textContent = `${answers.filter(Boolean).length} of ${questions.length} answered; ${left.length} recommendations left.`;
      return;
    }
    const section = document.getElementById(decodeURIComponent(left[0].slice(1)));
    const copy = section.cloneNode(true);
    copy.removeAttribute("id");
    copy.querySelectorAll("[id]").forEach((element) => element.removeAttribute("id"));
    copy.querySelectorAll(".headerlink").forEach((link) => link.remove());
    output.replaceChildren(copy);
  };
  form.addEventListener("change", show);
  show();
});
