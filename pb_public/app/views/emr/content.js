// What a delivery holds.
import { kindNames } from "../../ui/vitals.js";

/** @param {{observation_type?: string | null}} delivery @returns {string} the kind of the reading; a document has none */
export const contentOf = ({ observation_type: kind }) => (kind ? kindNames[kind] : "Report");
