package artifact

import (
	"os"
	"path/filepath"
)

// UserAccess returns the Docker config of the user, or no credentials if there is none.
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
