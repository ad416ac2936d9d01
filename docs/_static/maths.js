// Typesets what the page marks as maths. A formula that KaTeX cannot read stays visible as its source, where the check
// of the built site finds it.
for (const element of document.querySelectorAll(".math")) {
  const [, open, tex] = element.textContent.match(/^\s*(\\\(|\\\[)([\s\S]*)(?:\\\)|\\\])\s*$/);
  try {
    katex.render(tex, element, { displayMode: open === "\\[", throwOnError: true, strict: "error" });
  } catch (error) {
    console.error(tex, error);
  }
}
