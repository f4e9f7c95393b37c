// Local times, commands to copy, search, and plots, which are drawn when their section is opened. Nothing is fetched.
// `ast`: Vega interprets expressions, since the page's policy lets no text become code. Its styles are in report.css for the same reason.
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const made = (tag, text, properties = {}) => Object.assign(document.createElement(tag), { textContent: text }, properties);

  const local = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
  for (const time of all("time")) {
    time.title = time.textContent;
    time.textContent = local.format(new Date(time.dateTime));
  }

  for (const command of all(".command")) {
    const button = made("button", "copy", { type: "button", className: "copy" });
    button.setAttribute("aria-label", `Copy ${command.textContent}`);
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(command.textContent);
        button.textContent = "copied";
        button.removeAttribute("aria-label");
      } catch { // not allowed here: at least it is selected
        getSelection().selectAllChildren(command);
      }
    });
    command.after(" ", button);
  }

  const views = all(".view"), search = document.getElementById("report-search"), state = document.getElementById("report-state");
  const once = (make) => { // of each view
    const known = new Map();
    return (view) => known.get(view) ?? known.set(view, make(view)).get(view);
  };
  const text = once((view) => { // what a reader sees, without plots and their data
    const copy = view.cloneNode(true);
    for (const part of all("script, figure, button", copy)) part.remove();
    return copy.textContent.toLowerCase();
  });
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const view of views) {
      view.hidden = Boolean(state.value && view.dataset.state !== state.value) || !words.every((word) => text(view).includes(word));
    }
    const shown = views.filter((view) => !view.hidden).length;
    document.getElementById("report-shown").textContent = shown === views.length ? "" : `${shown} of ${views.length} views`;
  };
  if (views.length > 1) document.getElementById("report-filter").hidden = false;
  search.addEventListener("input", filter);
  state.addEventListener("change", filter);

  const follow = (hash) => { // a link to a view opens it
    const view = views.find((each) => hash === `#${each.id}` || hash === `#${encodeURIComponent(each.id)}`);
    if (!view) return;
    if (view.hidden) {
      search.value = state.value = "";
      filter();
    }
    view.open = true;
    view.scrollIntoView();
  };
  addEventListener("hashchange", () => follow(location.hash));
  for (const link of all('a[href^="#"]')) link.addEventListener("click", () => follow(link.getAttribute("href")));

  const { kinds, tables, source, link, pages } = JSON.parse(document.getElementById("report-plots").textContent);
  const colours = ["#4c78a8", "#f58518", "#e45756", "#72b7b2", "#54a24b", "#b79a20", "#b279a2", "#ff9da6", "#9d755d", "#8a8a8a"];
  const colour = (domain) => { // of some tables: each has its own on the page, or the next one that none of the others has
    const taken = new Set();
    return domain.map((table) => {
      let chosen = tables.indexOf(table) % colours.length;
      while (taken.has(chosen) && taken.size < colours.length) chosen = (chosen + 1) % colours.length;
      taken.add(chosen);
      return colours[chosen];
    });
  };
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const values = (plot) => {
    const columns = JSON.parse(plot.nextElementSibling.textContent), names = Object.keys(columns);
    const address = (page) => page && pages + page;
    return columns[names[0]].map((_, i) => Object.fromEntries(names.map((n) => [n, n === link ? address(columns[n][i]) : columns[n][i]])));
  };
  const tablesOf = once((view) => [...new Set(all(".plot", view).flatMap((plot) => values(plot).map((value) => value[source]).filter(Boolean)))].sort());
  const draw = (plot) => {
    const shown = values(plot);
    plot.replaceChildren();
    plot.dataset.drawn = dark.matches;
    for (const spec of structuredClone(kinds[plot.dataset.kind])) {
      const by = spec.encoding.color;
      if (by.field === source) {
        const domain = tablesOf(plot.closest(".view"));
        by.scale = { domain, range: colour(domain) };
      }
      spec.data = { values: shown };
      spec.background = "transparent";
      spec.config = { ...spec.config, axis: { gridOpacity: 0.25, labelOverlap: true, labelSeparation: 8 }, view: { stroke: null } };
      const place = plot.appendChild(made("div", "", { className: "drawn" })), theme = dark.matches ? "dark" : undefined;
      vegaEmbed(place, spec, { actions: false, ast: true, defaultStyle: false, renderer: "svg", theme, tooltip: { disableDefaultStyle: true } });
    }
  };
  const list = (details) => { // the numbers of a plot, the newest first
    const shown = values(details.parentElement.querySelector(".plot")).slice(-50).reverse(), names = Object.keys(shown[0]);
    const table = made("table", ""), head = table.createTHead().insertRow(), body = table.createTBody();
    for (const name of names) head.appendChild(made("th", name, { scope: "col" }));
    for (const value of shown) {
      const row = body.insertRow();
      for (const name of names) {
        const cell = row.insertCell(), given = value[name];
        if (name === "time") cell.textContent = local.format(new Date(given));
        else if (name === link && given) cell.appendChild(made("a", "page", { href: given }));
        else cell.textContent = given ?? "";
      }
    }
    details.appendChild(table);
  };
  const drawn = () => {
    for (const plot of all(".plot")) if (plot.checkVisibility() && plot.dataset.drawn !== String(dark.matches)) draw(plot);
    for (const details of all(".values[open]")) if (!details.querySelector("table")) list(details);
  };
  document.addEventListener("toggle", drawn, true);
  dark.addEventListener("change", drawn);
  filter(); // a browser may have kept what was typed
  follow(location.hash);
  drawn();
})();
