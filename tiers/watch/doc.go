// Package watch keeps a tier file's table up to date while a program runs.
//
//	file, err := watch.Open("tiers.yaml")       // as tiers.LoadFile
//	…
//	go file.Watch(ctx, nil)                     // until ctx is over
//	limits := file.Store().Lookup(tiers.Pro)    // of the file as it is now
//
// A change is seen a moment after it is complete, whether the file is written in place, replaced by a rename,
// as editors do it, or reached through symbolic links that change, as in a mounted ConfigMap of Kubernetes.
// Where the operating system tells of no change, as on a network file system, it is seen within a minute. A
// program that writes a tier file should write another one and rename it: a file that is half written may be
// a table.
//
// A file that breaks a rule, or is gone, changes nothing: the last good table stays, and the error is
// reported.
package watch
