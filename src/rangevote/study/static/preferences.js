// Switches that are remembered in this browser.

/** What holds before anybody switches: on a touch screen a tap saves. */
const FIRST = { shortcuts: true, "at-once": matchMedia("(pointer: coarse)").matches, differences: true };

export class Preferences {
  /** @param {() => void} changed is called when a switch is overrides */
  constructor(changed) {
    /** @type {Record<string, HTMLInputElement>} */
    this.boxes = {};
    for (const [id, first] of Object.entries(FIRST)) {
      const box = /** @type {HTMLInputElement} */ (document.getElementById(id));
      this.boxes[id] = box;
      box.checked = first;
      box.addEventListener("change", changed);
      try {
        const kept = localStorage.getItem(`rangevote.study.${id}`);
        if (kept !== null) box.checked = kept === "yes";
        box.addEventListener("change", () => localStorage.setItem(`rangevote.study.${id}`, box.checked ? "yes" : "no"));
      } catch { /* no storage: the boxes apply to this visit */ }
    }
  }

  /** Whether keys do anything. */
  get shortcuts() {
    return this.boxes.shortcuts.checked;
  }

  /** Whether an answer is saved as soon as it is chosen. */
  get atOnce() {
    return this.boxes["at-once"].checked;
  }

  /** Whether differences are marked, if the study allows it. */
  get differences() {
    return this.boxes.differences.checked;
  }
}
