// The practice's EMR: deliveries, connection, and import of patients.
import { can } from "../can.js";
import { late } from "../ui/late.js";
import { Tabs } from "../ui/tabs.js";
import { html } from "../view.js";
import { Transmissions } from "./emr/transmissions.js";

const Connection = late(() => import("./emr/connection.js").then((m) => m.Connection));
const Corrections = late(() => import("./emr/corrections.js").then((m) => m.Corrections));
const ImportPatients = late(() => import("./emr/import.js").then((m) => m.ImportPatients));
const UnlinkedPatients = late(() => import("./emr/unlinked.js").then((m) => m.UnlinkedPatients));

export function EMR() {
  return html`<div class="heading"><h1>EMR</h1></div>
    <${Tabs} label="EMR" tabs=${[
      { key: "transmissions", name: "Deliveries", show: () => html`<${Transmissions} />` },
      { key: "corrections", name: "Corrections", show: () => html`<${Corrections} />` },
      can("importPatients") && { key: "unlinked", name: "Not linked", show: () => html`<${UnlinkedPatients} />` },
      can("importPatients") && { key: "import", name: "Import patients", show: () => html`<${ImportPatients} />` },
      can("readEMR") && { key: "connection", name: "Connection", show: () => html`<${Connection} />` },
    ]} />`;
}
