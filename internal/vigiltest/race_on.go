//go:build race

package vigiltest

const raceDetector = true
