// Runs in a browser with every page in a frame: formulas that are not typeset, and heat maps that are not the oracle's.
// `pages` maps names to addresses; what is wrong is left as JSON in the element #found.
const wrong = [];

function formulas(name, page) {
  const bare = [...page.querySelectorAll(".math")].filter((element) => !element.querySelector(".katex-html"));
  bare.forEach((element) => wrong.push(`${name}: not typeset: ${element.textContent.trim()}`));
}

// Sets the controls to each golden case and reads the table, as a reader would; then compares the unrounded weights.
function heatMap(name, place, script) {
  const form = place.querySelector("form");
  const { q, k, golden } = JSON.parse(place.querySelector("script").textContent);
  for (const { setting, weights, entropy } of golden) {
    for (const [control, value] of Object.entries(setting)) {
      form.elements[control].value = value;
      form.elements[control].dispatchEvent(new Event(control === "mask" ? "change" : "input"));
    }
    const rows = [...place.querySelector("tbody").rows].map((row) => [...row.cells].map((cell) => cell.textContent));
    const shown = weights.map((row, i) => [`query ${i}`, ...row.map(number), entropy[i].toFixed(3)]);
    same(`${name}: the table at ${JSON.stringify(setting)}`, unhidden(rows), shown);
    const computed = script.weights(q, k, setting).flat().map((weight) => weight ?? 0);
    const apart = Math.max(...weights.flat().map((weight, at) => Math.abs(weight - computed[at])));
    if (!(apart < 1e-12)) wrong.push(`${name}: weights at ${JSON.stringify(setting)} differ by ${apart}`);
  }
}

const number = (weight) => weight.toFixed(2);
const unhidden = (rows) => rows.map((row) => row.map((cell) => cell.replace("✕", "0.00")));

function same(what, one, other) {
  if (JSON.stringify(one) !== JSON.stringify(other)) {
    wrong.push(`${what} shows ${JSON.stringify(one)} instead of ${JSON.stringify(other)}`);
  }
}

function load(address) {
  const frame = document.createElement("iframe");
  frame.src = address;
  return new Promise((done) => {
    frame.onload = () => done(frame);
    document.body.append(frame);
  });
}

window.onload = async () => {
  for (const [name, address] of Object.entries(pages)) {
    const frame = await load(address);
    formulas(name, frame.contentDocument);
    for (const place of frame.contentDocument.querySelectorAll(".heatmap")) {
      if (!place.querySelector("tbody")) wrong.push(`${name}: the heat map is not there`);
      else heatMap(name, place, frame.contentWindow.eval("heatmap"));
    }
    frame.remove();
  }
  const found = document.createElement("pre");
  found.id = "found";
  found.textContent = JSON.stringify(wrong);
  document.body.append(found);
};
