package manager_test

import (
	"strings"
	"testing"
)

func TestReadyMeansCachesSyncedAndWebhooksAnswering(t *testing.T) {
	_, m := ready(t)
	body, err := get("http://"+m.health+"/readyz?verbose", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, check := range []string{"[+]caches ok", "[+]webhooks ok"} {
		if !strings.Contains(body, check) {
			t.Errorf("readyz lacks %q:\n%s", check, body)
		}
	}
	if err := fetch("http://" + m.health + "/healthz"); err != nil {
		t.Error(err)
	}
}
