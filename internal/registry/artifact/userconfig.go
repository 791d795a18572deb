package artifact

import (
	"os"
	"path/filepath"
)

// UserAccess is what the person who runs the program has logged in to, nothing if there is no such file.
func UserAccess() Access {
	dir := os.Getenv("DOCKER_CONFIG")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return Access{}
		}
		dir = filepath.Join(home, ".docker")
	}
	config, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		return Access{}
	}
	return Access{DockerConfig: config}
}
