package intake

// ByIdentifier is the search for the patient whom an event names.
const ByIdentifier = byIdentifier

// Submission is the reading of a placed measurement on its way in.
var Submission = submission
