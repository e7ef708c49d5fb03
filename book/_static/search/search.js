// The search: which sections of the book come first for what is typed, and the lists in
// which they are shown, under the field of every page and on the page of the search.
// Loaded after MiniSearch and the entries, when somebody is about to search.
(() => {
  const { pages, entries } = window.bookEntries;
  const root = document.documentElement.dataset.content_root;
  const LONGEST = 200; // letters of a query
  const IN_LIST = 8; // results under the field

  // --- words ---

  const SILENT = new Set(
    ("a about am an and are as at be been being but by can could did do does doing for from get had has have how i if in " +
      "into is it its me mean meaning my need of on or our should so than that the their them then there these they this " +
      "difference between versus vs to use used using was we were what when where which who why will with would you your").split(" "),
  );

  // "√" is typed as sqrt, "warm-up" as warmup, "keys and values" as KV, and
  // MultiHeadAttention as three words.
  const spell = (text) =>
    text
      .replace(/√/g, " sqrt ")
      .replace(/[’']/g, "")
      .replace(/\bkeys?(?:\/| and (?:the )?)values?\b/gi, "$& kv");
  const apart = (spelled) => spelled.split(/[^\p{L}\p{N}]+/u).filter(Boolean);
  const split = (text) => {
    const spelled = spell(text);
    const joined = spelled.match(/\p{L}+(?:-\p{L}+)+/gu) ?? [];
    const parts = spelled.match(/\p{Lu}?\p{Ll}+(?=\p{Lu}\p{Ll})|(?<=\p{Ll})\p{Lu}\p{Ll}+/gu) ?? [];
    return [...apart(spelled), ...joined.map((word) => word.replaceAll("-", "")), ...parts];
  };

  // Small letters, and one form for mask, masks, masked and masking; tie, tied and tying.
  const form = (word) => {
    const low = word.toLowerCase();
    if (low.length < 4 && low !== "tie") return low;
    if (/^.(?:ie|ied|ies|ying)$/.test(low)) return `${low[0]}i`;
    return low
      .replace(/(?<![su])s$/, "")
      .replace(/(?<=[aeiouy].+)(?:ing|ed)$/, "")
      .replace(/([bdgmnprt])\1$/, "$1")
      .replace(/(?<=..)e$/, "")
      .replace(/(?<=...)y$/, "i");
  };

  const isLoud = (word) => !SILENT.has(word.toLowerCase());

  // The words that are looked for: each as it is typed, by its form.
  const words = (query) =>
    new Map(split(query.slice(0, LONGEST)).filter(isLoud).map((word) => [form(word), word]));

  // How many words a title has: "Cross-attention" has two, though it's found by three.
  const length = (title) => new Set(apart(spell(title)).filter(isLoud).map(form)).size || 1;

  // --- ranking ---

  const KINDS = { page: 1.3, section: 1.2, term: 1.2, question: 0.9, optional: 0.9, aside: 0.5, source: 0.3 };

  const index = new MiniSearch({
    fields: ["title", "names", "text", "page"],
    tokenize: split,
    processTerm: form,
    searchOptions: {
      tokenize: (forms) => forms.split(" "),
      processTerm: (word) => word,
      boost: { title: 4, names: 3, text: 1, page: 1.5 },
      prefix: (word) => word.length > 2,
      fuzzy: (word) => (word.length > 4 && word.length < 25 ? 0.2 : false),
      weights: { prefix: 0.4, fuzzy: 0.3 },
      boostDocument: (id) => KINDS[entries[id][2]],
    },
  });

  const documents = entries.map(([page, , , title, names, text], id) => ({
    id, title, names, text, page: pages[page][1],
  }));
  // In small parts, between which the page answers.
  const ready = index.addAllAsync(documents, { chunkSize: 40 });

  // What has all words comes before what has some. A title counts the more, the more of
  // it was asked for, and twice so where it has all words: a long question that happens
  // to have them gains less than a heading. The chapter with all words in its title comes
  // first.
  const find = (query) => {
    const asked = [...words(query).keys()];
    if (!asked.length) return [];
    return index
      .search(asked.join(" "))
      .map((found) => {
        const [page, anchor, kind, title, , text] = entries[found.id];
        const near = Object.keys(found.match);
        const ofTitle = [...words(title).keys()];
        const inTitle = asked.filter((word) => ofTitle.includes(word)).length;
        const share = found.queryTerms.length / asked.length;
        const hasAll = inTitle === asked.length;
        const covered = 1 + Math.min(1, inTitle / length(title));
        const titled = covered * (hasAll ? (kind === "page" ? 5 : covered) : 1);
        return { page, anchor, kind, title, text, near, score: found.score * share ** 2 * titled };
      })
      .sort((one, other) => other.score - one.score);
  };

  window.bookSearch = { ready, find, address: ({ page, anchor }) => `${pages[page][0]}#${anchor}` };

  // --- results ---

  const element = (tag, className, ...parts) => {
    const made = document.createElement(tag);
    if (className) made.className = className;
    made.append(...parts);
    return made;
  };

  const link = (text, href) => Object.assign(element("a", "", text), { href });

  // A text with the words marked that were found.
  const marked = (text, near) => {
    const isFound = (part) => split(part).some((word) => near.has(form(word)));
    return text.split(/([^\p{L}\p{N}√'’-]+)/u).map((part) =>
      isFound(part) ? element("mark", "", part) : part,
    );
  };

  // The sentence with most of the words, cut around them where it is long.
  const excerpt = (text, near) => {
    const count = (part) => new Set(split(part).map(form).filter((word) => near.has(word))).size;
    const sentences = text.match(/.+?(?:[.?!](?=\s)|$)/g) ?? [""];
    const counts = sentences.map(count);
    const best = counts.indexOf(Math.max(...counts));
    const sentence = sentences[best].trim();
    if (sentence.length <= 240) return sentence;
    const parts = sentence.split(" ");
    const first = Math.max(0, parts.findIndex((part) => count(part)) - 12);
    const some = parts.slice(first, first + 36).join(" ");
    return `${first ? "… " : ""}${some}${first + 36 < parts.length ? " …" : ""}`;
  };

  const KIND_NAMES = { term: "Glossary", question: "Questions", source: "Where each section went" };

  const item = (found, number, list) => {
    const near = new Set(found.near);
    const where = KIND_NAMES[found.kind] ?? pages[found.page][1];
    const parts = [element("small", "", found.kind === "page" ? "Page" : where)];
    parts.push(element("strong", "", ...marked(found.title, near)));
    const text = excerpt(found.text, near);
    if (text) parts.push(element("span", "", ...marked(text, near)));
    const made = link("", root + window.bookSearch.address(found));
    made.append(...parts);
    made.id = `${list.id}-${number}`;
    made.role = "option";
    made.tabIndex = -1;
    return made;
  };

  // Nothing found, or nothing to look for: a sentence, and ways on.
  const waysOn = () => [
    " Look through the ", link("questions", `${root}book/questions.html`), ", the ",
    link("glossary", `${root}book/glossary.html`), ", or the ",
    link("chapters", `${root}book/index.html`), ".",
  ];

  const shorten = (text) => (text.length > 40 ? `${text.slice(0, 40)}…` : text);

  const note = (query, results, shown) => {
    const asked = words(query);
    if (!asked.size) return ["Type a word that the book may explain, such as mask or BLEU.", ...waysOn()];
    if (!results.length) return [`Nothing in the book has “${shorten(query.trim())}”.`, ...waysOn()];
    const near = results.slice(0, shown).flatMap((found) => found.near);
    const strange = [...asked.keys()].filter((word) => !near.some((other) => other.startsWith(word)));
    if (strange.length) {
      const typed = strange.map((word) => asked.get(word)).join(" ");
      return [`Nothing has “${shorten(typed)}” as it is typed. The nearest:`];
    }
    return [shown === IN_LIST ? "Enter shows more." : "The nearest sections come first."];
  };

  // --- a field, and its list ---

  const attach = (field, place, shown) => {
    const said = element("p", "search-note");
    const list = element("div", "search-list");
    said.setAttribute("role", "status");
    list.id = `found-${place.className}`;
    list.role = "listbox";
    list.ariaLabel = "Sections found";
    place.append(said, list);
    for (const [name, value] of Object.entries({
      role: "combobox", "aria-autocomplete": "list", "aria-controls": list.id, "aria-expanded": "false",
    })) field.setAttribute(name, value);
    let chosen = -1;

    const choose = (number) => {
      list.children[chosen]?.removeAttribute("aria-selected");
      chosen = number;
      const option = list.children[chosen];
      option?.setAttribute("aria-selected", "true");
      option?.scrollIntoView({ block: "nearest" });
      if (option) field.setAttribute("aria-activedescendant", option.id);
      else field.removeAttribute("aria-activedescendant");
    };

    const close = () => {
      place.hidden = true;
      field.setAttribute("aria-expanded", "false");
      choose(-1);
    };

    const show = async () => {
      const isBlank = !field.value.trim();
      place.hidden = isBlank;
      if (isBlank) return close();
      said.textContent = "Reading the book …";
      await ready;
      const results = find(field.value);
      const options = results.slice(0, shown).map((found, number) => item(found, number, list));
      choose(-1);
      said.replaceChildren(...note(field.value, results, shown));
      list.replaceChildren(...options);
      list.hidden = !options.length;
      field.setAttribute("aria-expanded", String(options.length > 0));
    };

    field.addEventListener("input", show);
    field.addEventListener("focus", show);
    field.addEventListener("keydown", (event) => {
      const count = list.children.length;
      if (event.key === "Escape" && !place.hidden) close();
      else if (event.key === "ArrowDown" && count) choose((chosen + 1) % count);
      else if (event.key === "ArrowUp" && count) choose((chosen < 1 ? count : chosen) - 1);
      else if (event.key === "Enter" && chosen >= 0) list.children[chosen].click();
      else return;
      event.preventDefault();
    });
    list.addEventListener("click", (event) => {
      if (event.target.closest("a") && place.className === "found") close();
    });
    return { show, close };
  };

  // --- the field of every page; the page of the search ---

  const bar = document.querySelector(".search");
  const inBar = element("div", "found");
  bar.append(inBar);
  const quick = attach(bar.querySelector("input"), inBar, IN_LIST);
  inBar.hidden = true;
  bar.addEventListener("focusout", ({ relatedTarget }) => {
    if (relatedTarget && !bar.contains(relatedTarget)) quick.close();
  });
  addEventListener("pointerdown", ({ target }) => {
    if (!bar.contains(target)) quick.close();
  });
  if (document.activeElement === bar.querySelector("input")) quick.show();

  const everything = document.querySelector(".all-found");
  if (everything) {
    const field = document.querySelector(".search-page input");
    const full = attach(field, everything, 40);
    field.value = new URLSearchParams(location.search).get("q") ?? field.value;
    full.show();
  }
})();
