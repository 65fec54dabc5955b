// Finds the next patient after the last row of a page. Patients that were handled move down in the list, so the next page would skip
// others: the next patient is the most urgent one that the user has not visited.
import { get } from "../../api.js";
import { useEffect, useRef } from "../../view.js";
import { pageSize } from "./order.js";

/** @typedef {import("./order.js").Row} Row */

/** @param {import("./order.js").Filters} filters
 *  @returns {{pass: (row: Row) => void, next: () => Promise<{id: string, page: number} | null>}} */
export function useNextPatient(filters) {
  const visited = useRef(/** @type {Map<string, string | null>} */ (new Map()));
  const filterKey = JSON.stringify(filters);
  useEffect(() => { visited.current = new Map(); }, [filterKey]);
  const isUnvisited = (/** @type {Row} */ row) => visited.current.get(row.patient_id) !== row.last_reading_at; // or has a new reading
  return {
    pass: (row) => { visited.current.set(row.patient_id, row.last_reading_at); },
    next: async () => {
      for (let page = 1; ; page++) {
        const found = await get("triage/patients/", { ...filters, page, page_size: pageSize });
        const row = found.results.find(isUnvisited);
        if (row || !found.next) {
          return row ? { id: row.patient_id, page } : null;
        }
      }
    },
  };
}
