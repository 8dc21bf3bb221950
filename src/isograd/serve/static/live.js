// Asks whether the page's item has changed, and shows the new page without losing one's place.
(function () {
  "use strict";
  const base = document.documentElement.dataset.root || "";
  const address = location.pathname + location.search;
  const stream = new EventSource(base + "changes?page=" + encodeURIComponent(location.pathname));
  let isBusy = false;
  stream.addEventListener("changed", async () => {
    if (isBusy || document.hidden) return;
    isBusy = true;
    try {
      const answer = await fetch(address, { credentials: "same-origin" });
      if (!answer.ok) return;
      const top = scrollY;
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      document.querySelector("main").replaceWith(fresh.querySelector("main"));
      document.dispatchEvent(new Event("isograd:drawn"));
      scrollTo(0, top);
    } finally {
      isBusy = false;
    }
  });
  addEventListener("pagehide", () => stream.close());
})();
