// Replaces the parts of a page that have changed. Without this script a page stays as it was loaded.
"use strict";

const live = document.getElementById("live");
const address = document.body.dataset.events;

function put(html) {
  const made = new DOMParser().parseFromString(html, "text/html");
  const content = document.getElementById("content");
  const now = new Map([...content.querySelectorAll("[data-live]")].map((part) => [part.id, part]));
  const next = [...made.querySelectorAll("[data-live]")];
  const same = next.length === now.size && next.every((part) => now.has(part.id));
  const focused = document.activeElement && document.activeElement.id;
  if (same) {
    for (const part of next) {
      if (!now.get(part.id).isEqualNode(part)) now.get(part.id).replaceWith(document.adoptNode(part));
    }
  } else {
    content.replaceChildren(...[...made.body.childNodes].map((node) => document.adoptNode(node)));
  }
  if (focused && document.activeElement.id !== focused) document.getElementById(focused)?.focus();
}

if (address) {
  const source = new EventSource(address);
  source.onmessage = (event) => {
    put(JSON.parse(event.data));
    live.textContent = "Live: changed at " + new Date().toLocaleTimeString();
  };
  source.onerror = () => {
    if (source.readyState === EventSource.CLOSED) live.textContent = "Updates have stopped: load the page again";
  };
}
