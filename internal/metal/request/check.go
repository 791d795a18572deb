package request

import (
	"net/netip"
	"regexp"
	"slices"
	"strconv"

	"github.com/drover-dev/drover/internal/metal/api"
)

// CheckUpdate reports every problem of a change of a device.
func CheckUpdate(req *api.DeviceUpdate) error {
	var wrong problems
	if req.Hostname != nil {
		wrong.add(hostnameProblem(*req.Hostname))
		if *req.Hostname == "" {
			wrong.add("Hostname can't be blank")
		}
	}
	if req.Tags != nil {
		wrong.add(TagProblem(*req.Tags))
	}
	if req.Userdata != nil {
		wrong.add(userdataProblem(*req.Userdata))
	}
	return Unprocessable(wrong...)
}

// ParseAddress parses an address with or without a prefix length.
func ParseAddress(text string) (netip.Prefix, error) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p.Masked(), nil
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Prefix{}, Unprocessable(strconv.Quote(text) + " is not a valid address")
	}
	return netip.PrefixFrom(a, a.BitLen()), nil
}

// CheckBGP reports every problem of a BGP configuration.
func CheckBGP(req *api.BGPConfigRequest) error {
	var wrong []string
	if req.DeploymentType != "local" && req.DeploymentType != "global" {
		wrong = append(wrong, "Deployment type must be local or global")
	}
	if req.ASN < 0 || int64(req.ASN) > 1<<32-1 {
		wrong = append(wrong, "ASN must be from 0 to 4294967295")
	}
	if req.MD5 != "" && !validMD5(req.MD5) {
		wrong = append(wrong, "MD5 must be 10 to 20 letters and digits with at least one lower case letter, one upper case letter and one digit")
	}
	return Unprocessable(wrong...)
}

var (
	md5Pattern = regexp.MustCompile(`^[A-Za-z0-9]{10,20}$`)
	md5Needs   = []*regexp.Regexp{regexp.MustCompile(`[a-z]`), regexp.MustCompile(`[A-Z]`), regexp.MustCompile(`\d`)}
)

func validMD5(s string) bool {
	return md5Pattern.MatchString(s) && !slices.ContainsFunc(md5Needs, func(re *regexp.Regexp) bool { return !re.MatchString(s) })
}
