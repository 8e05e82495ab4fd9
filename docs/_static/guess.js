// A chapter can be played: guess how many times as fast, or how many, or which, then see what was found. Guesses are kept
// in this browser alone, where it keeps anything; without this script a result is folded, and unfolds. docs/conf.py and
// guess.py have marked the folds, and conf.py says on this script's tag what counts as near; the words are those of a
// notebook (guess.py, chart.py).
(() => {
  const RULE = JSON.parse(document.currentScript.dataset.rule);
  const WORDS = [...Object.keys(RULE.within), RULE.beyond];
  const PLACE = "fast-pytorch-guesses"; // title -> [guess, what was found, word, page]
  const PAGE = location.pathname.split("/").pop();
  const WIDEST = 60; // percent of a chart's width for its bars
  const PREFIX = { k: 1e3, M: 1e6, G: 1e9 };

  let kept = {};
  const load = () => {
    try {
      kept = JSON.parse(localStorage.getItem(PLACE)) ?? {};
    } catch {} // refused, or nothing that we wrote: what was guessed on this page is known, and no more
    return kept;
  };
  const keep = (guesses) => {
    kept = guesses;
    try {
      localStorage.setItem(PLACE, JSON.stringify(guesses));
    } catch {}
    showJournal();
  };

  const rounded = (number) => Number(number.toPrecision(3)).toLocaleString("en", { maximumFractionDigits: 10 });
  const times = (ratio) => `${rounded(ratio)}×`;
  const told = (guess) => (guess.toPrecision ? (guess % 1 ? rounded(guess) : guess.toLocaleString("en")) : guess);
  const inWords = (ratio) => (ratio >= 1 ? `${times(ratio)} faster` : `${times(1 / ratio)} slower`);
  const element = (name, properties, ...parts) => {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...parts);
    return made;
  };

  // A word is met or not, a whole number is near by one or a tenth, what was measured counts by its factor.
  const howNear = (guess, truth, whole) => {
    const [right, near] = WORDS;
    if (typeof truth === "string") return guess.trim().toLowerCase() === truth.toLowerCase() ? right : RULE.beyond;
    const off = Math.abs(guess - truth);
    if (whole) return off === 0 ? right : off <= Math.max(1, truth / 10) ? near : RULE.beyond;
    const factor = guess * truth > 0 ? Math.max(guess / truth, truth / guess) : off && Infinity;
    return WORDS.find((word) => factor <= RULE.within[word]) ?? RULE.beyond;
  };

  const tally = (guesses) => {
    if (guesses.length < 2) return "";
    const [[right, little], [near, most]] = Object.entries(RULE.within);
    const count = (wanted) => guesses.filter(([, , word]) => word === wanted).length;
    const numbers = guesses.filter(([guess, truth]) => guess * truth > 0); // neither words nor pairs
    const leans = numbers.map(([guess, truth]) => guess / truth).sort((one, other) => one - other);
    const lean = leans.length ? (leans[(leans.length - 1) >> 1] + leans[leans.length >> 1]) / 2 : 1;
    const side = lean > little ? "too high" : lean < 1 / little ? "too low" : "neither too high nor too low";
    const found = `${count(right)} right and ${count(near)} near (within ${most}×) of ${guesses.length}`;
    return `Your guesses so far: ${found}, mostly ${side}.`;
  };

  // At a chapter's end, and above the map of the front page, which also says how many there are of each chapter.
  const journal = element("section", { className: "journal", ariaLabel: "Your guesses" });
  const showJournal = () => {
    const guesses = Object.values(load());
    const none = "A chapter asks for a guess before it shows what was measured or counted.";
    const where = "Guesses are kept in this browser alone, and sent nowhere.";
    journal.replaceChildren(element("p", {}, `${tally(guesses) || none} ${where} `));
    if (guesses.length) {
      const forget = element("button", { type: "button", textContent: "Forget them" });
      forget.addEventListener("click", () => keep({}));
      journal.append(forget);
    }
    for (const link of document.querySelectorAll("#chapters td:first-child a")) {
      const mine = guesses.filter(([, , , page]) => page === link.getAttribute("href").split("/").pop());
      const good = mine.filter(([, , word]) => word !== RULE.beyond).length;
      link.parentElement.querySelector(".guesses")?.remove();
      if (!mine.length) continue;
      const said = ` Your guesses: ${good} of ${mine.length} within ${Object.values(RULE.within).at(-1)}×.`;
      link.parentElement.append(element("small", { className: "guesses" }, said));
    }
  };

  // The guess as a bar beside the others, which are drawn anew where it lies outside of them.
  const mark = (chart, name, guess) => {
    const part = [...chart.children].find((one) => one.querySelector("b")?.textContent === name);
    const mine = part.querySelector("div").cloneNode(true);
    const split = (bar) => {
      const [space, ...pair] = bar.children;
      const words = pair.pop();
      return [space, pair.find((one) => one.style.borderTopWidth), words, pair.find((one) => one.style.height)];
    };
    const [space, drawn, words, line] = split(mine);
    words.textContent = `you said ${inWords(guess)}`;
    mine.replaceChildren(space, ...(guess >= 1 ? [line, drawn] : [drawn, line]), words);
    drawn.style.borderTop = `10px solid ${RULE.colour}`;
    part.append(mine);
    const bars = [...chart.querySelectorAll(":scope > div > div")];
    const logs = bars.map((bar) => {
      const [, number] = bar.textContent.match(/([\d.,]+)×/);
      return Math.log(number.replaceAll(",", "")) * (bar.textContent.includes("× slower") ? -1 : 1);
    });
    const slowest = Math.min(0, ...logs);
    const scale = WIDEST / Math.max(Math.max(0, ...logs) - slowest, Math.LN2);
    bars.forEach((bar, one) => {
      const [space, drawn, words] = split(bar);
      space.style.width = `${scale * (Math.min(logs[one], 0) - slowest)}%`;
      drawn.style.width = `${scale * Math.abs(logs[one])}%`;
      words.style.width = `${97 - scale * (Math.max(logs[one], 0) - slowest)}%`;
    });
    chart.ariaLabel += ` You${words.textContent.slice(3)}.`;
  };

  // The slider of a ratio says the same as its box.
  const slide = (number) => {
    const slider = element("input", { type: "range", min: -2, max: 4, step: 0.05, value: 0 });
    const words = element("span", { className: "words" });
    slider.ariaLabel = "The same guess, by a slider";
    number.min = "0.0001";
    const tell = () => {
      words.textContent = slider.ariaValueText = number.validity.valid ? inWords(number.valueAsNumber) : "";
    };
    slider.addEventListener("input", () => {
      number.value = Number((10 ** slider.value).toPrecision(2));
      tell();
    });
    number.addEventListener("input", () => {
      if (number.validity.valid) slider.value = Math.log10(number.value);
      tell();
    });
    return [slider, words];
  };

  const play = (fold) => {
    const { title, truths, whole, first, last, device, range, choices } = JSON.parse(fold.dataset.asked);
    const isRatio = last && !choices;
    const cell = fold.closest(".cell");
    const summary = fold.querySelector("summary");
    const answer = fold.querySelector("p > b");
    const boxes = truths.map((truth) => {
      if (choices) return element("select", { required: true }, ...["", ...choices].map((one) => new Option(one)));
      const kind = typeof truth === "string" ? { type: "text" } : { type: "number", step: "any" };
      return element("input", { ...kind, required: true });
    });
    const [box, ...more] = boxes;
    for (const one of more) one.ariaLabel = `and the next: ${title}`;
    const [advised, usual, asked] = [last, first, title].map((name) => element("b", {}, name));
    const question = isRatio ? ["How many times as fast is ", advised, " as ", usual, "? "]
      : choices ? ["What does ", advised, " save most, beside ", usual, "? "]
      : [asked, ": "];
    const verdict = element("output");
    const form = element(
      "form",
      { className: "guess" },
      element("label", {}, ...question, box),
      ...more.map((one) => element("label", {}, "and ", one)), ...(isRatio ? slide(box) : []),
      element("button", { textContent: "Compare" }), verdict,
    );
    const reveal = (guess, word) => {
      const mine = isRatio ? times(guess) : [guess].flat().map(told).join(" and ");
      const found = isRatio ? `was ${times(truths[0])} on ${device} (${range})`
        : choices ? `is mostly ${truths[0]}`
        : `was ${answer.textContent.slice(title.length + 2, -1)}`;
      verdict.textContent = `You said ${mine}, it ${found}: ${word}.`;
      form.replaceChildren(verdict);
      summary.textContent = summary.textContent.replace(" Guess, or open.", "");
      answer.nextSibling.textContent = "";
      if (isRatio) mark(fold.querySelector("[role=img]"), last, guess);
      const why = cell.nextElementSibling;
      for (const one of [fold, ...(why?.matches(".after-the-guess") ? [why] : [])]) one.open = true;
    };
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const guesses = boxes.map((one) => (one.type === "number" ? one.valueAsNumber : one.value));
      const near = guesses.map((guess, one) => WORDS.indexOf(howNear(guess, truths[one], whole[one])));
      const word = WORDS[Math.max(...near)];
      const [guess, truth] = [guesses, truths].map((all) => (all.length > 1 ? all : all[0]));
      keep({ ...load(), [title]: [guess, truth, word, PAGE] });
      reveal(guess, word);
      summary.focus({ preventScroll: true });
    });
    summary.textContent = summary.textContent.replace(/Guess first:.*/, "Guess, or open.");
    fold.before(form);
    const blank = cell.previousElementSibling;
    if (blank?.textContent.trim() === "guess = ...") blank.hidden = true;
    if (title in kept) reveal(kept[title][0], kept[title][2]);
  };

  // Where the variants are sizes, a slider tells what one of them takes.
  const addSizes = (fold) => {
    const sizes = {};
    let device;
    for (const row of fold.querySelectorAll("tbody tr")) {
      const [where, name, time] = [...row.cells].map((cell) => cell.textContent);
      device = where ? where.split(",")[0] : device;
      const [, number, unit] = name.match(/^([\d.,]+) (\w+)$/) ?? [];
      if (!number) return;
      const size = number.replaceAll(",", "") * (PREFIX[unit.match(/^(.)B$/)?.[1]] ?? 1);
      (sizes[size] ??= { name, times: [] }).times.push(`${time} (${device})`);
    }
    const sorted = Object.keys(sizes).sort((one, other) => one - other).map((size) => sizes[size]);
    const slider = element("input", { type: "range", min: 0, max: sorted.length - 1, value: 0 });
    const told = element("output");
    const tell = () => {
      const { name, times } = sorted[slider.value];
      slider.ariaValueText = name;
      told.textContent = `${name}: ${times.join("; ")}`;
    };
    slider.addEventListener("input", tell);
    tell();
    fold.querySelector("[role=img]").before(element("p", { className: "sizes" }, element("label", {}, "Size ", slider), told));
  };

  // On a phone, what has many lines is folded: code is read where it can be run.
  const foldLines = (word, most) => (part) => {
    const lines = part.textContent.trim().split("\n").length;
    if (lines <= most || part.parentElement.closest("details")) return;
    const fold = element("details", {}, element("summary", {}, `${word}, ${lines} lines`));
    part.replaceWith(fold);
    fold.append(part);
  };

  document.addEventListener("DOMContentLoaded", () => {
    load();
    const folds = document.querySelectorAll("details[data-asked]");
    folds.forEach(play);
    document.querySelectorAll("details[data-asked]:has([role=img])").forEach(addSizes);
    if (folds.length) document.querySelector("article").append(journal);
    else document.querySelector("#chapters:has(a[href^='course/']) > h2")?.after(journal);
    showJournal();
    if (!matchMedia("(max-width: 600px)").matches) return;
    document.querySelectorAll(".cell_input").forEach(foldLines("Code", 3));
    document.querySelectorAll(".cell_output .output:has(> pre, > .highlight)").forEach(foldLines("Output", 4));
  });
})();
