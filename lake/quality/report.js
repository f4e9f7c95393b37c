// Draws each plot from the specification beside it, in the colours of the reader's system; nothing is fetched.
// `ast`: Vega interprets expressions, since the page's policy lets no text become code. Its styles are in report.css for the same reason.
(() => {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const draw = () => {
    for (const place of document.querySelectorAll(".plot")) {
      const spec = JSON.parse(place.dataset.spec);
      spec.background = "transparent";
      spec.config = { ...spec.config, axis: { gridOpacity: 0.25, labelOverlap: true, labelSeparation: 8 }, view: { stroke: null } };
      const theme = dark.matches ? "dark" : undefined;
      vegaEmbed(place, spec, { actions: false, ast: true, defaultStyle: false, renderer: "svg", theme, tooltip: { disableDefaultStyle: true } });
    }
  };
  dark.addEventListener("change", draw);
  draw();
})();
