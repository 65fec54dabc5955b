package ingest

// NewSubmission is the reading of a placed measurement on its way in.
var NewSubmission = gatewaySubmission
