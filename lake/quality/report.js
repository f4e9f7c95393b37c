// Draws each plot from the specification beside it, in the colours of the reader's system; nothing is fetched.
(() => {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const draw = () => {
    for (const place of document.querySelectorAll(".plot")) {
      const spec = JSON.parse(place.dataset.spec);
      spec.background = "transparent";
      spec.config = { ...spec.config, axis: { gridOpacity: 0.25 }, view: { stroke: null } };
      vegaEmbed(place, spec, { actions: false, renderer: "svg", theme: dark.matches ? "dark" : undefined });
    }
  };
  dark.addEventListener("change", draw);
  draw();
})();
