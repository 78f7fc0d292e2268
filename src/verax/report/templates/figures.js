// Figures: values by pointer and arrow keys; downloads as SVG, PNG and CSV.
(() => {
  "use strict";
  const NS = "http://www.w3.org/2000/svg";
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.setAttribute("role", "status");
  tip.hidden = true;
  document.body.append(tip);

  const told = (svg, tips) => {
    const [left, top, width, height] = svg.dataset.plot.split(" ").map(Number);
    const places = tips.map(([x, y]) => [left + x * width, top + y * height]);
    const target = document.createElementNS(NS, "circle");
    target.setAttribute("class", "target");
    target.setAttribute("r", "6");
    let at = -1;
    const hide = () => {
      at = -1;
      tip.hidden = true;
      target.remove();
    };
    const show = (i) => {
      at = i;
      const [x, y] = places[i];
      target.setAttribute("cx", x);
      target.setAttribute("cy", y);
      svg.append(target);
      tip.textContent = tips[i][2];
      tip.hidden = false;
      const dot = target.getBoundingClientRect(), box = tip.getBoundingClientRect();
      const beside = dot.right + 8 + box.width > innerWidth ? dot.left - 8 - box.width : dot.right + 8;
      tip.style.left = `${Math.max(4, beside)}px`;
      tip.style.top = `${Math.max(4, Math.min(dot.top - 4, innerHeight - box.height - 4))}px`;
    };
    svg.tabIndex = 0;
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;
      const x = (event.clientX - box.left) * scale, y = (event.clientY - box.top) * scale;
      const far = places.map(([a, b]) => (a - x) ** 2 + (b - y) ** 2);
      const nearest = far.indexOf(Math.min(...far));
      if (nearest !== at) show(nearest);
    });
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("blur", hide);
    svg.addEventListener("keydown", (event) => {
      const steps = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: -1 };
      if (event.key === "Escape") hide();
      if (!(event.key in steps)) return;
      event.preventDefault();
      show((steps[event.key] + tips.length) % tips.length);
    });
  };

  // The drawing that is seen, with the colours of the page written out.
  const alone = (figure) => {
    const seen = [...figure.querySelectorAll("svg[data-plot]")].find((svg) => svg.getClientRects().length) ?? figure.querySelector("svg[data-plot]");
    const copy = seen.cloneNode(true);
    const looks = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "font-family", "font-size", "paint-order"];
    const shown = seen.querySelectorAll("*");
    copy.querySelectorAll("*").forEach((part, i) => {
      const style = getComputedStyle(shown[i]);
      for (const look of looks) part.setAttribute(look, style.getPropertyValue(look));
    });
    const paper = document.createElementNS(NS, "rect");
    for (const [name, value] of [["width", "100%"], ["height", "100%"], ["fill", getComputedStyle(document.body).backgroundColor]]) paper.setAttribute(name, value);
    copy.prepend(paper);
    copy.querySelectorAll(".target").forEach((part) => part.remove());
    return copy;
  };

  const plain = (text) => (/^−?[\d,]+(\.\d+)?(e[−+]?\d+)?%?$/.test(text) ? text.replaceAll(",", "").replaceAll("−", "-") : text);
  // A spreadsheet must not take a name for a formula.
  const cell = (text) => `"${plain(text).replace(/^[=+@\t]/, "'$&").replaceAll('"', '""')}"`;
  const table = (figure) => [...figure.querySelectorAll(".numbers tr")].map((row) => [...row.cells].map((x) => cell(x.textContent)).join(",")).join("\n");

  const save = (content, type, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };

  const picture = (svg, name) => {
    const image = new Image(), scale = 2;
    image.addEventListener("load", () => {
      const canvas = document.createElement("canvas");
      canvas.width = scale * svg.viewBox.baseVal.width;
      canvas.height = scale * svg.viewBox.baseVal.height;
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => save(blob, "image/png", name));
    });
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(svg))}`;
  };

  const downloads = {
    SVG: (figure) => save(new XMLSerializer().serializeToString(alone(figure)), "image/svg+xml", `${figure.id}.svg`),
    PNG: (figure) => picture(alone(figure), `${figure.id}.png`),
    CSV: (figure) => save(`${table(figure)}\n`, "text/csv", `${figure.id}.csv`),
  };

  for (const figure of document.querySelectorAll("figure.drawn")) {
    const tips = JSON.parse(figure.dataset.tips);
    if (tips.length) for (const svg of figure.querySelectorAll("svg[data-plot]")) told(svg, tips);
    const place = figure.querySelector(".get");
    for (const [name, download] of Object.entries(downloads)) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = name;
      button.addEventListener("click", () => download(figure));
      place.append(button);
    }
    place.hidden = false;
  }
  document.documentElement.classList.add("scripted");
})();
