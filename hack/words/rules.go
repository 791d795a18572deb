package main

import "regexp"

// rule is a turn of phrase and what to write instead.
type rule struct {
	pattern *regexp.Regexp
	instead string
}

func phrase(pattern, instead string) rule {
	return rule{regexp.MustCompile(`(?i)\b(?:` + pattern + `)\b`), instead}
}

var rules = []rule{
	phrase(`anew`, `write "again"`),
	phrase(`for the time being`, `write "temporary", or nothing`),
	phrase(`meanwhile`, `name the time, or write nothing`),
	phrase(`(?:is|are) through`, `write "finished"`),
	phrase(`in the end`, `write "finally", or nothing`),
	phrase(`nobody has`, `say what is being waited for`),
	phrase(`nor any other`, `write "not found"`),
	phrase(`is no more`, `write "was removed"`),
	phrase(`is no [a-z]+ (?:of|any)`, `write "not found" or "invalid"`),
	phrase(`things? (?:is|are) in the way`, `write "preflight checks failed"`),
	phrase(`called wrongly`, `write "usage error"`),
	phrase(`lets? (?:it |them )?go on`, `write "resume"`),
	phrase(`(?:is|are) told`, `write "reports", or name who reports what`),
	phrase(`looks? whether|looking whether|looked at`, `write "checks", "observes" or "reconciles"`),
	phrase(`has (?:it|them|those) (?:be|do|go|have)`, `use a verb: "preloads", "restarts"`),
	phrase(`what was held back`, `write "paused objects"`),
	phrase(`who (?:makes|may|wants) [^?.]* (?:needs|gets|sees)`, `write "creating … requires …"`),
	phrase(`Ann`, `refer to roles: administrator, creator`),
}
