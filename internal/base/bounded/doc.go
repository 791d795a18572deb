// Package bounded limits what peers that Drover doesn't trust can do with a response: workload
// clusters, registries, chart repositories and the Packet API. It bounds the size of responses
// after decompression, the memory that they take once they are decoded, their duration, the size of
// each event of a stream, and where they lead.
//
// Every HTTP client for such a peer uses a Transport of this package; a test verifies that no
// other package creates one. The package never retries and never logs. Start with Transport.
package bounded
