"use strict";
(() => {
  const table = document.getElementById("alerts");
  const tools = document.getElementById("tools");
  if (!table || !tools) return;
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const text = document.getElementById("find");
  const picks = Array.from(tools.querySelectorAll("select"));
  const shown = document.getElementById("shown");
  const none = document.getElementById("none");
  const words = rows.map((row) => row.textContent.toLowerCase());
  const filter = () => {
    const wanted = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    rows.forEach((row, index) => {
      const fits = wanted.every((word) => words[index].includes(word)) &&
        picks.every((pick) => !pick.value || row.dataset[pick.name] === pick.value);
      row.hidden = !fits;
      count += fits;
    });
    shown.textContent = count === rows.length ? `${count} alerts` : `${count} of ${rows.length} alerts`;
    none.hidden = count > 0;
  };
  const numeric = new Set(["rank", "age", "epss", "number"]);
  const sort = (head, key) => {
    const up = head.getAttribute("aria-sort") !== "ascending";
    table.querySelectorAll("[aria-sort]").forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const value = (row) => numeric.has(key) ? Number(row.dataset[key]) : row.dataset[key];
    const order = new Intl.Collator("en", { numeric: true }).compare;
    const sorted = rows.map((row, index) => [value(row), index, row]);
    sorted.sort((a, b) => (numeric.has(key) ? a[0] - b[0] : order(a[0], b[0])) * (up ? 1 : -1) || a[1] - b[1]);
    body.append(...sorted.map((entry) => entry[2]));
  };
  table.querySelectorAll("thead button").forEach((button) => {
    button.addEventListener("click", () => sort(button.closest("th"), button.dataset.key));
  });
  text.addEventListener("input", filter);
  picks.forEach((pick) => pick.addEventListener("change", filter));
  document.getElementById("reset").addEventListener("click", () => {
    text.value = "";
    picks.forEach((pick) => { pick.value = ""; });
    filter();
    text.focus();
  });
  tools.hidden = false;
  filter();
})();
