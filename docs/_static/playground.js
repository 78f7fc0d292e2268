// The playground. Losses come from window.veraxRules, which the build prints from the formulas of verax.
(() => {
  "use strict";
  const {rules, losses} = window.veraxRules;
  const root = document.querySelector("div.playground");
  const K = 3, ROOT = Math.sqrt(3) / 2, WIDTH = 300, EDGE = 26;
  const SIDE = WIDTH - 2 * EDGE, HEIGHT = SIDE * ROOT + 2 * EDGE;
  // The corners of the triangle: class 0 left, class 1 top, class 2 right.
  const CORNERS = [[EDGE, HEIGHT - EDGE], [WIDTH / 2, EDGE], [WIDTH - EDGE, HEIGHT - EDGE]];
  // The colours of "cividis", dark is a small loss: readers who see no colours see the same order.
  const RAMP = [[0, 32, 77], [23, 54, 109], [66, 78, 107], [92, 102, 110], [116, 122, 117],
    [142, 141, 121], [170, 163, 114], [201, 186, 97], [255, 234, 70]];

  const state = {forecast: [0.5, 0.3, 0.2], truth: [0.45, 0.2, 0.35], mode: 0, painted: "brier"};

  // ---- numbers -------------------------------------------------------------------------------------

  // What cannot happen costs nothing, however large its loss.
  const expected = (p, q) => {
    const total = new Array(rules.length).fill(0);
    for (let y = 0; y < K; y++) {
      if (q[y] > 0) losses(p, y).forEach((loss, r) => { total[r] += q[y] * loss; });
    }
    return total;
  };
  const valued = (p) => state.mode === "expected" ? expected(p, state.truth) : losses(p, state.mode);

  // Percentages that sum to 100, the largest remainders first.
  const toPercent = (p) => {
    const parts = p.map((x) => Math.floor(100 * x + 1e-9));
    const order = [0, 1, 2].sort((i, j) => (100 * p[j] - parts[j]) - (100 * p[i] - parts[i]));
    for (let short = 100 - parts[0] - parts[1] - parts[2], i = 0; i < short; i++) parts[order[i % K]] += 1;
    return parts.map((n) => n / 100);
  };

  // One share is set; the others keep their proportions.
  const withShare = (p, j, share) => {
    const value = Math.min(1, Math.max(0, share));
    const rest = 1 - p[j];
    return toPercent(p.map((x, i) => i === j ? value : rest > 1e-9 ? x / rest * (1 - value) : (1 - value) / 2));
  };

  const show = (x) => x === Infinity ? "∞" : x.toFixed(4);
  const inWords = (p) => `(${p.map((x) => +x.toFixed(3)).join(", ")})`;

  // ---- places --------------------------------------------------------------------------------------

  const place = (p) => [0, 1].map((axis) => p.reduce((sum, x, j) => sum + x * CORNERS[j][axis], 0));
  const forecastAt = (x, y) => {
    const top = (CORNERS[0][1] - y) / (SIDE * ROOT);
    const right = (x - EDGE) / SIDE - top / 2;
    return [1 - top - right, top, right];
  };
  // The nearest point of the triangle.
  const inside = (p) => {
    const sorted = [...p].sort((a, b) => b - a);
    let sum = 0, shift = 0;
    sorted.forEach((x, i) => { sum += x; if (x - (sum - 1) / (i + 1) > 0) shift = (sum - 1) / (i + 1); });
    return p.map((x) => Math.max(0, x - shift));
  };

  // ---- the page ------------------------------------------------------------------------------------

  const make = (name, attributes = {}, ...children) => {
    const space = ["svg", "g", "circle", "polygon", "text", "title"].includes(name) ? "http://www.w3.org/2000/svg" : null;
    const node = space ? document.createElementNS(space, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else if (value === true) node.setAttribute(key, "");
      else if (value !== false && value !== null) node.setAttribute(key, value);
    }
    node.append(...children);
    return node;
  };

  const canvas = make("canvas", {width: 2 * WIDTH, height: Math.round(2 * HEIGHT), "aria-hidden": "true"});
  const handles = {};
  const handle = (kind, label) => handles[kind] = make("g", {
    class: `handle ${kind}`, tabindex: "0", role: "slider", "aria-label": label, "aria-valuemin": 0, "aria-valuemax": 100,
    "aria-describedby": "playground-keys", onkeydown: (event) => keyed(event, kind),
  }, make("circle", {class: "halo", r: 16}), make("circle", {class: "dot", r: 8}));
  const svg = make("svg", {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, onpointerdown: pressed, onpointermove: moved},
    ...CORNERS.map(([x, y], j) => make("text", {x, y: j === 1 ? y - 10 : y + 18, "text-anchor": "middle"}, `class ${j}`)),
    handle("truth", "truth"), handle("forecast", "forecast"));
  const map = make("div", {class: "map"}, canvas, svg);

  const sliders = (kind, title) => {
    const inputs = [0, 1, 2].map((j) => make("input", {
      type: "range", min: 0, max: 100, step: 1, "aria-label": `${kind}, class ${j}`,
      oninput: (event) => set(kind, withShare(state[kind], j, event.target.value / 100)),
    }));
    const outputs = inputs.map(() => make("output"));
    const rows = inputs.map((input, j) => make("label", {}, `class ${j}`, input, outputs[j]));
    const box = make("fieldset", {class: `sliders ${kind}`}, make("legend", {}, title), ...rows);
    return {box, update: () => state[kind].forEach((x, j) => {
      inputs[j].value = Math.round(100 * x);
      outputs[j].textContent = +x.toFixed(3);
    })};
  };
  const ofForecast = sliders("forecast", "Forecast (orange dot)");
  const ofTruth = sliders("truth", "Truth (white dot)");

  const radio = (mode, text) => make("label", {}, make("input", {
    type: "radio", name: "playground-mode", value: mode, checked: mode === state.mode,
    onchange: () => { state.mode = mode; refresh(true); },
  }), text);
  const modes = make("fieldset", {}, make("legend", {}, "What happens"), make("div", {class: "choices"},
    ...[0, 1, 2].map((y) => radio(y, `class ${y}`)), radio("expected", "drawn from a truth: expected loss")));

  const painting = make("select", {"aria-label": "rule that colours the triangle", onchange: (event) => {
    state.painted = event.target.value;
    refresh(true);
  }}, ...rules.map((rule) => make("option", {value: rule.name}, rule.title)));
  const scale = make("div", {class: "scale"}, make("span", {class: "low"}), make("span", {class: "ramp"}), make("span", {class: "high"}));
  scale.children[1].style.background = `linear-gradient(to right, ${RAMP.map((c) => `rgb(${c})`).join(", ")})`;

  const preset = (text, values) => make("button", {type: "button", onclick: () => {
    Object.assign(state, values);
    for (const input of modes.querySelectorAll("input")) input.checked = input.value === String(state.mode);
    painting.value = state.painted;
    refresh(true);
  }}, text);
  const third = [1 / 3, 1 / 3, 1 / 3];
  const presets = make("div", {class: "presets"},
    preset("uniform", {forecast: third}),
    preset("certain", {forecast: [1, 0, 0]}),
    preset("tie", {forecast: [0.4, 0.4, 0.2], mode: 0, painted: "pbs"}),
    preset("just right", {forecast: [0.41, 0.39, 0.2], mode: 0, painted: "pbs"}),
    preset("just wrong", {forecast: [0.39, 0.41, 0.2], mode: 0, painted: "pbs"}),
    preset("sa-RPS beats the truth", {forecast: [0.1, 0.9, 0], truth: [0.45, 0.2, 0.35], mode: "expected", painted: "sa_rps"}));

  const rows = rules.map((rule) => {
    const cells = {
      bar: make("div", {class: "bar"}, make("i"), make("b")), loss: make("td", {class: "number"}),
      own: make("td", {class: "number own"}), gap: make("td", {class: "number own"}),
    };
    cells.row = make("tr", {"data-rule": rule.name}, make("td", {}, make("a", {href: rule.page}, rule.title)),
      make("td", {class: "bars"}, cells.bar), cells.loss, cells.own, cells.gap);
    return cells;
  });
  const heading = make("th", {class: "number"}, "loss");
  const table = make("table", {"aria-live": "off"}, make("thead", {}, make("tr", {}, make("th", {}, "rule"), make("th", {}, ""), heading,
    make("th", {class: "number own"}, "of the truth"), make("th", {class: "number own"}, "difference"))),
  make("tbody", {}, ...rows.map((cells) => cells.row)));
  const note = make("p", {class: "note", role: "status"});

  root.append(
    make("div", {}, make("fieldset", {}, make("legend", {}, "Colours: loss by"), painting), map, scale, modes),
    make("div", {}, ofForecast.box, ofTruth.box, make("fieldset", {}, make("legend", {}, "Try"), presets), table, note,
      make("p", {class: "note", id: "playground-keys"},
        "Drag a dot, use the sliders, or focus a dot and press arrow keys (Shift: ten at a time): left, up and right move it towards a corner, down away from the top.")));

  // ---- moving --------------------------------------------------------------------------------------

  let held = null;
  function at(event) {
    const box = svg.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width * WIDTH, (event.clientY - box.top) / box.height * HEIGHT];
  }
  function pressed(event) {
    const [x, y] = at(event);
    const far = (kind) => { const [a, b] = place(state[kind]); return Math.hypot(a - x, b - y); };
    held = state.mode === "expected" && far("truth") < far("forecast") ? "truth" : "forecast";
    svg.setPointerCapture(event.pointerId);
    handles[held].focus({preventScroll: true});
    event.preventDefault();
    moved(event);
  }
  function moved(event) {
    if (held === null || !event.buttons) { held = null; return; }
    set(held, toPercent(inside(forecastAt(...at(event)))));
  }
  function keyed(event, kind) {
    const step = event.shiftKey ? 0.1 : 0.01;
    const [j, sign] = {ArrowLeft: [0, 1], ArrowUp: [1, 1], ArrowRight: [2, 1], ArrowDown: [1, -1]}[event.key] ?? [];
    if (j === undefined) return;
    event.preventDefault();
    set(kind, withShare(state[kind], j, state[kind][j] + sign * step));
  }
  function set(kind, p) {
    state[kind] = p;
    refresh(kind === "truth");
  }

  // ---- drawing -------------------------------------------------------------------------------------

  // For each rule the smallest loss, and the largest that is drawn: where some are infinite, 97 % are below it.
  let limits = [];
  function measure() {
    const n = 30, found = rules.map(() => []);
    for (let i = 0; i <= n; i++) {
      for (let j = 0; i + j <= n; j++) valued([i / n, j / n, (n - i - j) / n]).forEach((x, r) => found[r].push(x));
    }
    limits = found.map((values) => {
      const finite = values.filter(Number.isFinite).sort((a, b) => a - b);
      const last = finite.length < values.length ? Math.floor(0.97 * (finite.length - 1)) : finite.length - 1;
      return [finite[0], finite[last], finite.length < values.length];
    });
  }

  function colour(share) {
    const at = Math.min(1, Math.max(0, share)) * (RAMP.length - 1), i = Math.min(RAMP.length - 2, Math.floor(at));
    return RAMP[i].map((c, k) => c + (RAMP[i + 1][k] - c) * (at - i));
  }

  function paint() {
    const r = rules.findIndex((rule) => rule.name === state.painted), [low, high, unbounded] = limits[r];
    const {width, height} = canvas, zoom = width / WIDTH, pen = canvas.getContext("2d");
    const image = pen.createImageData(width, height);
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++) {
        const p = forecastAt((x + 0.5) / zoom, (y + 0.5) / zoom);
        if (p[0] < 0 || p[1] < 0 || p[2] < 0) continue;
        const loss = valued(p)[r], rgb = colour(high > low ? (loss - low) / (high - low) : 0);
        image.data.set([...rgb, 255], 4 * (y * width + x));
      }
    }
    pen.putImageData(image, 0, 0);
    scale.firstChild.textContent = show(low);
    scale.lastChild.textContent = show(high) + (unbounded ? " and more" : "");
  }

  let asked = false;
  function paintSoon() {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; paint(); });
  }

  function refresh(all) {
    const honest = state.mode === "expected";
    if (all) { measure(); paintSoon(); }
    for (const kind of ["forecast", "truth"]) {
      const [x, y] = place(state[kind]);
      handles[kind].setAttribute("transform", `translate(${x} ${y})`);
      handles[kind].setAttribute("aria-valuenow", Math.round(100 * state[kind][0]));
      handles[kind].setAttribute("aria-valuetext", inWords(state[kind]));
    }
    handles.truth.toggleAttribute("hidden", !honest);
    ofTruth.box.hidden = !honest;
    ofForecast.update();
    ofTruth.update();
    heading.textContent = honest ? "expected" : "loss";
    for (const cell of table.querySelectorAll(".own")) cell.hidden = !honest;
    const own = honest ? expected(state.truth, state.truth) : null, beaten = [];
    valued(state.forecast).forEach((loss, r) => {
      const {bar, loss: cell, own: ofOwn, gap, row} = rows[r], [low, high] = limits[r];
      const share = (x) => `${100 * Math.min(1, Math.max(0, (x - Math.min(0, low)) / (high - Math.min(0, low) || 1)))}%`;
      bar.firstChild.style.width = share(loss);
      bar.lastChild.style.left = honest ? share(own[r]) : "0";
      bar.lastChild.hidden = !honest;
      cell.textContent = show(loss);
      cell.dataset.value = loss;
      const beats = honest && loss < own[r] - 1e-12;
      row.classList.toggle("beats", beats);
      if (beats) beaten.push(rules[r].title);
      if (honest) {
        ofOwn.textContent = show(own[r]);
        ofOwn.dataset.value = own[r];
        gap.textContent = Number.isFinite(loss) ? `${loss < own[r] ? "−" : "+"}${Math.abs(loss - own[r]).toFixed(4)}` : "∞";
      }
    });
    note.textContent = !honest ? "A bar is full at the largest loss; where losses have no bound, at one that 97 % of all forecasts stay below."
      : beaten.length ? `This forecast has a lower expected loss than the truth by: ${beaten.join(", ")}. These rules are not proper.`
        : "No rule prefers this forecast to the truth. The line in a bar is the expected loss of the truth.";
  }

  refresh(true);
  paint();
  document.documentElement.dataset.drawn = "true";
})();
