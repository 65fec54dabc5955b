//go:build !race

package vigiltest

const raceDetector = false
