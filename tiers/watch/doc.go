// Package watch keeps a tier file's table up to date while a program runs.
//
//	file, err := watch.Open("tiers.yaml")       // as tiers.LoadFile
//	…
//	go file.Watch(ctx, nil)                     // until ctx is over; it returns an error if it cannot watch
//	limits := file.Store().Lookup(tiers.Pro)    // of the file as it is now
//
// A change is noticed shortly after it is complete. The file may be written in place, replaced by a rename,
// as editors do, or reached through symbolic links that change, as in a mounted ConfigMap of Kubernetes. If
// the operating system does not report changes, as on a network file system, a change is noticed within a
// minute. A program that writes a tier file should write a new file and rename it, because a half-written
// file may be a valid table.
//
// If a file breaks a rule or is missing, the last good table stays, and the error is reported.
package watch
