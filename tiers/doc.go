// Package tiers says how many requests each tier of an API's users may make.
//
// A [Store] is an immutable table from [Tier] to [Limits] with one tier as the fallback: whatever tier a
// caller claims, [Store.Lookup] answers with limits that passed validation. A budget is a number of requests
// in a sliding minute ([Limits.PerMinute]) or day ([Limits.PerDay]); it is at least 1, and no day allows less
// than a minute does.
//
// A table comes from code ([NewStore]), from a file ([Load], [LoadFile]) or ready-made ([Default]). A tier
// file is YAML, and therefore also JSON, in UTF-8 and at most 256 KiB long:
//
//	fallback: free            # omitted = free
//	tiers:
//	  free: {per_minute: 5, per_day: 100}
//	  pro:  {per_minute: 60, per_day: 5000}
//
// Reading is strict, because a typing error in a limit costs money and shows late. Unknown, missing and
// duplicate fields, a second document, numbers that are not plain decimal digits and YAML's indirections
// (anchors, aliases, merge keys, tags, directives) are errors.
//
// An error is one line for an operator to act on. It begins with "tiers: ". How a file is written is reported
// with the line, the first problem only; what a table says is reported without a line, all tiers in order:
//
//	tiers: line 4: pro.per_minuet: unknown field; want per_minute or per_day
//	tiers: free.per_day: 3 is less than per_minute 5; pro.per_minute: 0 is less than 1
package tiers
