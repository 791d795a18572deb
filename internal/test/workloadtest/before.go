package workloadtest

import (
	"context"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"k8s.io/client-go/rest"
)

// Before puts something before an API server, until the test ends, and returns the way to it. What around makes of the way to the server is
// served; a server that can't be reached looks like a connection that broke.
func Before(t testing.TB, to *rest.Config, around func(*httputil.ReverseProxy) http.Handler) *rest.Config {
	t.Helper()
	target, err := url.Parse(to.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(to)
	if err != nil {
		t.Fatal(err)
	}
	silent := log.New(io.Discard, "", 0) // A client that goes away is part of tests.
	web := httptest.NewUnstartedServer(around(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: transport,
		FlushInterval: -1, // What a watch tells goes on at once.
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:      silent,
	}))
	web.EnableHTTP2 = true
	web.Config.ErrorLog = silent
	ctx, end := context.WithCancel(context.Background())
	web.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	web.StartTLS()
	t.Cleanup(func() {
		end() // A client that comes back meanwhile, and watches, would keep the server from ending.
		web.CloseClientConnections()
		web.Close()
	})
	config := &rest.Config{Host: web.URL, BearerToken: to.BearerToken, QPS: -1}
	config.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
	return config
}
