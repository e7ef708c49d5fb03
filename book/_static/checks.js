// The page of questions to check oneself: which were right at first try, and a file of it.
(() => {
  const store = "check-yourself"; // the answers stay in this browser
  let answers = {};
  try {
    answers = JSON.parse(localStorage.getItem(store)) ?? {};
  } catch {} // without a memory, they last as long as the page

  const line = document.createElement("div");
  line.className = "check-result";
  line.innerHTML =
    "<output></output><button>Save my answers</button><button>Start over</button>";
  const [output, save, restart] = line.children;
  document.querySelector("section section").before(line);

  const count = (start) => {
    const tried = Object.keys(answers).filter((id) => id.match(start));
    return `${tried.filter((id) => answers[id].right).length} of ${tried.length}`;
  };
  const mark = (id) => (answers[id] ? (answers[id].right ? "✓" : "✗") : "–");
  for (const place of document.querySelectorAll(".check-again :is(summary, li > p)"))
    place.append(document.createElement("output"));
  const show = () => {
    output.textContent = Object.keys(answers).length
      ? `Right at first try: A ${count("A")}, B ${count("B")}.`
      : "Your first tries are counted here.";
    for (const again of document.querySelectorAll(".check-again")) {
      const chapter = again.closest("section").querySelector(".check").id.slice(6, 8);
      const tried = Object.keys(answers).some((id) => id.startsWith(chapter));
      const both = `A ${count(`${chapter}A`)}, B ${count(`${chapter}B`)}`;
      again.querySelectorAll("output").forEach((place, n) => {
        const each = `A ${mark(`${chapter}A${n}`)} B ${mark(`${chapter}B${n}`)}`;
        place.textContent = !tried ? "" : n ? each : both; // the first is all four
        place.closest("li")?.classList.toggle("settled", each.endsWith("✓"));
      });
    }
    try {
      localStorage.setItem(store, JSON.stringify(answers));
    } catch {}
  };

  document.querySelector("article").addEventListener("click", ({ target }) => {
    const choice = target.closest("summary")?.parentElement; // a key clicks, too
    const id = choice?.closest(".check")?.id.slice(6).toUpperCase();
    if (!id || answers[id]) return;
    const right = choice.matches(".right");
    const [first, text] = [...choice.querySelectorAll("b, strong")].map((b) => b.textContent);
    answers[id] = { first, right, mistake: right ? "" : text.slice(7, -1) };
    show();
  });
  save.addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([JSON.stringify(answers, null, 1)]));
    link.download = "check-yourself.json";
    link.click();
  });
  restart.addEventListener("click", () => {
    if (!confirm("Forget all your answers? Save them first to keep a copy.")) return;
    answers = {};
    show();
  });
  show();
})();
