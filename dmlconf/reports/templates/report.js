(async () => {
  const STEP = 100;
  const byId = (id) => document.getElementById(id);
  const packed = Uint8Array.from(atob(byId("data").textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const data = JSON.parse(await new Response(stream).text());
  const form = byId("filters"), list = byId("cases"), count = byId("count"), more = byId("more");
  const FIELDS = ["text", "operator", "group", "tag", "type", "level"];
  let shown = [], limit = STEP, opened = "";

  const make = (tag, text, name) => {
    const node = document.createElement(tag);
    if (text !== undefined) node.textContent = text;
    if (name) node.className = name;
    return node;
  };
  const svg = (tag, attributes, text) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const named = (status) => data.statuses[status];
  const css = (status) => named(status).replace(" ", "-");
  const number = (value) => value.toLocaleString("en-US");

  function options(name, values) {
    for (const value of values) form.elements[name].append(new Option(value, value));
  }
  options("operator", data.operators);
  for (const [index, members] of data.groups.entries())
    form.elements.group.append(new Option(`${index + 1}: ${number(members.length)} failures`, index + 1));
  if (!data.groups.length) form.elements.group.closest("label").hidden = true;
  options("tag", data.tags);
  options("type", data.types);
  options("level", data.levels);
  if (!data.types.length) form.elements.type.closest("label").hidden = true;
  if (!data.levels.length) form.elements.level.closest("label").hidden = true;
  for (const [index, status] of data.statuses.entries()) {
    if (!data.counts[index]) continue;
    const label = make("label"), box = make("input");
    box.type = "checkbox"; box.name = "status"; box.value = String(index);
    label.append(box, `${status} (${number(data.counts[index])})`);
    form.querySelector("fieldset").append(label);
  }
  const boxes = [...form.querySelectorAll("[name=status]")];
  const usual = (box) => data.failing && data.fails[Number(box.value)];
  const reset = () => { clear(); for (const box of boxes) box.checked = usual(box); };
  reset();

  function matches() {
    const text = form.elements.text.value.toLowerCase();
    const operator = data.operators.indexOf(form.elements.operator.value);
    const tag = data.tags.indexOf(form.elements.tag.value);
    const type = data.types.indexOf(form.elements.type.value);
    const level = data.levels.indexOf(form.elements.level.value);
    const group = form.elements.group.value ? new Set(data.groups[form.elements.group.value - 1]) : null;
    const checked = boxes.filter((box) => box.checked).map((box) => Number(box.value));
    const wanted = checked.length ? new Set(checked) : null;
    const result = [];
    for (const [index, entry] of data.cases.entries()) {
      if (wanted && !wanted.has(entry.s)) continue;
      if (group && !group.has(index)) continue;
      if (operator >= 0 && entry.o !== operator) continue;
      if (tag >= 0 && !entry.t.includes(tag)) continue;
      if (type >= 0 && !(entry.d || []).includes(type)) continue;
      if (level >= 0 && entry.l !== level) continue;
      if (text && !entry.i.toLowerCase().includes(text) && !entry.h.startsWith(text) &&
          !(entry.r && (entry.r.message + entry.r.kind).toLowerCase().includes(text))) continue;
      result.push(index);
    }
    return result;
  }

  function clear() {
    for (const name of FIELDS) form.elements[name].value = "";
    for (const box of boxes) box.checked = false;
  }

  // The address holds the filter, #operator=GEMM&status=failed, and the open case; where the filter
  // is the page's own, it is the case's identifier alone.
  function address() {
    const query = new URLSearchParams();
    for (const name of FIELDS) if (form.elements[name].value) query.set(name, form.elements[name].value);
    if (boxes.some((box) => box.checked !== usual(box))) {
      const names = boxes.filter((box) => box.checked).map((box) => named(box.value));
      query.set("status", names.join(",") || "all");
    }
    const entry = opened && data.cases.find((each) => each.h === opened);
    const filter = query.toString();
    if (filter && entry) query.set("case", opened);
    return filter ? query.toString() : entry ? encodeURIComponent(entry.i) : "";
  }

  function keep() {
    const hash = address();
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  }

  function restore(query) {
    const statuses = query.get("status");
    clear();
    for (const name of FIELDS) form.elements[name].value = query.get(name) || "";
    const wanted = statuses ? statuses.split(",") : null;
    const own = FIELDS.every((name) => !query.get(name) || name === "text");
    for (const box of boxes)
      box.checked = wanted ? wanted.includes(named(box.value)) : own && usual(box);
  }

  function refresh() {
    shown = matches(); limit = STEP;
    list.replaceChildren();
    extend(0);
  }

  function extend(from) {
    for (const index of shown.slice(from, limit)) list.append(item(index));
    const visible = Math.min(limit, shown.length);
    count.textContent = `${number(shown.length)} of ${number(data.cases.length)} cases` +
      (visible < shown.length ? `, the first ${number(visible)} shown` : "");
    more.hidden = visible >= shown.length;
  }

  // Parameters in brackets, with points where a line may break.
  function listed(own) {
    const node = make("span", "[", "soft");
    own.forEach((each, index) => node.append(...(index ? [",", make("wbr")] : []), each));
    node.append("]");
    return node;
  }

  function item(index) {
    const entry = data.cases[index], row = make("li"), details = make("details");
    const summary = make("summary"), head = make("span", undefined, "head");
    const [stem, own] = parameters(entry.i), code = make("code", stem);
    if (own.length) code.append(listed(own));
    head.append(make("span", named(entry.s), `status ${css(entry.s)}`), make("span", entry.h, "handle mono"));
    if (entry.r) head.append(make("span", entry.r.kind, "kind soft"));
    summary.append(head, code);
    details.dataset.handle = entry.h;
    details.append(summary);
    details.addEventListener("toggle", () => {
      if (details.open && details.children.length === 1) details.append(body(index));
      if (details.open) opened = entry.h; else if (opened === entry.h) opened = "";
      keep();
    });
    row.append(details);
    return row;
  }

  function table(headings, rows, caption) {
    const box = make("div", undefined, "scroll"), node = make("table"), head = make("tr");
    for (const heading of headings) {
      const cell = make("th", heading); cell.scope = "col"; head.append(cell);
    }
    node.append(make("thead")); node.tHead.append(head);
    const bodyPart = make("tbody");
    for (const row of rows) {
      const line = make("tr");
      for (const value of row) line.append(make("td", String(value ?? ""), "mono"));
      bodyPart.append(line);
    }
    node.append(bodyPart); box.append(node); box.tabIndex = 0;
    box.setAttribute("role", "region"); box.setAttribute("aria-label", caption);
    return box;
  }

  function facts(pairs) {
    const node = make("dl", undefined, "facts");
    for (const [name, value] of pairs) if (value !== undefined && value !== null && value !== "")
      node.append(make("dt", name), make("dd", String(value)));
    return node;
  }

  function body(index) {
    const entry = data.cases[index], node = make("div", undefined, "case");
    if (entry.r) {
      node.append(make("p", entry.r.message));
      if (entry.r.diagnostics) node.append(make("pre", entry.r.diagnostics));
    }
    node.append(facts([["operator", data.operators[entry.o]], ["at", entry.a],
      ["tags", entry.t.map((tag) => data.tags[tag]).join(", ")],
      ["feature level", data.levels[entry.l]], ["expected values", entry.e], ["time", entry.m ? `${entry.m} ms` : ""],
      ...Object.entries(entry.f || {}).map(([k, v]) => [k, typeof v === "object" ? JSON.stringify(v) : v])]));
    if (entry.x && entry.x.length) node.append(make("h3", "First elements that differ"),
      table(entry.x[0].keys, entry.x.map((x) => x.values), `First elements that differ, ${entry.i}`));
    for (const output of entry.g || []) {
      node.append(make("h3", output.name), facts(output.facts));
      if (output.map) node.append(heatMap(output));
      if (output.histogram) node.append(histogram(output));
    }
    node.append(make("h3", "Show this case"), command(`dmlconf show ${entry.h} ${data.paths}`.trim()));
    const under = entry.u ? ` --circumstances ${quoted(entry.u)}` : "";
    node.append(make("h3", "Run this case again"), command(`${data.command} --case ${quoted(entry.i)}${under}`));
    const near = neighbours(index);
    if (near.length) {
      node.append(make("h3", "Neighbours that pass"));
      const items = make("ul");
      for (const other of near) {
        const line = make("li"), link = make("a", other.i);
        link.href = "#" + encodeURIComponent(other.i); line.append(link); items.append(line);
      }
      node.append(items);
    }
    return node;
  }

  function quoted(word) {
    return "'" + word.replaceAll("'", "'\\''") + "'";
  }

  function command(text) {
    const node = make("pre", text, "command");
    node.tabIndex = 0;
    const holder = make("div");
    holder.append(node);
    return copyable(node);
  }

  function heatMap(output) {
    const { rows, axes, sizes } = output.map, side = 12;
    const width = rows[0].length * side, height = rows.length * side;
    const leading = sizes.slice(0, axes).join(" × ") || "1", rest = sizes.slice(axes).join(" × ") || "1";
    const label = `Where ${output.name} differs: rows are the first ${axes} axes (${leading}), ` +
      `columns the last ${sizes.length - axes} (${rest}); row-major`;
    const figure = make("figure"), image = svg("svg", { width, height, role: "img", "aria-label": label });
    rows.forEach((row, y) => [...row].forEach((level, x) =>
      image.append(svg("rect", { x: x * side, y: y * side, width: side - 1, height: side - 1, class: `e${level}` }))));
    figure.append(image, make("figcaption", label + ". Darker is a larger error; empty is the same bits.", "soft"));
    return figure;
  }

  function histogram(output) {
    const steps = Object.entries(output.histogram), most = Math.max(...steps.map(([, n]) => n));
    const wide = 64, tall = 90, width = steps.length * wide;
    const image = svg("svg", { width, height: tall + 30, role: "img",
      "aria-label": "Elements by distance in ULP: " + steps.map(([s, n]) => `${s}: ${n}`).join(", ") });
    let line = null;
    steps.forEach(([step, n], i) => {
      const beyond = output.ulp !== undefined && !(Number(step) <= output.ulp);
      if (beyond && line === null) line = i * wide + 1;
      const height = Math.max(2, tall * Math.log2(1 + n) / Math.log2(1 + most));
      image.append(svg("rect", { x: i * wide + 4, y: tall - height, width: wide - 8, height, class: beyond ? "beyond" : "bar" }),
        svg("text", { x: i * wide + wide / 2, y: tall + 12, "text-anchor": "middle" }, step),
        svg("text", { x: i * wide + wide / 2, y: tall + 26, "text-anchor": "middle" }, number(n)));
    });
    if (line !== null) image.append(svg("line", { x1: line, x2: line, y1: 0, y2: tall, class: "limit" }));
    const figure = make("figure");
    figure.append(image, make("figcaption", "Elements by their distance in ULP from what is expected" +
      (output.ulp !== undefined ? `; the limit is ${output.ulp} ULP` : ""), "soft"));
    return figure;
  }

  function parameters(identifier) {
    const open = identifier.indexOf("[");
    return open < 0 ? [identifier, []] : [identifier.slice(0, open), identifier.slice(open + 1, -1).split(",")];
  }

  function neighbours(index) {
    const entry = data.cases[index];
    if (!data.fails[entry.s]) return [];
    const [stem, own] = parameters(entry.i), near = [];
    for (const other of data.cases) {
      if (other.o !== entry.o || named(other.s) !== "passed") continue;
      const [otherStem, theirs] = parameters(other.i);
      if (otherStem === stem && theirs.length === own.length)
        near.push([own.filter((value, i) => value !== theirs[i]).length, other]);
    }
    return near.sort((a, b) => a[0] - b[0]).slice(0, 5).map(([, other]) => other);
  }

  function follow() {
    const hash = location.hash.slice(1), filter = /^(text|operator|group|tag|type|level|status)=/.test(hash);
    if (filter) {
      const query = new URLSearchParams(hash);
      restore(query); refresh();
      if (query.get("case")) open((entry) => entry.h === query.get("case"));
      else byId("cases-heading").scrollIntoView();
      return;
    }
    let target = hash;
    try { target = decodeURIComponent(hash); } catch { /* A % that stands for itself. */ }
    open((entry) => entry.i === target || entry.h === target);
  }

  function open(is) {
    const index = data.cases.findIndex(is);
    if (index < 0) return;
    let row = shown.indexOf(index);
    if (row < 0) {
      clear(); form.elements.text.value = data.cases[index].i; refresh();
      row = shown.indexOf(index);
    }
    while (row >= limit) grow();
    const details = list.children[row].firstElementChild;
    details.open = true; details.scrollIntoView(); details.querySelector("summary").focus();
  }

  function grow() {
    const from = limit;
    limit += STEP;
    extend(from);
  }

  const fine = byId("fine"), table_ = byId("operators");
  if (data.failing && table_.querySelectorAll("tr.fine").length > 10) {
    table_.classList.add("folded"); fine.hidden = false;
    fine.addEventListener("click", () => { table_.classList.remove("folded"); fine.hidden = true; });
  }
  for (const button of document.querySelectorAll("#operators th button")) button.addEventListener("click", () => {
    const head = button.closest("th"), row = head.parentElement, column = [...row.children].indexOf(head);
    const before = head.getAttribute("aria-sort");
    const descending = before ? before === "ascending" : column > 0;
    for (const other of row.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const value = (line) => column ? Number(line.children[column].dataset.value) : line.children[0].textContent;
    const lines = [...document.querySelectorAll("#operators tbody tr")];
    lines.sort((a, b) => { const [x, y] = [value(a), value(b)]; return (x < y ? -1 : x > y ? 1 : 0) * (descending ? -1 : 1); });
    document.querySelector("#operators tbody").append(...lines);
  });
  let timer = 0;
  const changed = () => { opened = ""; refresh(); keep(); };
  form.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(changed, 120); });
  form.addEventListener("reset", (event) => { event.preventDefault(); clear(); changed(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  more.addEventListener("click", grow);
  new IntersectionObserver((entries) => { if (entries.some((each) => each.isIntersecting) && !more.hidden) grow(); },
    { rootMargin: "0px 0px 800px 0px" }).observe(more);
  addEventListener("hashchange", follow);
  refresh();
  if (location.hash) follow();
  document.documentElement.dataset.ready = "true";
})();
