// Tables: lists of the service page by page, and plain rows. Page and order of a list stand in the address.
import { get } from "../api.js";
import { ask, place } from "../router.js";
import { Loaded, Nothing, useLoad } from "./states.js";
import { ZoneNote } from "./when.js";
import { classes, html, useEffect, useRef } from "../view.js";

/** @typedef {{name: string, head: any, cell?: (row: any) => any, number?: boolean, order?: string}} Column order is the service's name for
 * sorting by it */

/** Under a table with times stands which zone they are in; zone names another than the reader's, false says that there are no times.
 *  @param {{columns: Column[], rows: any[], caption: string, keyOf?: (row: any) => any, open?: (row: any) => void, ordering?: string,
 * sort?: (ordering: string) => void,   marked?: any, zone?: string | false}} props */
export function Table({ columns, rows, caption, keyOf = (row) => row.id, open, ordering = "", sort, marked, zone }) {
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${caption}><table>
    <caption class="unseen">${caption}</caption>
    <thead><tr>${columns.map((c) => html`<th key=${c.name} scope="col" class=${classes(c.number && "number")} aria-sort=${sorted(c,
      ordering)}>
      ${c.order && sort ? html`<button class="quiet" onClick=${() => sort(flipped(c, ordering))}>${c.head}</button>` : c.head}</th>`)}</tr>
        </thead>
    <tbody>${rows.map((row) => html`<tr key=${keyOf(row)} data-key=${keyOf(row)} class=${classes(open && "opens",
      marked !== undefined && keyOf(row) === marked && "marked")}
      onClick=${open && ((event) => event.target.closest("button, a, input, select, label") || open(row))}>
      ${columns.map((c, i) => html`<td key=${c.name} class=${classes(c.number && "number")}>${open && i === 0
        ? html`<button class="link" onClick=${() => open(row)}>${c.cell ? c.cell(row) : row[c.name]}</button>`
          : c.cell ? c.cell(row) : row[c.name] ?? "–"}</td>`)}
    </tr>`)}</tbody>
  </table></div>${zone !== false && html`<${ZoneNote} of=${zone} />`}`;
}

const sorted = (/** @type {Column} */ column, /** @type {string} */ ordering) =>
  ordering === column.order ? "ascending" : ordering === `-${column.order}` ? "descending" : null;
const flipped = (/** @type {Column} */ column, /** @type {string} */ ordering) =>
  (ordering === `-${column.order}` ? column.order : `-${column.order}`) ?? "";

/** Which list it is, as the address names it: the last word of its path. @param {string} path */
const nameOf = (path) => path.split("/").filter((part) => /^[a-z-]+$/.test(part)).pop() ?? "list";

/** Page and order of a list, in the address under its name. A change of what it lists turns to the first page. @param {string} name
 *  @param {string} first @param {string} filters */
function usePages(name, first, filters) {
  const [pageAt, sortAt] = name ? [`${name}.page`, `${name}.sort`] : ["page", "sort"];
  const { query, view } = place.value;
  const listed = useRef(filters);
  const same = listed.current === filters;
  useEffect(() => {
    if (listed.current !== filters) {
      listed.current = filters;
      ask({ [pageAt]: undefined });
    }
  }, [filters]);
  useEffect(() => () => {
    if (place.peek().view === view) { // it was closed, and opens anew with its first page
      ask({ [pageAt]: undefined, [sortAt]: undefined });
    }
  }, []);
  return {
    page: same ? Math.max(1, Number(query[pageAt]) || 1) : 1, ordering: query[sortAt] ?? first,
    turn: (/** @type {number} */ n) => ask({ [pageAt]: n === 1 ? undefined : String(n) }),
    sort: (/** @type {string} */ by) => ask({ [pageAt]: undefined, [sortAt]: by === first ? undefined : by }),
  };
}

/**
 * A list of the service with its pages. query holds filters; a change of them starts at page one. name is what its page and order are
 * called in the address, "" for the only list of a view; without it the path's last word is taken.
 * @param {{path: string, query?: Record<string, any>, columns: Column[], caption: string, nothing: any, keyOf?: (row: any) => any,
 * open?: (row: any) => void, turn?: number,   size?: number, ordering?: string, name?: string, zone?: string | false}} props
 */
export function List({ path, query = {}, columns, caption, nothing, keyOf, open, turn = 0, size = 20, ordering: first = "",
  name = nameOf(path), zone }) {
  const filters = JSON.stringify([path, query]);
  const { page, ordering, turn: turnTo, sort } = usePages(name, first, filters);
  const from = useLoad((signal) => get(path, { ...query, ordering, page, page_size: size }, signal), [filters, ordering, page, turn]);
  return html`<${Loaded} from=${from} empty=${(data) => data.count === 0} nothing=${html`<${Nothing} title=${nothing} />`}>
    ${(data) => html`<${Table} columns=${columns} rows=${data.results} caption=${caption} keyOf=${keyOf} open=${open} ordering=${ordering}
      sort=${sort} zone=${zone} />
      <${Pages} page=${page} count=${data.count} size=${size} turn=${turnTo} of=${caption} />`}
  </${Loaded}>`;
}

/** @param {{page: number, count: number, size: number, turn: (page: number) => void, of?: string}} props of says which list, where there
 * are several */
export function Pages({ page, count, size, turn, of }) {
  const last = Math.max(1, Math.ceil(count / size));
  return html`<nav class="pages" aria-label=${of ? `Pages of ${of}` : "Pages"}>
    <button disabled=${page <= 1} onClick=${() => turn(page - 1)}>Previous</button>
    <span>${count === 0 ? "Nothing" : `${(page - 1) * size + 1}–${Math.min(page * size, count)} of ${count}`}</span>
    <button disabled=${page >= last} onClick=${() => turn(page + 1)}>Next</button>
  </nav>`;
}

/** Names and values in two columns. @param {{of: [any, any][]}} props */
export const Facts = ({ of }) =>
  html`<dl class="facts">${of.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value ?? "–"}</dd></div>`)}</dl>`;
