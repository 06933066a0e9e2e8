"use strict";
// What a page answers: it leaves out captioners and metrics.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const find = document.getElementById("find");
  const metric = document.getElementById("metric");
  const status = document.getElementById("told");
  const names = new Set(all("[data-captioner]").map((own) => own.dataset.captioner));

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

  function filter() {
    all("table").forEach(filterTable);
    all("section[data-metrics]").forEach(filterSection);
    all(".chapter").forEach(filterChapter);
    for (const mark of all("figure [data-captioner]")) leave(mark, !isShown(mark.dataset.captioner));
    const shown = [...names].filter(isShown).length;
    status.textContent = `${shown} of ${names.size} captioners`;
  }

  if (find) {
    document.getElementById("filter").hidden = false;
    find.addEventListener("input", filter);
    metric.addEventListener("change", filter);
    filter();
  }
})();
