package intake

// Submission is the reading of a placed measurement on its way in.
var Submission = submission
