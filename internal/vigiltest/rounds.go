package vigiltest

import "os"

// Rounds returns the number of random cases of a test: few, so that the tests of a change end in minutes; all at night, when VIGIL_TEST_ROUNDS is "all".
// Under the race detector, which is about ten times slower, it always returns few.
func Rounds(all, few int) int {
	if raceDetector || os.Getenv("VIGIL_TEST_ROUNDS") != "all" {
		return few
	}
	return all
}
