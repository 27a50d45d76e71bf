// A serial console: what the guest writes is shown line by line, what is typed goes to the guest. No terminal for programs that
// draw on the whole screen: their positions and colours are left out.
const MOST_LINES = 5000;
const KEYS = {
  Enter: "\r", Backspace: "\x7f", Tab: "\t", Escape: "\x1b", Delete: "\x1b[3~", Home: "\x1b[H", End: "\x1b[F",
  ArrowUp: "\x1b[A", ArrowDown: "\x1b[B", ArrowRight: "\x1b[C", ArrowLeft: "\x1b[D",
};
// What moves the cursor or colours the text; a part of one at the end waits for its rest.
const ESCAPE = /\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9]|[=>78A-Zc])/y;

const standing = document.getElementById("standing");
const terminal = document.getElementById("terminal");

class Screen {
  constructor() {
    this.lines = [""];
    this.column = 0;
    this.rest = "";
    this.isDue = false;
  }

  write(text) {
    const all = this.rest + text;
    this.rest = "";
    for (let at = 0; at < all.length; at += 1) {
      if (all[at] === "\x1b") {
        ESCAPE.lastIndex = at;
        const found = ESCAPE.exec(all);
        if (found) {
          this.escape(found[0]);
          at = ESCAPE.lastIndex - 1;
        } else if (all.length - at < 64) {
          this.rest = all.slice(at);
          break;
        }
      } else {
        this.put(all[at]);
      }
    }
    this.lines.splice(0, this.lines.length - MOST_LINES);
    if (!this.isDue) {
      this.isDue = true;
      requestAnimationFrame(() => this.show());
    }
  }

  put(character) {
    const last = this.lines.length - 1;
    if (character === "\n") {
      this.lines.push("");
      this.column = 0;
    } else if (character === "\r") {
      this.column = 0;
    } else if (character === "\b") {
      this.column = Math.max(0, this.column - 1);
    } else if (character >= " " || character === "\t") {
      const line = this.lines[last].padEnd(this.column);
      this.lines[last] = line.slice(0, this.column) + character + line.slice(this.column + 1);
      this.column += 1;
    }
  }

  escape(sequence) {
    const last = this.lines.length - 1;
    if (sequence === "\x1b[K" || sequence === "\x1b[0K" || sequence === "\x1b[J") {
      this.lines[last] = this.lines[last].slice(0, this.column);
    } else if (sequence === "\x1b[2J") {
      this.put("\n");
    }
  }

  show() {
    this.isDue = false;
    const wasAtEnd = terminal.scrollHeight - terminal.scrollTop - terminal.clientHeight < 40;
    terminal.textContent = this.lines.join("\n");
    if (wasAtEnd) {
      terminal.scrollTop = terminal.scrollHeight;
    }
  }
}

function tell(text, isOver) {
  standing.textContent = text;
  standing.classList.toggle("over", isOver);
}

// What a key sends; undefined: it is the browser's.
function typed(event) {
  if (event.altKey || event.metaKey) {
    return undefined;
  }
  if (event.ctrlKey) {
    // Ctrl+C with something selected copies it, and Ctrl+V pastes.
    const isCopy = event.key === "c" && !getSelection().isCollapsed;
    return /^[a-z[\]\\]$/.test(event.key) && !isCopy && event.key !== "v"
      ? String.fromCharCode(event.key.toUpperCase().charCodeAt(0) & 31) : undefined;
  }
  return event.key.length === 1 ? event.key : KEYS[event.key];
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
  const screen = new Screen();
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  const send = (text) => socket.readyState === WebSocket.OPEN && socket.send(encoder.encode(text));
  socket.binaryType = "arraybuffer";
  socket.onopen = () => tell("Connected", false);
  socket.onmessage = (event) => screen.write(decoder.decode(event.data, { stream: true }));
  socket.onclose = (event) => tell(event.reason || "The connection is closed", true);
  terminal.addEventListener("keydown", (event) => {
    const text = typed(event);
    if (text !== undefined) {
      event.preventDefault();
      send(text);
    }
  });
  terminal.addEventListener("paste", (event) => {
    event.preventDefault();
    send(event.clipboardData.getData("text").replace(/\r?\n/g, "\r"));
  });
  terminal.focus();
}

open();
