// Browsers start no worker for a page that is opened from disk, and search runs in one: here it runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      const inside = frame.contentWindow;
      const base = new URL(url, location.href);
      const receive = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      };
      inside.postMessage = receive;
      // Scripts follow one another, as in a worker, and report when the last one is there.
      inside.importScripts = (...names) =>
        names.reduce((before, name) => before.then(() => new Promise((done, fail) => {
          const script = inside.document.createElement("script");
          script.src = new URL(name, base).href;
          script.onload = done;
          script.onerror = fail;
          inside.document.body.appendChild(script);
        })), Promise.resolve());
      const worker = inside.document.createElement("script");
      worker.src = base.href;
      worker.onload = () => {
        this.inside = inside;
        this.waiting.splice(0).forEach((data) => this.postMessage(data));
      };
      inside.document.body.appendChild(worker);
    }
    postMessage(data) {
      if (!this.inside) { this.waiting.push(data); return; }
      const event = new MessageEvent("message", { data });
      if (this.inside.onmessage) this.inside.onmessage(event);
      this.inside.dispatchEvent(event);
    }
    terminate() {}
  };
}
