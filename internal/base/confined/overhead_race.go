//go:build race

package confined

// overhead is how many times more memory a child needs than its limit says: the race detector
// remembers several accesses to every word.
const overhead = 8

// outOfMemory reports whether a child has ended with the exit code of a Go program, or of its race
// detector, that runs out of memory.
func outOfMemory(code int) bool { return code == 2 || code == 66 }
