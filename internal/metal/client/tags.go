package client

import (
	"crypto/sha256"
	"encoding/hex"
)

// maxTag is the longest tag the API takes.
const maxTag = 80

// Tag joins the parts of a tag. A value that makes it too long is shortened in a way that keeps different values different.
func Tag(prefix, value string) string {
	if len(prefix)+len(value) <= maxTag {
		return prefix + value
	}
	sum := sha256.Sum256([]byte(value))
	hash := "-" + hex.EncodeToString(sum[:5])
	return prefix + value[:maxTag-len(prefix)-len(hash)] + hash
}
