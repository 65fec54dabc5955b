package vigiltest

// Rounds returns the number of random cases of a test: all, or underRace under the race detector, which is about ten times
// slower.
func Rounds(all, underRace int) int {
	if raceDetector {
		return underRace
	}
	return all
}
