// The whole model: a click on a box of the map shows what is told of it.
{
  const explorer = document.querySelector(".explorer");
  const links = [...explorer.querySelectorAll(".explorer-map a")];
  const told = (link) => document.getElementById(link.hash.slice(1));
  const said = document.createElement("p"); // to those who don't see the map
  said.className = "explorer-said";
  said.setAttribute("role", "status");
  explorer.append(said);
  for (const heading of explorer.querySelectorAll("summary")) heading.tabIndex = -1;
  const named = () => links.find((link) => link.hash === location.hash);

  const choose = (chosen) => {
    for (const link of links) {
      told(link).closest("details").open = link === chosen;
      if (link === chosen) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  };

  explorer.addEventListener("click", (event) => {
    const link = event.target.closest(".explorer-map a");
    if (link) {
      event.preventDefault();
      history.replaceState(null, "", link.hash);
      choose(link);
      const parts = told(link).closest("details").querySelectorAll("summary, p, li");
      said.textContent = [...parts].map((part) => part.textContent).join(". ");
      told(link).closest("details").scrollIntoView({ block: "nearest" });
    }
    if (event.target.closest("summary")) event.preventDefault(); // it is a heading now
  });
  window.addEventListener("hashchange", () => named() && choose(named()));

  explorer.classList.add("live");
  choose(named() ?? links.find((link) => link.hash === "#box-decoder-cross-attention"));
}
