// Package tiers says what each tier of an API's users may use: requests in a sliding window, tokens, money,
// requests at once.
//
// A [Store] is an immutable table from [Tier] to [Limits] with one tier as the fallback: whatever tier a
// caller claims, [Store.Lookup] answers with limits that passed validation. Every tier says how many requests
// it may make in any minute and any day, or that it is [Unlimited]; further budgets are optional. A window
// allows no less than a shorter one of the same unit.
//
// A table comes from code ([NewStore]), from a file ([Load], [LoadFile]) or ready-made ([Default]). A tier
// file is YAML, and therefore also JSON, in UTF-8 and at most 256 KiB long:
//
//	fallback: free            # omitted = free
//	tiers:
//	  free: {per_minute: 5, per_day: 100}
//	  pro:  {per_minute: 60, per_day: unlimited, per_month: 50000}
//	  team: {per_minute: 60, per_day: 5000, tokens_per_day: 1000000, spend_per_month: 2.50, concurrent: 4}
//
// Three more sections, all optional, are for single users, by their ids: limits in place of their tier's
// until a moment, users who meet no budget of the table, and users who are refused. An id stands on one:
//
//	overrides:
//	  alice: {per_minute: 100, per_day: 2000, until: 2026-12-31T23:59:59Z}
//	allow: [monitoring]
//	deny:  [mallory]
//
// An id that is a number is written in quotes. It has at most 256 bytes and shows every character.
//
// The fields of a tier are per_minute, per_hour, per_day and per_month (requests; a month is any 30 days),
// tokens_per_minute, tokens_per_day and tokens_per_month, spend_per_day and spend_per_month ([Money]), and
// concurrent (requests under way at once). Only per_minute and per_day are required. A budget that is left
// out does not exist. Any budget may be the word unlimited; no number stands for it, and zero is an error.
//
// Reading is strict, because a typing error in a limit costs money and shows late. Unknown, missing and
// duplicate fields, a second document, numbers that are not plain decimal digits and YAML's indirections
// (anchors, aliases, merge keys, tags) are errors.
//
// An error is one line for an operator to act on. It begins with "tiers: ". How a file and each number in it
// are written is reported with the line, the first problem only; what a table says is reported without a
// line, all tiers in order:
//
//	tiers: line 4: pro.per_day: want a whole number in decimal digits or unlimited, got 5e3
//	tiers: free.per_day: 3 is less than per_minute 5; pro.per_minute: 0 is less than 1
package tiers
