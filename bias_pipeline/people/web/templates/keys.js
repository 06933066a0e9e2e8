"use strict";
// Keys do what is marked with them: answer, turn a page, search. A form is sent once a page. A key that
// is held down counts once, or it would answer the next pages too. No answer is sent before
// its picture is there.
let done = false;
document.addEventListener("submit", (event) => {
  const unseen = event.target.matches(".answers") && [...document.images].some((image) => !image.complete);
  if (done || unseen) event.preventDefault();
  else done = true;
});
window.addEventListener("pageshow", (event) => {
  done = false;
  if (event.persisted) location.reload(); // a page from the browser's memory does not know the answer
});
document.addEventListener("keydown", (event) => {
  if (event.repeat || event.ctrlKey || event.altKey || event.metaKey || event.target.matches("input, select")) return;
  for (const target of document.querySelectorAll("[data-key]")) {
    if (target.dataset.key === event.key) {
      event.preventDefault();
      target.click();
    }
  }
});
