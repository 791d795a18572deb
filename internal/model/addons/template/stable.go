package template

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
)

// standIns replace functions with random or time-dependent results. They return a value of the same
// shape that depends only on their arguments.
var standIns = template.FuncMap{
	"now":            func() time.Time { return epoch },
	"ago":            func(v any) string { return mark("ago", timeOrEpoch(v)) },
	"date":           func(format string, v any) string { return atEpoch(format, v, "Local") },
	"dateInZone":     atEpoch,
	"date_in_zone":   atEpoch,
	"htmlDate":       func(v any) string { return atEpoch(time.DateOnly, v, "Local") },
	"htmlDateInZone": func(v any, zone string) string { return atEpoch(time.DateOnly, v, zone) },

	"randAlphaNum": count("randAlphaNum"), "randAlpha": count("randAlpha"), "randAscii": count("randAscii"),
	"randNumeric": func(n int) string { return fmt.Sprintf("%0*d", times(n, 1), 0) },
	"randBytes":   func(n int) (string, error) { return mark("randBytes", n), nil },
	"randInt":     func(low, _ int) int { return low },
	"uuidv4":      func() string { return "00000000-0000-4000-8000-000000000000" },
	"shuffle":     func(s string) string { return s },

	"bcrypt":     func(args ...any) string { return mark("bcrypt", args) },
	"htpasswd":   func(args ...any) string { return mark("htpasswd", args) },
	"encryptAES": func(args ...any) (string, error) { return mark("encryptAES", args), nil },

	"genPrivateKey":            func(args ...any) string { return mark("genPrivateKey", args) },
	"genCA":                    pair("genCA"),
	"genCAWithKey":             pair("genCAWithKey"),
	"genSelfSignedCert":        pair("genSelfSignedCert"),
	"genSelfSignedCertWithKey": pair("genSelfSignedCertWithKey"),
	"genSignedCert":            pair("genSignedCert"),
	"genSignedCertWithKey":     pair("genSignedCertWithKey"),
}

// epoch is the fixed time of stand-ins.
var epoch = time.Unix(0, 0).UTC()

// certificate has the fields of sprig's certificates.
type certificate struct{ Cert, Key string }

func pair(name string) any {
	return func(args ...any) (certificate, error) {
		return certificate{mark(name, args), mark(name+" key", args)}, nil
	}
}

// count returns as many characters as asked for, because some templates split them.
func count(name string) any {
	return func(n int) string {
		text := make([]byte, times(n, 1))
		for i := range text {
			text[i] = name[i%len(name)]
		}
		return string(text)
	}
}

func mark(name string, args any) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %v", name, args))
	return hex.EncodeToString(sum[:])
}

// timeOrEpoch returns v if it is a time, and epoch otherwise: functions take everything else for
// the present.
func timeOrEpoch(v any) any {
	switch v := v.(type) {
	case time.Time, int64, int, int32:
		return v
	case *time.Time:
		if v != nil {
			return *v
		}
	}
	return epoch
}

func atEpoch(format string, v any, zone string) string {
	f := sprig.TxtFuncMap()["dateInZone"].(func(string, any, string) string)
	return f(format, timeOrEpoch(v), zone)
}
