package triage

// RowUpdates are the statements that store a row.
var RowUpdates = []string{updateUnranked, updateRanked}
