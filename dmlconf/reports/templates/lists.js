// Filters lists and tables that the page has already, by text; the filter stays in the address.
(() => {
  const form = document.getElementById("filters");
  if (!form) return;
  const field = form.elements.text, count = document.getElementById("count");
  const lines = [...document.querySelectorAll("ul.cases > li, tbody.filtered > tr")];
  const cases = lines.filter((line) => line.tagName === "LI");
  const words = lines.map((line) => line.textContent.toLowerCase());
  const format = (value) => value.toLocaleString("en-US");
  form.hidden = false;

  function filter() {
    const wanted = field.value.trim().toLowerCase();
    lines.forEach((line, at) => { line.hidden = !words[at].includes(wanted); });
    const shown = cases.filter((line) => !line.hidden).length;
    count.textContent = wanted ? `${format(shown)} of ${format(cases.length)} listed cases` : "";
  }

  function follow() {
    if (!/^#text=/.test(location.hash)) return;
    field.value = new URLSearchParams(location.hash.slice(1)).get("text") || "";
    filter();
  }

  field.addEventListener("input", () => {
    filter();
    const query = new URLSearchParams({ text: field.value });
    history.replaceState(null, "", field.value ? `#${query}` : location.pathname + location.search);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", follow);
  follow();
  document.documentElement.dataset.ready = "true";
})();
