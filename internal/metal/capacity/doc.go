// Package capacity decides whether another device fits: on the host, within the limits of plans and
// metros, and within the quota of its project. It owns the settings of an administrator and the
// arithmetic. It never reads a store or a driver: callers pass what there is and what is used.
// Start with New and Ledger.Take.
//
//	driver: what there is ──┐
//	settings: overcommit,   ├─▶ Ledger ──Take──▶ nil, ShortageError or QuotaError
//	  limits, quota         │
//	store: what is used ────┘
package capacity
