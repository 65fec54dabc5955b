package triage

// PlaceUpdates are the statements that store a place.
var PlaceUpdates = []string{refreshPlace, movePlace}
