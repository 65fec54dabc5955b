package vigiltest

// Rounds is how many random cases a test tries: all of them, or as many as are enough under the race detector, which finds what is wrong
// between goroutines and is ten times as slow. `make test` runs whatever calls this once more without the detector, so all are tried.
func Rounds(all, underRace int) int {
	if raceDetector {
		return underRace
	}
	return all
}
