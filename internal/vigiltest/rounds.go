package vigiltest

// Rounds returns the number of random cases for a test: all of them, or underRace under the race detector, which is about ten times as slow.
func Rounds(all, underRace int) int {
	if raceDetector {
		return underRace
	}
	return all
}
