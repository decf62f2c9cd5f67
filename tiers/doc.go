// Package tiers defines what each tier of an API's users may use: requests in a sliding window, tokens,
// money, requests at once.
//
// A [Store] is an immutable table from [Tier] to [Limits] with one tier as the fallback. For any tier that a
// caller has, [Store.Lookup] returns limits that passed validation. Every tier has a number of requests per
// minute and per day, or [Unlimited]; further budgets are optional. A longer window allows at least as much
// as a shorter window of the same unit.
//
// A table comes from code ([NewStore]), from a file ([Load], [LoadFile]) or is built in ([Default]). A tier
// file is YAML (so it may be JSON), in UTF-8 and at most 256 KiB long:
//
//	fallback: free            # omitted = free
//	tiers:
//	  free: {per_minute: 5, per_day: 100}
//	  pro:  {per_minute: 60, per_day: unlimited, per_month: 50000}
//	  team: {per_minute: 60, per_day: 5000, tokens_per_day: 1000000, spend_per_month: 2.50, concurrent: 4}
//
// Three optional sections are for single users, by their ids: limits that replace their tier's until a given
// time, users without budgets of this table, and users who are refused. An id may be in one section only:
//
//	overrides:
//	  alice: {per_minute: 100, per_day: 2000, until: 2026-12-31T23:59:59Z}
//	allow: [monitoring]
//	deny:  [mallory]
//
// Write an id that is a number in quotes. An id has at most 256 bytes and no invisible characters.
//
// The fields of a tier are per_minute, per_hour, per_day and per_month (requests; a month is any 30 days),
// tokens_per_minute, tokens_per_day and tokens_per_month, spend_per_day and spend_per_month ([Money]), and
// concurrent (requests in progress). Only per_minute and per_day are required. A budget that is left out does
// not exist. Any budget may be the word unlimited; no number means unlimited, and zero is an error.
//
// Reading is strict, because a typing error in a limit costs money and is noticed late. Unknown, missing and
// duplicate fields, a second document, numbers that are not plain decimal digits and YAML's indirections
// (anchors, aliases, merge keys, tags) are errors.
//
// An error is one line that tells an operator what to fix. It begins with "tiers: ". An error in the syntax
// of the file or of a number has its line; only the first is reported. Errors in the meaning of a table have
// no line; they are reported for all tiers, in order:
//
//	tiers: line 4: pro.per_day: want a whole number in decimal digits or unlimited, got 5e3
//	tiers: free.per_day: 3 is less than per_minute 5; pro.per_minute: 0 is less than 1
package tiers
