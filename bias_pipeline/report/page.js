"use strict";
// What a page answers: it leaves out captioners and metrics, and draws figures that show numbers.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const find = document.getElementById("find");
  const metric = document.getElementById("metric");
  const status = document.getElementById("told");
  const source = document.getElementById("charts");
  const charts = source ? JSON.parse(source.textContent) : [];
  const names = new Set(all("[data-captioner]").map((own) => own.dataset.captioner));
  const places = all(".chart"); // in the order of the charts
  const drawn = new Map(); // of a chart's number its view

  const wanted = () => (find ? find.value : "").toLowerCase().split(",").map((word) => word.trim()).filter(Boolean);
  const isShown = (captioner) => {
    const words = wanted();
    return !words.length || words.some((word) => captioner.toLowerCase().includes(word));
  };
  const isTold = (metrics) => !metric.value || !metrics.length || metrics.includes(metric.value);
  const leave = (element, out) => element.classList.toggle("out", Boolean(out));

  function filterTable(table) {
    for (const row of all("tr[data-captioner]", table)) leave(row, !isShown(row.dataset.captioner));
    all("thead th", table).forEach((head, place) => {
      const { captioner, metric: own } = head.dataset;
      if (captioner === undefined && own === undefined) return;
      const out = captioner !== undefined ? !isShown(captioner) : !isTold([own]);
      for (const row of table.rows) leave(row.cells[place], out);
    });
  }

  function filterSection(section) {
    const { captioner } = section.dataset;
    const out = !isTold(JSON.parse(section.dataset.metrics)) || (captioner && !isShown(captioner));
    leave(section, out);
  }

  // A chapter is linked as long as something of it is shown.
  function filterChapter(chapter) {
    const out = !chapter.querySelector("section:not(.out)");
    leave(chapter, out);
    leave(document.querySelector(`nav a[href="#${chapter.querySelector("h2").id}"]`).parentElement, out);
  }

  function filterChart(view, number) {
    const { data, height } = charts[number];
    const shown = data.values.filter((own) => isShown(own.captioner));
    view.data("points", shown);
    if (isPlane(number)) setRanges(view, () => null);
    else view.height((height / data.values.length) * Math.max(1, shown.length));
    view.run();
  }

  function filter() {
    all("table").forEach(filterTable);
    all("section[data-metrics]").forEach(filterSection);
    all(".chapter").forEach(filterChapter);
    for (const [number, view] of drawn) filterChart(view, number);
    const shown = [...names].filter(isShown).length;
    status.textContent = `${shown} of ${names.size} captioners`;
  }

  // --- figures

  const isPlane = (number) => "y" in charts[number].data.values[0];

  function setRanges(view, rangeOf) {
    for (const axis of ["x", "y"]) view.signal(`zoom_${axis}`, rangeOf(view.scale(axis).domain()));
  }

  function magnify(view, factor) {
    setRanges(view, ([low, high]) => {
      const [middle, half] = [(low + high) / 2, (high - low) / 2 / factor];
      return factor ? [middle - half, middle + half] : null; // null: all of it
    });
    view.run();
  }

  // Names keep clear of points and of one another; one that finds no place is told by its point.
  function placeNames(spec) {
    const signal = "[width, height]";
    for (const mark of spec.marks.filter((own) => own.type === "text")) {
      const avoidMarks = ["dots_marks", "interval_x_marks", "interval_y_marks"];
      const anchor = ["top-right", "bottom-right", "top-left", "bottom-left", "right", "left", "top", "bottom"];
      mark.transform = [{ type: "label", size: { signal }, avoidMarks, anchor, offset: [6, 12, 24, 40] }];
    }
    return spec;
  }

  async function draw(figure) {
    const element = figure.querySelector(".chart");
    const number = places.indexOf(element);
    figure.classList.add("live"); // it has a width only when it is shown
    const options = { mode: "vega-lite", ast: true, renderer: "svg", actions: false, defaultStyle: false };
    Object.assign(options, { patch: placeNames, tooltip: { disableDefaultStyle: true } });
    try {
      const { view } = await vegaEmbed(element, charts[number], options);
      drawn.set(number, view);
      if (wanted().length) filterChart(view, number);
      all("button", figure).forEach((button) => {
        button.onclick = () => magnify(view, Number(button.value));
      });
    } catch (error) {
      figure.classList.remove("live"); // the figure that was there before stays
      console.error(error);
    }
  }

  function drawWhenNear() {
    const near = new IntersectionObserver(
      (found) => {
        for (const { isIntersecting, target } of found) {
          if (!isIntersecting) continue;
          near.unobserve(target);
          draw(target);
        }
      },
      { rootMargin: "100%" },
    );
    all("figure").forEach((figure) => near.observe(figure));
  }

  if (find) {
    document.getElementById("filter").hidden = false;
    find.addEventListener("input", filter);
    metric.addEventListener("change", filter);
    filter();
  }
  if (charts.length) drawWhenNear();
})();
