// A filter for the page of claims. Without it the page is its parts, one for each verdict.
document.addEventListener("DOMContentLoaded", () => {
  const score = document.getElementById("the-score");
  if (!score) return;
  const parts = [...score.querySelectorAll(":scope > section")];
  // Findings and published figures are folded; of what is folded, only the claims that hold are rows.
  const isRow = (item) => {
    const fold = item.closest("details")?.querySelector("summary").textContent ?? "more:";
    return fold.includes("more:") && !item.parentElement.closest("li");
  };
  const rows = [...score.querySelectorAll("section li")].filter(isRow);
  const form = document.createElement("form");
  form.className = "filter";
  form.innerHTML = `
    <label>Claims about <input type="search" placeholder="pin_memory, compile, B7 …"></label>
    <label>measured on <select><option value="">any device</option><option>CPU</option><option>GPU</option></select></label>
    <output aria-live="polite"></output>`;
  parts[0].before(form);
  const [words, device] = form.elements;
  const show = () => {
    const wanted = words.value.toLowerCase().split(/\s+/);
    let left = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      const places = [...row.querySelectorAll("em")].map((place) => place.textContent).join();
      row.hidden = !(wanted.every((word) => text.includes(word)) && places.includes(device.value));
      left += !row.hidden;
      if (!row.hidden && words.value) row.closest("details")?.setAttribute("open", "");
    }
    for (const part of parts) part.hidden = !rows.some((row) => !row.hidden && part.contains(row));
    form.querySelector("output").value = `${left} of ${rows.length}`;
  };
  form.addEventListener("input", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  show();
});

// A search shows the sentence with the words. The theme looks for their stems ("pin_memori"), and finds few.
document.addEventListener("DOMContentLoaded", () => {
  if (typeof Search === "undefined") return;
  Search.makeSearchSummary = (page, stems, anchor) => {
    const main = new DOMParser().parseFromString(page, "text/html").querySelector("article");
    const place = (anchor && main.querySelector(anchor)) || main;
    const words = [...stems].map((stem) => stem.replace(/i$/, ""));
    const found = (text) => words.filter((word) => text.toLowerCase().includes(word)).length;
    const parts = (within, end) =>
      [...place.querySelectorAll(within)].flatMap((one) => one.textContent.split(end));
    const sentences = [...parts("p, li", /(?<=[.?!:])\s+/), ...parts("pre", "\n")];
    const best = sentences.reduce((one, other) => (found(other) > found(one) ? other : one), sentences[0] ?? "");
    const summary = document.createElement("p");
    summary.className = "context";
    summary.textContent = best.length > 300 ? `${best.slice(0, 300)} …` : best;
    return summary;
  };
});
