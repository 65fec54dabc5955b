// Reviews entries one by one in the side panel, with their evidence.
import { useKeys } from "../../../keys.js";
import { go } from "../../../router.js";
import { Drawer } from "../../../ui/drawer.js";
import { calendarDate, money, number } from "../../../ui/format.js";
import { Facts } from "../../../ui/table.js";
import { html, useEffect, useState } from "../../../view.js";
import { Explained } from "../code_explanation.js";
import { warningText } from "../labels.js";
import { Blockers } from "./entry_table.js";

/** @typedef {import("../blocking_reasons.js").Row} Row */

/** @typedef {{rows: Row[], at: string, turn: (id: string) => void, close: () => void, reviews: boolean,
 * review: (row: Row) => Promise<boolean>}} Props */

/** @param {Props} props */
export function ReviewPanel({ rows, at, turn, close, reviews, review }) {
  const [isBusy, setBusy] = useState(false);
  const [position, setPosition] = useState(0); // the entry's position, for when it leaves the list
  const found = rows.findIndex((row) => row.entry_id === at);
  useEffect(() => { found >= 0 && setPosition(found); }, [found]);
  const here = found >= 0 ? found : Math.min(position, rows.length - 1);
  const row = rows[here];
  useEffect(() => { row ? row.entry_id !== at && turn(row.entry_id) : close(); }, [row?.entry_id, at]);
  const step = (/** @type {number} */ by) => rows[here + by] && turn(rows[here + by].entry_id);
  const approve = async () => {
    if (isBusy || !row?.ready || !reviews) {
      return;
    }
    setBusy(true);
    const next = rows.slice(here + 1).find((one) => one.ready) ?? rows[here + 1];
    const done = await review(row);
    setBusy(false);
    if (done) {
      next ? turn(next.entry_id) : close();
    }
  };
  useKeys({
    j: { label: "Next entry", act: () => step(1) }, k: { label: "Previous entry", act: () => step(-1) }, ArrowDown: () => step(1),
      ArrowUp: () => step(-1),
    r: { label: "Review and next", act: () => void approve() }, Enter: () => void approve(),
  });
  if (!row) {
    return null;
  }
  return html`<${Drawer} label=${`${row.patient_name}, ${row.cpt_code}`} close=${close}
    head=${html`<h2><bdi>${row.patient_name}</bdi> <small class="soft">${row.cpt_code}${row.units > 1 ? ` ×${row.units}`
      : ""}, ${money(row.amount)}</small></h2>
      <small class="soft" role="status">${number(here + 1)} of ${number(rows.length)}</small>`}
    foot=${html`<div class="actions look-acts"><button type="button" disabled=${here === 0}
      onClick=${() => step(-1)}>Previous <kbd>K</kbd></button>
      <button type="button" disabled=${here + 1 >= rows.length} onClick=${() => step(1)}>${row.ready ? "Skip"
        : "Next"} <kbd>J</kbd></button>
      ${reviews && html`<button type="button" class="main" disabled=${isBusy || !row.ready} onClick=${approve}>${isBusy ? "One moment"
        : "Review and next"} <kbd>R</kbd></button>`}</div>`}>
    <div class="look-at"><${Blockers} row=${row} />
    ${row.warnings.length > 0 && html`<ul class="soft">${row.warnings.map((code) => html`<li key=${code}>${warningText(code)}</li>`)}</ul>`}
    <${Facts} of=${[["Service date", calendarDate(row.service_date)], ["Period",
      `${calendarDate(row.billing_period_start)} – ${calendarDate(row.billing_period_end)}`],
      ["Payer", row.payer], ["Claim", row.claim_id]]} />
    <h3>Evidence</h3>
    <${Explained} key=${row.entry_id} patient=${row.patient_id} month=${row.billing_period_end.slice(0, 7)} entry=${row.entry_id} only />
    <p><button type="button" class="link" onClick=${() => go("entry",
      { id: row.entry_id })}>Evidence, history and other steps</button></p></div>
  </${Drawer}>`;
}
