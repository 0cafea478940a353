"use strict";
// Gives a command a button that copies it.
function copyable(pre) {
  const box = document.createElement("div"), button = document.createElement("button");
  box.className = "copyable"; button.className = "copy"; button.type = "button"; button.textContent = "Copy";
  button.setAttribute("aria-label", `Copy: ${pre.textContent}`);
  button.addEventListener("click", async () => {
    button.textContent = await copied(pre) ? "Copied" : "Press Ctrl+C";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  pre.replaceWith(box);
  box.append(pre, button);
  return box;
}

// Pages on a server without HTTPS have no clipboard; there the selected text is copied, by the
// browser or by the reader.
async function copied(pre) {
  try {
    await navigator.clipboard.writeText(pre.textContent);
    return true;
  } catch {
    getSelection().selectAllChildren(pre);
    return document.execCommand("copy");
  }
}

for (const pre of document.querySelectorAll("pre.command")) copyable(pre);
