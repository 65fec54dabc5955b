// A report: figures, charts, and tables.
import { Bars } from "../../ui/bars.js";
import { TimeChart } from "../../ui/chart.js";
import { money } from "../../ui/format.js";
import { EmptyState } from "../../ui/states.js";
import { Pages, Table } from "../../ui/table.js";
import { html, useMemo } from "../../view.js";

/** @param {{report: import("./kinds.js").Kind, data: any, page: number, turn: (page: number) => void}} props */
export function ReportBody({ report, data, page, turn }) {
  const sheets = report.sheets.map((sheet) => ({ ...sheet, rows: sheet.of(data) })).filter((sheet) =>
    sheet.rows.some((row) => row.claims !== 0));
  const charts = (report.charts ?? []).filter((chart) => chart.of(data).some((row) => chart.value(row) > 0));
  return html`<div class="report-body">
    ${report.figures && html`<${Figures} of=${report.figures(data)} />`}
    ${sheets.length > 0
      && charts.map((chart) => html`<div class="card" key=${chart.title}>${chart.kind === "time"
      ? html`<${Months} chart=${chart} data=${data} />` : html`<${Amounts} chart=${chart} data=${data} />`}</div>`)}
    ${report.sheets.length > 0 && sheets.length === 0
      && html`<${EmptyState} title="No data in this period">Choose other dates or fewer filters.</${EmptyState}>`}
    ${sheets.map((sheet) => html`<section class="card" key=${sheet.title}><h3>${sheet.title}</h3><${Table} caption=${sheet.title}
      rows=${sheet.rows} columns=${sheet.columns} keyOf=${sheet.keyOf} /></section>`)}
    ${report.paged && html`<${Pages} page=${page} count=${data.count} size=${20} turn=${turn} />`}
  </div>`;
}

/** Large numbers with labels. @param {{of: [string, any][]}} props */
export const Figures = ({ of }) =>
  html`<dl class="figures">${of.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;

/** @typedef {{chart: import("./kinds.js").Chart, data: any}} ChartProps */

/** @param {ChartProps} props */
function Months({ chart, data }) {
  const rows = chart.of(data);
  const drawn = useMemo(() => ({
    times: rows.map((row) => startOf(chart.label?.(row) ?? "")),
    lines: [{ label: chart.name ?? "Amount", values: rows.map(chart.value), bars: true },
      ...(chart.second ? [{ label: chart.second.name, values: rows.map(chart.second.value), tone: "--series-2", points: true }] : [])],
  }), [data]);
  return html`<${TimeChart} title=${chart.title} times=${drawn.times} lines=${drawn.lines} unit="$" least=${0} dates />`;
}

/** The start of a period in seconds: a day (2026-01-15), an ISO week (2026-W03) or a month (2026-01). @param {string} period */
function startOf(period) {
  const [year, week] = period.split("-W").map(Number);
  if (!week) {
    return Date.parse(`${period.length === 7 ? `${period}-01` : period}T00:00:00Z`) / 1000;
  }
  const fourth = new Date(Date.UTC(year, 0, 4)); // always in ISO week 1
  return fourth.getTime() / 1000 + ((week - 1) * 7 - ((fourth.getUTCDay() + 6) % 7)) * 86_400;
}

/** @param {ChartProps} props */
const Amounts = ({ chart, data }) =>
  html`<${Bars} title=${chart.title} rows=${chart.of(data).map((row) =>
  ({ label: chart.label?.(row) ?? "", value: chart.value(row), text: (chart.text ?? money)(chart.value(row)) }))} />`;
