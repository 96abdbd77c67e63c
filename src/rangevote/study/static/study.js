// Opens the study that the link names: its secret is behind the sign #, which browsers send to nobody.

import { Study } from "/static/judging.js";
import { Refused, Server } from "/static/server.js";
import { View } from "/static/view.js";

async function open() {
  const view = new View();
  const token = location.hash.slice(1);
  /** @type {[string, () => void][]} */
  const again = [["Try again", () => location.reload()]];
  if (!token) {
    view.message("This link is not complete", "Open the whole link that you were given, including everything after the # sign.");
    return;
  }
  const server = new Server(token);
  try {
    new Study(server, await server.ask("/api/session"), view).start();
  } catch (error) {
    if (error instanceof Refused) {
      view.message("This link is not known", "Check that it is the whole link that you were given, or ask for a new one.", again);
    } else {
      view.message("The study cannot be reached", "What you have judged is kept. Try again in a moment.", again);
    }
  }
}

window.addEventListener("hashchange", () => location.reload());
window.addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload(); // from the back/forward cache: other windows may have gone on
});
open();
