//go:build race

package packet_test

// modelRuns is how many machines live with the race detector, which makes each much slower.
const modelRuns = 300
