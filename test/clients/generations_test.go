package clients

import "testing"

// TestOldAndNewClients runs the tests in the modules of clients of other generations than those
// that packngo's own tests cover.
func TestOldAndNewClients(t *testing.T) {
	for _, module := range []string{"packngo2018", "equinix"} {
		t.Run(module, func(t *testing.T) {
			binary := compile(t, module, ".")
			for _, name := range testsOf(t, binary, ".") {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					s := newServer(t)
					if out, ok := runTest(t, binary, name, "METAL_API_URL="+s.url, "METAL_ADMIN_TOKEN="+s.admin); !ok {
						t.Error(out)
					}
				})
			}
		})
	}
}
