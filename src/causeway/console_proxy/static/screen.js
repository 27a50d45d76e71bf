// A server's screen, by noVNC. Unlike noVNC's own pages this one says why a console ended.
const standing = document.getElementById("standing");
const keys = document.getElementById("keys");

function tell(text, isOver) {
  standing.textContent = text;
  standing.classList.toggle("over", isOver);
}

async function open() {
  const path = new URLSearchParams(location.search).get("path");
  if (!path) {
    tell("The URL of this page has no token: ask for a new console", true);
    return;
  }
  let RFB;
  try {
    RFB = (await import("./core/rfb.js")).default;
  } catch (failure) {
    tell("noVNC is not there: install Debian's package novnc beside the proxy ([console] novnc_path)", true);
    return;
  }
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  const base = location.pathname.replace(/[^/]*$/, "");
  const socket = new WebSocket(`${scheme}//${location.host}${base}${path}`);
  socket.addEventListener("close", (event) => {
    tell(event.reason || "The connection is closed", true);
    keys.hidden = true;
  });
  const rfb = new RFB(document.getElementById("screen"), socket);
  rfb.scaleViewport = true;
  rfb.addEventListener("connect", () => {
    tell("Connected", false);
    keys.hidden = false;
    rfb.focus();
  });
  keys.addEventListener("click", () => rfb.sendCtrlAltDel());
}

open();
