// What is missing in the enrolment stands on the sheet until it is done. The enrolment's own view says what that is.

/** @typedef {{id: string, patient: any, turn: number, changed: () => void}} Props */

/** @param {Props} _props @returns {any} */
export const Missing = (_props) => null;
