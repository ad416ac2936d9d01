// The interactive heat map of attention weights: softmax(scale · q·k / temperature) over the keys that a mask leaves.
// Its numbers are those of the page; it loads nothing, and tests compare its weights with the oracle's.
"use strict";

const heatmap = {
  masks: {
    every: ["every key", () => true],
    causal: ["itself and the past", (query, key) => key <= query],
    window: ["a window", (query, key, width) => Math.abs(query - key) <= width],
    past: ["a window of the past", (query, key, width) => key <= query && query - key <= width],
  },

  // One row of weights for each query; a hidden pair is null, and a row without a visible pair has no weight at all.
  weights(q, k, { scale, temperature, mask, width }) {
    const sees = heatmap.masks[mask][1];
    return q.map((query, i) => {
      const scores = k.map((key, j) => (sees(i, j, width) ? (scale * heatmap.dot(query, key)) / temperature : null));
      const top = Math.max(...scores.filter((score) => score !== null));
      const terms = scores.map((score) => (score === null ? null : Math.exp(score - top)));
      const total = terms.reduce((sum, term) => sum + (term ?? 0), 0);
      return terms.map((term) => (term === null ? null : term / total));
    });
  },

  // In nats: 0 when one key has all the weight, ln n when n keys share it evenly.
  entropy(row) {
    return row.reduce((sum, weight) => (weight ? sum - weight * Math.log(weight) : sum), 0);
  },

  dot(a, b) {
    return a.reduce((sum, value, at) => sum + value * b[at], 0);
  },

  // The colour of a weight between the stops, as [r, g, b] in 0..255.
  colour(weight, stops) {
    const at = weight * (stops.length - 1);
    const low = Math.min(Math.floor(at), stops.length - 2);
    return stops[low].map((channel, c) => Math.round(channel + (at - low) * (stops[low + 1][c] - channel)));
  },

  // Black or white, whichever contrasts more: the two are equal at the relative luminance 0.179 (WCAG 2.2).
  numberColour(rgb) {
    const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    const channels = rgb.map((channel) => linear(channel / 255));
    return heatmap.dot(channels, [0.2126, 0.7152, 0.0722]) > 0.179 ? "#000000" : "#ffffff";
  },

  build(place) {
    const data = JSON.parse(place.querySelector("script").textContent);
    const form = heatmap.element("form", { className: "heatmap-controls" });
    const table = heatmap.element("table", {});
    const status = heatmap.element("p", { role: "status" });
    const draw = () => {
      const setting = heatmap.setting(form);
      form.elements.width.disabled = !["window", "past"].includes(setting.mask);
      const rows = heatmap.weights(data.q, data.k, setting);
      heatmap.fill(table, rows, data.colours);
      const mean = rows.map(heatmap.entropy).reduce((sum, entropy) => sum + entropy, 0) / rows.length;
      const most = Math.log(data.k.length);
      status.textContent = `Mean entropy ${mean.toFixed(3)} nats; ${most.toFixed(3)} is that of an even share of all keys.`;
    };
    form.append(...heatmap.controls(data, draw));
    place.append(form, heatmap.element("div", { className: "heatmap-scroll" }, table), status);
    place.classList.add("live"); // from now on the figure is for the printer alone
    draw();
  },

  controls({ start, k }, draw) {
    const slider = (name, label, min, max, step, digits) => {
      const input = heatmap.element("input", { type: "range", name, min, max, step, value: start[name] });
      const shown = heatmap.element("output", {}, start[name].toFixed(digits));
      input.addEventListener("input", () => {
        shown.textContent = Number(input.value).toFixed(digits);
        draw();
      });
      return heatmap.element("label", {}, heatmap.element("span", {}, label), shown, input);
    };
    const select = heatmap.element("select", { name: "mask" });
    for (const [name, [label]] of Object.entries(heatmap.masks)) {
      select.append(heatmap.element("option", { value: name, selected: name === start.mask }, label));
    }
    select.addEventListener("change", draw);
    return [
      heatmap.element("label", {}, heatmap.element("span", {}, "Each query sees"), select),
      slider("width", "Window: keys on each side", 0, k.length - 1, 1, 0),
      slider("scale", "Scale", 0, 3, 0.01, 2),
      slider("temperature", "Temperature", 0.1, 5, 0.1, 1),
    ];
  },

  setting(form) {
    const value = (name) => form.elements[name].value;
    return {
      mask: value("mask"),
      width: Number(value("width")),
      scale: Number(value("scale")),
      temperature: Number(value("temperature")),
    };
  },

  fill(table, rows, colours) {
    const head = heatmap.element("tr", {}, heatmap.element("td", {}));
    head.append(...rows[0].map((_, j) => heatmap.header("col", `key ${j}`)), heatmap.header("col", "entropy"));
    const body = rows.map((row, i) => heatmap.row(row, i, colours));
    table.replaceChildren(
      heatmap.element("caption", {}, "Attention weights, a row for each query"),
      heatmap.element("thead", {}, head),
      heatmap.element("tbody", {}, ...body),
    );
  },

  row(weights, i, colours) {
    const cells = weights.map((weight) => {
      if (weight === null) {
        return heatmap.element("td", { className: "hidden-pair", title: "hidden" }, "✕");
      }
      const rgb = heatmap.colour(weight, colours);
      const cell = heatmap.element("td", {}, weight.toFixed(2));
      cell.style.background = `rgb(${rgb})`;
      cell.style.color = heatmap.numberColour(rgb);
      return cell;
    });
    const entropy = heatmap.element("td", { className: "entropy" }, heatmap.entropy(weights).toFixed(3));
    return heatmap.element("tr", {}, heatmap.header("row", `query ${i}`), ...cells, entropy);
  },

  header(scope, text) {
    return heatmap.element("th", { scope }, text);
  },

  element(name, properties, ...children) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  },
};

document.querySelectorAll(".heatmap").forEach(heatmap.build);
