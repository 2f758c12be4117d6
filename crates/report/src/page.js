"use strict";
const all = (query, from = document) => [...from.querySelectorAll(query)];
const selects = all("#filters select");

// Rows and figures of another value are hidden, and so are lines and bars of another colour. The choice is in the address.
function filter() {
  const chosen = selects.filter(select => select.value !== "");
  for (const element of all("tbody tr, figure")) {
    const isOther = select => (element.getAttribute("data-axis-" + select.dataset.axis) ?? select.value) !== select.value;
    element.hidden = chosen.some(isOther);
  }
  all("table").forEach(table => { table.closest("section").hidden = all("tbody tr", table).every(row => row.hidden); });
  const colours = chosen.flatMap(select => all("option[data-colour]", select).filter(option => !option.selected));
  document.getElementById("hidden").textContent = colours.map(option => option.dataset.colour).map(colour =>
    `.coloured [fill="${colour}"], .coloured [stroke="${colour}"], .coloured rect[fill="${colour}"] + text { display: none }`).join("\n");
  const words = chosen.map(select => [select.dataset.name, select.selectedOptions[0].text]);
  history.replaceState(null, "", words.length > 0 ? "#" + new URLSearchParams(words) : location.pathname + location.search);
}

function choose() {
  const words = new URLSearchParams(location.hash.slice(1));
  for (const select of selects) {
    const option = all("option", select).find(option => option.text === words.get(select.dataset.name));
    select.value = option ? option.value : "";
  }
  filter();
}

function sort(heading) {
  const isDown = heading.getAttribute("aria-sort") === "ascending";
  all("th", heading.parentElement).forEach(other => other.removeAttribute("aria-sort"));
  heading.setAttribute("aria-sort", isDown ? "descending" : "ascending");
  const body = heading.closest("table").tBodies[0];
  const cell = row => row.cells[heading.cellIndex];
  const number = row => Number(cell(row).dataset.number ?? NaN);
  const compare = (a, b) => number(a) - number(b) || cell(a).textContent.localeCompare(cell(b).textContent, "en", { numeric: true });
  body.append(...[...body.rows].sort((a, b) => isDown ? compare(b, a) : compare(a, b)));
}

function save(name, type, text) {
  const link = document.createElement("a");
  link.download = name;
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function saveFigure(button) {
  const figure = button.closest("figure");
  const isSvg = button.dataset.save === "svg";
  const text = isSvg ? figure.querySelector("svg").outerHTML : figure.querySelector("pre").textContent;
  save(figure.dataset.name + (isSvg ? ".svg" : ".csv"), isSvg ? "image/svg+xml" : "text/csv", text);
}

function saveTable(section) {
  const quoted = text => /[",\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
  const line = row => [...row.cells].map(cell => quoted(cell.dataset.number ?? cell.textContent)).join(",");
  const rows = all("tr", section).filter(row => !row.hidden);
  save(section.querySelector("h2").textContent.toLowerCase() + ".csv", "text/csv", rows.map(line).join("\n") + "\n");
}

selects.forEach(select => select.addEventListener("change", filter));
addEventListener("hashchange", choose);
all("th button").forEach(button => button.addEventListener("click", () => sort(button.parentElement)));
all("[data-save]").forEach(button => button.addEventListener("click", () => saveFigure(button)));
all("[data-save-table]").forEach(button => button.addEventListener("click", () => saveTable(button.closest("section"))));
choose();
