// The practice's EMR: how it is connected, patients to bring over, and what was delivered to it.
import { can } from "../can.js";
import { Tabs } from "../ui/tabs.js";
import { html } from "../view.js";
import { Connection } from "./emr/connection.js";
import { Corrections } from "./emr/corrections.js";
import { ImportPatients } from "./emr/import.js";
import { Transmissions } from "./emr/transmissions.js";
import { UnlinkedPatients } from "./emr/unlinked.js";

export function EMR() {
  return html`<div class="heading"><h1>EMR</h1></div>
    <${Tabs} label="EMR" tabs=${[
      { key: "transmissions", name: "Deliveries", show: () => html`<${Transmissions} />` },
      { key: "corrections", name: "To be corrected", show: () => html`<${Corrections} />` },
      can("importPatients") && { key: "unlinked", name: "Not linked", show: () => html`<${UnlinkedPatients} />` },
      can("importPatients") && { key: "import", name: "Bring patients over", show: () => html`<${ImportPatients} />` },
      can("readEMR") && { key: "connection", name: "Connection", show: () => html`<${Connection} />` },
    ]} />`;
}
