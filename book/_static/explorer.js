// The whole model: a click on a box of the map shows what is told of it.
{
  const explorer = document.querySelector(".explorer");
  const links = [...explorer.querySelectorAll(".explorer-map a")];
  const told = (link) => document.getElementById(link.hash.slice(1));
  const named = () => links.find((link) => link.hash === location.hash);

  const choose = (chosen) => {
    for (const link of links) {
      told(link).closest("details").open = link === chosen;
      link.toggleAttribute("aria-current", link === chosen);
    }
  };

  explorer.addEventListener("click", (event) => {
    const link = event.target.closest(".explorer-map a");
    if (link) {
      event.preventDefault();
      history.replaceState(null, "", link.hash);
      choose(link);
      told(link).closest("details").scrollIntoView({ block: "nearest" });
    }
    if (event.target.closest("summary")) event.preventDefault(); // it is a heading now
  });
  window.addEventListener("hashchange", () => named() && choose(named()));

  explorer.classList.add("live");
  choose(named() ?? links.find((link) => link.hash === "#box-decoder-cross-attention"));
}
