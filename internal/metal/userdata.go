package metal

import (
	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/request"
)

// validateUserdata reports whether userdata can be parsed.
func validateUserdata(c *call) (*reply, error) {
	req := api.UserdataValidate{Userdata: c.r.URL.Query().Get("userdata")}
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	if message := request.CheckUserdata(req.Userdata); message != "" {
		return nil, request.Unprocessable(message)
	}
	return noContent()
}
