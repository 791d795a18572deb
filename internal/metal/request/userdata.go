package request

import "github.com/drover-dev/drover/internal/metal/userdata"

// CheckUserdata returns why the userdata is rejected, or "".
func CheckUserdata(data string) string {
	if problem := userdataProblem(data); problem != "" {
		return problem
	}
	if problem := userdata.Validate(data); problem != "" {
		return "Userdata " + problem
	}
	return ""
}
