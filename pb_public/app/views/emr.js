// The practice's EMR: deliveries, connection, and import of patients.
import { can } from "../permissions.js";
import { lazy } from "../ui/lazy.js";
import { Tabs } from "../ui/tabs.js";
import { html } from "../view.js";
import { Transmissions } from "./emr/transmissions.js";

const Connection = lazy(() => import("./emr/connection.js").then((m) => m.Connection));
const Corrections = lazy(() => import("./emr/corrections.js").then((m) => m.Corrections));
const ImportPatients = lazy(() => import("./emr/import.js").then((m) => m.ImportPatients));
const UnlinkedPatients = lazy(() => import("./emr/unlinked.js").then((m) => m.UnlinkedPatients));

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
