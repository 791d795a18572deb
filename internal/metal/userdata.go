package metal

import (
	"errors"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/request"
	"github.com/drover-dev/drover/internal/metal/store"
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

// bootFinished reports whether a machine has executed its userdata, successfully or not.
func bootFinished(d *store.Device) bool {
	return d.UserState != nil && (d.UserState.State == "succeeded" || d.UserState.State == "failed")
}

// servesUserdata reports whether the machine may read its userdata.
func servesUserdata(d *store.Device) bool {
	return d.Userdata == store.UserdataServed && !bootFinished(d)
}

// holdsUsedUserdata reports whether the store has userdata that the machine has executed.
func holdsUsedUserdata(d *store.Device, userdata []byte) bool {
	return bootFinished(d) && d.Userdata != store.UserdataNext && len(userdata) > 0
}

// dropUsedUserdata deletes userdata that the machine has executed. Callers that record the end of a
// boot call it in the same transaction, so that no crash leaves userdata behind.
func dropUsedUserdata(tx *store.Tx, d *store.Device) error {
	if !holdsUsedUserdata(d, tx.Userdata(d.ID)) {
		return nil
	}
	d.Userdata = store.UserdataDeleted
	return tx.SetUserdata(d.ID, nil)
}

// replaceUserdata stores userdata that a client sent. After the boot, it is for the next one.
func replaceUserdata(tx *store.Tx, d *store.Device, data string) error {
	if bootFinished(d) {
		d.Userdata = store.UserdataNext
	}
	return tx.SetUserdata(d.ID, []byte(data))
}

// errUserdataGone rejects a reinstallation that would boot without the userdata of the first boot.
var errUserdataGone = request.Unprocessable("The userdata of the device was deleted after its first boot: " +
	"update the device with the userdata to boot with (it may be empty), then reinstall it")

// tidyUserdata deletes what the store of an older version still has. The driver has taken over the
// machine by now.
func (c *controller) tidyUserdata(d *store.Device, userdata []byte) error {
	if !holdsUsedUserdata(d, userdata) {
		return nil
	}
	err := c.change(d.ID, dropUsedUserdata)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}
