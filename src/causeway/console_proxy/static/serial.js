// A serial console: what the guest writes goes to the terminal, what is typed goes to the guest.
"use strict";

const standing = document.getElementById("standing");

function tell(text, isOver) {
  standing.textContent = text;
  standing.classList.toggle("over", isOver);
}

function open() {
  const token = new URLSearchParams(location.search).get("token");
  if (!token) {
    tell("The URL of this page has no token: ask for a new console", true);
    return;
  }
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  const base = location.pathname.replace(/[^/]*$/, "");
  const socket = new WebSocket(`${scheme}//${location.host}${base}?token=${encodeURIComponent(token)}`);
  socket.binaryType = "arraybuffer";
  const terminal = new Terminal({ cols: 100, rows: 36, scrollback: 5000 });
  terminal.open(document.getElementById("terminal"));
  terminal.focus();
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  socket.onopen = () => tell("Connected", false);
  socket.onmessage = (event) => terminal.write(decoder.decode(event.data, { stream: true }));
  socket.onclose = (event) => tell(event.reason || "The connection is closed", true);
  terminal.on("data", (typed) => {
    if (socket.readyState === WebSocket.OPEN) {
      socket.send(encoder.encode(typed));
    }
  });
}

if (typeof Terminal === "undefined") {
  tell("xterm.js is not there: install Debian's package libjs-xterm beside the proxy ([console] xterm_path)", true);
} else {
  open();
}
