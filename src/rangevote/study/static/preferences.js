// Two switches that are remembered in this browser.

export class Preferences {
  constructor() {
    /** @type {Record<string, HTMLInputElement>} */
    this.boxes = {};
    for (const id of ["shortcuts", "at-once"]) {
      const box = /** @type {HTMLInputElement} */ (document.getElementById(id));
      this.boxes[id] = box;
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

  /** Whether a digit saves without Enter. */
  get atOnce() {
    return this.boxes["at-once"].checked;
  }
}
