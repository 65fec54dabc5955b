// Tables: paged lists from the server, and plain rows. The page and order of a list are in the address.
import { get } from "../api.js";
import { updateQuery, place } from "../router.js";
import { Loaded, EmptyState, useLoad } from "./states.js";
import { ZoneNote } from "./time.js";
import { classes, html, useEffect, useRef } from "../view.js";

/** @typedef {{name: string, head: any, cell?: (row: any) => any, number?: boolean, order?: string}} Column order is the server's name for
 * sorting by it */

/** A table. A table with times names their zone below it: zone is another zone than the reader's; false: no times.
 *  @param {{columns: Column[], rows: any[], caption: string, keyOf?: (row: any) => any, open?: (row: any) => void, ordering?: string,
 * sort?: (ordering: string) => void, marked?: any, zone?: string | false, kind?: string}} props kind is its class: its cells are named by
 * their columns there */
export function Table({ columns, rows, caption, keyOf = (row) => row.id, open, ordering = "", sort, marked, zone, kind = "" }) {
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${caption}><table class=${kind}>
    <caption class="unseen">${caption}</caption>
    <thead><tr>${columns.map((c) => html`<th key=${c.name} scope="col" class=${classes(c.number && "number")} aria-sort=${sorted(c,
      ordering)}>
      ${c.order && sort ? html`<button class="quiet" onClick=${() => sort(flipped(c, ordering))}>${c.head}</button>` : c.head}</th>`)}</tr>
        </thead>
    <tbody>${rows.map((row) => html`<tr key=${keyOf(row)} data-key=${keyOf(row)} class=${classes(open && "opens",
      marked !== undefined && keyOf(row) === marked && "marked")}
      onClick=${open && ((event) => event.target.closest("button, a, input, select, label") || open(row))}>
      ${columns.map((c, i) => html`<td key=${c.name} class=${classes(c.number && "number", kind && c.name)}>${open && i === 0
        ? html`<button class="link" onClick=${() => open(row)}>${c.cell ? c.cell(row) : row[c.name]}</button>`
          : c.cell ? c.cell(row) : row[c.name] ?? "–"}</td>`)}
    </tr>`)}</tbody>
  </table></div>${zone !== false && html`<${ZoneNote} of=${zone} />`}`;
}

const sorted = (/** @type {Column} */ column, /** @type {string} */ ordering) =>
  ordering === column.order ? "ascending" : ordering === `-${column.order}` ? "descending" : null;
const flipped = (/** @type {Column} */ column, /** @type {string} */ ordering) =>
  (ordering === `-${column.order}` ? column.order : `-${column.order}`) ?? "";

/** The name of a list in the address: the last word of its path. @param {string} path */
const nameOf = (path) => path.split("/").filter((part) => /^[a-z-]+$/.test(part)).pop() ?? "list";

/** Page and order of a list, in the address under its name. A change of the filters returns to the first page. @param {string} name
 *  @param {string} first @param {string} filters */
function usePages(name, first, filters) {
  const [pageAt, sortAt] = name ? [`${name}.page`, `${name}.sort`] : ["page", "sort"];
  const { query, view } = place.value;
  const listed = useRef(filters);
  const same = listed.current === filters;
  useEffect(() => {
    if (listed.current !== filters) {
      listed.current = filters;
      updateQuery({ [pageAt]: undefined });
    }
  }, [filters]);
  useEffect(() => () => {
    if (place.peek().view === view) { // a closed list opens again at its first page
      updateQuery({ [pageAt]: undefined, [sortAt]: undefined });
    }
  }, []);
  return {
    page: same ? Math.max(1, Number(query[pageAt]) || 1) : 1, ordering: query[sortAt] ?? first,
    turn: (/** @type {number} */ n) => updateQuery({ [pageAt]: n === 1 ? undefined : String(n) }),
    sort: (/** @type {string} */ by) => updateQuery({ [pageAt]: undefined, [sortAt]: by === first ? undefined : by }),
  };
}

/**
 * A paged list from the server. query holds filters; a change returns to page one. name prefixes its page and order in the address, ""
 * for the only list of a view; the default is the last word of the path.
 * @param {{path: string, query?: Record<string, any>, columns: Column[], caption: string, nothing: any, keyOf?: (row: any) => any,
 * open?: (row: any) => void, turn?: number,   size?: number, ordering?: string, name?: string, zone?: string | false}} props
 */
export function List({ path, query = {}, columns, caption, nothing, keyOf, open, turn = 0, size = 20, ordering: first = "",
  name = nameOf(path), zone }) {
  const filters = JSON.stringify([path, query]);
  const { page, ordering, turn: turnTo, sort } = usePages(name, first, filters);
  const from = useLoad((signal) => get(path, { ...query, ordering, page, page_size: size }, signal), [filters, ordering, page, turn]);
  return html`<${Loaded} from=${from} empty=${(data) => data.count === 0} nothing=${html`<${EmptyState} title=${nothing} />`}>
    ${(data) => html`<${Table} columns=${columns} rows=${data.results} caption=${caption} keyOf=${keyOf} open=${open} ordering=${ordering}
      sort=${sort} zone=${zone} />
      <${Pages} page=${page} count=${data.count} size=${size} turn=${turnTo} of=${caption} />`}
  </${Loaded}>`;
}

/** @param {{page: number, count: number, size: number, turn: (page: number) => void, of?: string}} props of names the list, if there are
 *  several */
export function Pages({ page, count, size, turn, of }) {
  const last = Math.max(1, Math.ceil(count / size));
  return html`<nav class="pages" aria-label=${of ? `Pages of ${of}` : "Pages"}>
    <button disabled=${page <= 1} onClick=${() => turn(page - 1)}>Previous</button>
    <span>${count === 0 ? "No rows" : `${(page - 1) * size + 1}–${Math.min(page * size, count)} of ${count}`}</span>
    <button disabled=${page >= last} onClick=${() => turn(page + 1)}>Next</button>
  </nav>`;
}

/** Names and values in two columns. @param {{of: [any, any][]}} props */
export const Facts = ({ of }) =>
  html`<dl class="facts">${of.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value ?? "–"}</dd></div>`)}</dl>`;
