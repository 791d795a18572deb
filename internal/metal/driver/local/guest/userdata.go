package guest

import (
	"sync"

	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/userdata"
)

// kubeletUnit runs Pods. Until it starts, only the machine's own software runs.
const kubeletUnit = "kubelet.service"

// closeUserdata returns a function that makes metal stop serving the userdata when the kubelet
// starts for the first time: a Pod in the network of the machine can't be told from the machine.
func (m *machine) closeUserdata() func(unit string) {
	var once sync.Once
	return func(unit string) {
		if unit != kubeletUnit || booted() {
			return
		}
		once.Do(func() {
			m.report(Event{Type: driver.UserdataClosed, Message: "The kubelet starts: userdata is no longer served"})
		})
	}
}

// plan returns what to do at this boot.
func (s Spec) plan() (userdata.Plan, error) {
	if s.Later != nil {
		return *s.Later, nil
	}
	return userdata.Parse(s.Userdata, s.Variables)
}

// WithoutUserdata returns the spec of a machine that has executed its userdata. Only the steps of
// every boot remain.
func (s Spec) WithoutUserdata() Spec {
	plan, err := s.plan()
	if err != nil {
		plan = userdata.Plan{} // It failed at the first boot and will never be executed.
	}
	s.Later = &userdata.Plan{Boot: plan.Boot, Disks: plan.Disks, Mounts: plan.Mounts}
	s.Userdata = nil
	return s
}
