//go:build !race

package packet_test

// modelRuns is how many machines live, each with other faults.
const modelRuns = 3000
