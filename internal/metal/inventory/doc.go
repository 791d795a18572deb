// Package inventory describes the servers that users own: what a record contains, which states it
// goes through, and which server an order gets. It also reads and writes the files in which users
// already have their servers. It never reads a store, connects to a server or decides when
// something happens: callers do. Start with Server, Server.Claim and Choose.
//
//	add ─▶ Discovered ──check──▶ Ready ──claim──▶ Provisioning ──boot──▶ InUse
//	           ▲  └─────────┐      ▲                   └──────┬──────────┘
//	         reset          ▼      └───────cleaned─────── Cleaning ◀──release
//	           └───────── Failed ◀────────unclean────────────┘
package inventory
