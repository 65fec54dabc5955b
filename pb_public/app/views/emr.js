// The practice's EMR: how it is connected, patients to bring over, and what was delivered to it.
import { can } from "../can.js";
import { Tabs } from "../ui/tabs.js";
import { html } from "../view.js";
import { Connection } from "./emr/connection.js";
import { ImportPatients } from "./emr/import.js";
import { Transmissions } from "./emr/transmissions.js";

export function EMR() {
  return html`<div class="heading"><h1>EMR</h1></div>
    <${Tabs} label="EMR" tabs=${[
      { key: "transmissions", name: "Deliveries", show: () => html`<${Transmissions} />` },
      can("importPatients") && { key: "import", name: "Bring patients over", show: () => html`<${ImportPatients} />` },
      can("readEMR") && { key: "connection", name: "Connection", show: () => html`<${Connection} />` },
    ]} />`;
}
