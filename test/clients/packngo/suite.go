// Package packngo pins packngo, whose own tests the parent package runs.
package packngo

import _ "github.com/packethost/packngo" // for its tests
