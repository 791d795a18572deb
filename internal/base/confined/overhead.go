//go:build !race

package confined

// overhead is how many times more memory a child needs than its limit says.
const overhead = 1

// outOfMemory reports whether a child has ended with the exit code of a Go program that runs out of
// memory.
func outOfMemory(code int) bool { return code == 2 }
