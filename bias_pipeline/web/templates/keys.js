"use strict";
// The number of an answer gives it, the left arrow goes back; once a page.
let done = false;
document.addEventListener("submit", (event) => {
  if (done) event.preventDefault();
  done = true;
});
window.addEventListener("pageshow", (event) => {
  done = false;
  if (event.persisted) location.reload(); // a page from the browser's memory does not know the answer
});
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.tagName === "INPUT") return;
  for (const target of document.querySelectorAll("[data-key]")) {
    if (target.dataset.key === event.key) {
      event.preventDefault();
      target.click();
    }
  }
});
