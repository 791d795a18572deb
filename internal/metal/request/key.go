package request

import (
	"crypto/md5" //nolint:gosec // It is how the API writes fingerprints.
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// CheckSSHKey reports every problem of a key.
func CheckSSHKey(label, key string) error {
	var wrong []string
	if label == "" {
		wrong = append(wrong, "Label can't be blank")
	}
	if Fingerprint(key) == "" {
		wrong = append(wrong, "Key is not a valid public key")
	}
	return Unprocessable(wrong...)
}

// Fingerprint returns the MD5 fingerprint of a public key, or "" if the key is invalid.
// Whitespace around the key, such as the newline at the end of its file, is ignored.
func Fingerprint(key string) string {
	key = strings.TrimSpace(key)
	fields := strings.Fields(key)
	if len(fields) < 2 || strings.ContainsAny(key, "\n\r") {
		return ""
	}
	blob, err := base64.StdEncoding.DecodeString(fields[1])
	if err != nil || len(blob) < 4 {
		return ""
	}
	sum := md5.Sum(blob) //nolint:gosec // As above.
	pairs := make([]string, 0, len(sum))
	for _, b := range sum {
		pairs = append(pairs, hex.EncodeToString([]byte{b}))
	}
	return strings.Join(pairs, ":")
}
