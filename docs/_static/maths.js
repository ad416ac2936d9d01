// Typesets what the page marks as maths. An error is thrown, so that a formula that KaTeX cannot read stays visible
// as its source, where the check of the rendered pages finds it.
for (const element of document.querySelectorAll(".math")) {
  const [, open, tex] = element.textContent.match(/^\s*(\\\(|\\\[)([\s\S]*)(?:\\\)|\\\])\s*$/);
  katex.render(tex, element, { displayMode: open === "\\[", throwOnError: true, strict: true });
}
