// Who comes after the last of a page. Who was seen to sinks in the list, so that the next page begins below people whom nobody has looked
// at: going on is going to the most urgent whom the reader has not been at, wherever they stand by now.
import { get } from "../../api.js";
import { useEffect, useRef } from "../../view.js";
import { pageSize } from "./order.js";

/** @typedef {import("./order.js").Row} Row */

/** @param {import("./order.js").Filters} filters
 *  @returns {{pass: (row: Row) => void, next: () => Promise<{id: string, page: number} | null>}} */
export function useOnward(filters) {
  const been = useRef(/** @type {Map<string, string | null>} */ (new Map()));
  const known = JSON.stringify(filters);
  useEffect(() => { been.current = new Map(); }, [known]);
  const fresh = (/** @type {Row} */ row) => been.current.get(row.patient_id) !== row.last_reading_at; // a new reading is new
  return {
    pass: (row) => { been.current.set(row.patient_id, row.last_reading_at); },
    next: async () => {
      for (let page = 1; ; page++) {
        const found = await get("triage/patients/", { ...filters, page, page_size: pageSize });
        const row = found.results.find(fresh);
        if (row || !found.next) {
          return row ? { id: row.patient_id, page } : null;
        }
      }
    },
  };
}
